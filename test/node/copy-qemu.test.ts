import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { MigrationConfiguration } from '../../src/api/kubevirt/migration-configuration.ts';
import type { Clock } from '../../src/env/ports.ts';
import { realDiskFiles } from '../../src/env/real-disk-files.ts';
import { realFiles } from '../../src/env/real-files.ts';
import { realEnv } from '../../src/env/real.ts';
import { placeName } from '../../src/hypervisor/compare.ts';
import type { MachineSpec } from '../../src/hypervisor/machine.ts';
import { frozenOptions } from '../../src/migration/policies/options.ts';
import { MigrationCertificates } from '../../src/node/migrations/certificates.ts';
import { wantedMethod } from '../../src/node/migrations/copy-method.ts';
import { Copy } from '../../src/node/migrations/copy.ts';
import { listenAgain } from '../../src/node/migrations/listen-again.ts';
import { eventually } from '../support/eventually.ts';
import { loopDevice } from '../support/loop-device.ts';
import { type Actor, MEBIBYTE, MigrationScene, notOneLife } from '../support/migration-scene.ts';
import { CAN_GIVE_POST_COPY, hasPostCopyForAll, postCopyQemu } from '../support/post-copy.ts';
import { UNPRIVILEGED, Workbench } from '../support/qemu.ts';
import { say } from '../support/say.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';

/** The copy of a guest as an agent drives it, on real machines, under certificates of its own. */

const env = realEnv('silent');
const RANGE = { host: '127.0.0.1', firstPort: 23_000, lastPort: 23_999 };
const IDLE = 'mib=8 tick=20 hz=200 rate=0';
const BUSY = 'mib=16 tick=20 hz=200 rate=100';

let scene: MigrationScene;
let directory: string;
let isPostCopyPossible = true;
beforeAll(async () => {
  scene = await MigrationScene.open((bench) => {
    if (hasPostCopyForAll()) return bench.hypervisor;
    isPostCopyPossible = CAN_GIVE_POST_COPY;
    if (!isPostCopyPossible) return bench.hypervisor;
    return Workbench.hypervisor(bench.version, undefined, postCopyQemu(bench.directory));
  });
  directory = join(scene.bench.directory, 'tls');
});
afterAll(() => scene.close());

const certificatesOf = (clock: Clock = env.clock) =>
  new MigrationCertificates({
    env: { ...env, clock },
    files: { ...realDiskFiles, ...realFiles },
    directory,
    user: UNPRIVILEGED,
  });

interface Setting {
  readonly spec: MachineSpec;
  readonly targetSpec?: Partial<MachineSpec>;
  readonly configuration?: MigrationConfiguration;
  readonly proxy?: boolean;
}

/** A guest that runs, a target that waits for it, and the copy. */
async function copying({ spec, targetSpec, configuration = {}, proxy = false }: Setting) {
  const certificates = certificatesOf();
  const options = frozenOptions(configuration);
  const source = await scene.running(spec);
  const target = await scene.target(source, spec, targetSpec);
  const method = wantedMethod(options, { memoryBytes: spec.memoryBytes, cpus: 2 });
  const disks = (spec.disks ?? []).map(({ place }) => place);
  const { allowsPostCopy, channels } = method;
  const { used, source: issued } = await certificates.issue('pod', (tls) =>
    target.machine.migration.listen({ ...RANGE, tls, disks, allowsPostCopy, channels }),
  );
  const link = proxy ? await TcpProxy.open(used.memoryPort) : undefined;
  const opened = { ...used, host: RANGE.host, isPostCopyPossible: true, ...(link ? { memoryPort: link.port } : {}) };
  const credentials = await certificates.write('pod', issued);
  const told: string[] = [];
  const hooks = {
    onNews: () => void (told.at(-1) === copy.state || told.push(copy.state)),
    onStill: () => void told.push('still'),
    listenAgain: async () => {
      const port = await listenAgain(target.machine.migration, RANGE, env.clock);
      return { host: RANGE.host, port };
    },
  };
  const context = { env, machine: source.machine, options, disks, hooks };
  const copy = Copy.start({ ...context, opened, method, credentials });
  return { source, target, copy, told, link, context };
}

async function expectWhole(source: Actor, target: Actor): Promise<void> {
  await target.console.next('guest', 'uptime');
  expect(Number((await target.console.ask('memory')).get('bad'))).toBe(0);
  expect(notOneLife(source, target)).toBeUndefined();
}

async function expectUnharmed({ console }: Actor): Promise<void> {
  await console.next('guest', 'uptime');
  expect(Number((await console.ask('memory')).get('bad'))).toBe(0);
}

/** As the protocol does once all is over. */
async function take(source: Actor, target: Actor): Promise<void> {
  // QEMU says that the copy is complete a moment before its machine is what follows from that.
  await eventually(async () => expect(await source.machine.status()).toBe('finished-migrate'));
  await eventually(async () => expect(await target.machine.status()).toBe('paused'));
  await source.machine.quit();
  await source.console.over();
  await target.machine.migration.closeDisks();
  await target.machine.continue();
}

const over = (copy: Copy) => eventually(() => expect(['completed', 'failed']).toContain(copy.state));

describe('a copy that an agent drives', () => {
  it.each<[what: string, commandLine: string, configuration: MigrationConfiguration]>([
    ['of an idle guest', IDLE, {}],
    ['of a busy one', BUSY, { maxDowntimeMs: 300 }],
    ['packed, over several channels', BUSY, { experimental: { compression: 'zstd' } }],
  ])('%s goes over', async (_, commandLine, configuration) => {
    const { source, target, copy, told } = await copying({ spec: scene.bench.spec({ commandLine }), configuration });
    await over(copy);
    await copy.settled;
    expect(copy.failure).toBeUndefined();
    // A look at the copy may come in between.
    expect(told.filter((each) => each !== 'copying').slice(-3)).toEqual(['still', 'switching', 'completed']);
    expect(copy.progress).toMatchObject({ percent: 100 });
    expect(copy.channel).toMatchObject({ encrypted: true, compression: configuration.experimental ? 'zstd' : 'none' });
    expect(readdirSync(directory)).toEqual([]);
    await take(source, target);
    await expectWhole(source, target);
    await target.machine.quit();
  });

  it('of memory and a disk goes over', async () => {
    const commandLine = 'mib=8 tick=20 hz=200 rate=10 dms=5';
    const spec = scene.bench.spec({ commandLine, disk: scene.bench.newDisk() });
    const { disks = [] } = scene.bench.spec({ disk: scene.bench.newDisk() });
    const { source, target, copy } = await copying({ spec, targetSpec: { disks } });
    await over(copy);
    expect(copy.failure).toBeUndefined();
    await take(source, target);
    await expectWhole(source, target);
    expect(Number((await target.console.ask('disk')).get('bad'))).toBe(0);
    await target.machine.quit();
  });

  it('of a disk in a file goes over to a block device that is larger, and back', async () => {
    const device = loopDevice(join(scene.bench.directory, 'device'), 8 * MEBIBYTE);
    if (!device) return say('there are no block devices to be had here');
    onTestFinished(() => device.close());
    const commandLine = 'mib=8 tick=20 hz=200 rate=10 dms=5';
    const inFile = scene.bench.spec({ commandLine, disk: scene.bench.newDisk(4) });
    const disks = (inFile.disks ?? []).map((disk) => {
      return { ...disk, path: device.path, isDevice: true, cache: 'none' as const, sizeBytes: 4 * MEBIBYTE };
    });
    const onDevice = { ...inFile, disks };
    const back = { disks: scene.bench.spec({ disk: scene.bench.newDisk(4) }).disks ?? [] };
    for (const [spec, targetSpec] of [
      [inFile, { disks }],
      [onDevice, back],
    ] as const) {
      const { source, target, copy } = await copying({ spec, targetSpec });
      const place = (inFile.disks ?? []).map((disk) => placeName(disk.place)).join();
      expect((await target.machine.disks.sizes()).get(place)).toBe(4 * MEBIBYTE);
      await over(copy);
      expect(copy.failure).toBeUndefined();
      await take(source, target);
      await expectWhole(source, target);
      expect(Number((await target.console.ask('disk')).get('bad'))).toBe(0);
      await target.machine.quit();
    }
  });

  it('of a guest that writes too fast is given up, with the reason', async () => {
    const { source, copy } = await copying({
      spec: scene.bench.spec({ commandLine: BUSY }),
      configuration: { bandwidthPerMigration: '10Mi', progressTimeout: 3, maxDowntimeMs: 20 },
    });
    await over(copy);
    expect(copy.failure).toMatchObject({ reason: 'NoProgress' });
    expect(copy.decisions.at(-1)).toMatchObject({ decision: 'give-up', reason: 'NoProgress' });
    await expectUnharmed(source);
    await source.machine.quit();
  });

  it('lets a guest that writes too fast go first, and mends the link behind it', async () => {
    if (!isPostCopyPossible) return say('this user may not handle page faults: no post-copy');
    const { source, target, copy, link } = await copying({
      spec: scene.bench.spec({ commandLine: BUSY }),
      configuration: { bandwidthPerMigration: '8Mi', progressTimeout: 3, maxDowntimeMs: 20, allowPostCopy: true },
      proxy: true,
    });
    await eventually(() => expect(copy.state).toBe('post-copy'));
    expect(copy.mode).toBe('PostCopy');
    await eventually(async () => expect(await target.machine.status()).toBe('paused'));
    await target.machine.continue();
    link?.close();
    await expect(copy.cancel()).rejects.toMatchObject({ code: 'Refused' });
    await over(copy);
    expect(copy.decisions.map(({ decision }) => decision)).toContain('recover');
    expect(copy.state).toBe('completed');
    await source.machine.quit();
    await expectWhole(source, target);
    await target.machine.quit();
  });

  it('is gone on with by the next agent', async () => {
    const { source, target, copy, context } = await copying({
      spec: scene.bench.spec({ commandLine: 'mib=16 tick=20 hz=200 rate=4' }),
      configuration: { bandwidthPerMigration: '20Mi' },
    });
    await eventually(async () => expect((await source.machine.migration.progress()).state).toBe('active'));
    copy.detach();
    await copy.settled;
    const next = Copy.adopt({ ...context, known: { mode: copy.mode, channel: copy.channel }, startedAtMs: undefined });
    await over(next);
    expect(next.failure).toBeUndefined();
    await take(source, target);
    await expectWhole(source, target);
    await target.machine.quit();
  });

  it('is not begun with a stranger', async () => {
    const certificates = certificatesOf();
    const spec = scene.bench.spec({ commandLine: IDLE });
    const source = await scene.running(spec);
    const target = await scene.target(source, spec);
    const method = wantedMethod(frozenOptions({}), { memoryBytes: spec.memoryBytes, cpus: 2 });
    const copy = { ...RANGE, disks: [], allowsPostCopy: false, channels: undefined };
    const { used } = await certificates.issue('pod', (tls) => target.machine.migration.listen({ ...copy, tls }));
    const { source: others } = await certificates.issue('pod', async () => undefined);
    const driven = Copy.start({
      env,
      machine: source.machine,
      options: frozenOptions({}),
      disks: [],
      opened: { ...used, host: RANGE.host, isPostCopyPossible: true },
      method,
      credentials: await certificates.write('pod', others),
      hooks: { onNews: () => undefined, onStill: () => undefined, listenAgain: () => Promise.reject(new Error('no')) },
    });
    await over(driven);
    expect(driven.failure?.reason).toBe('CopyFailed');
    await expectUnharmed(source);
    expect(await target.machine.status()).toBe('incoming');
    await target.machine.quit();
    await source.machine.quit();
  });

  it('is not begun with certificates whose time is over', async () => {
    const spec = scene.bench.spec({ commandLine: IDLE });
    const source = await scene.running(spec);
    const target = await scene.target(source, spec);
    const lastMonth: Clock = { ...env.clock, now: () => env.clock.now() - 30 * 86_400_000 };
    const copy = { ...RANGE, disks: [], allowsPostCopy: false, channels: undefined };
    const issued = certificatesOf(lastMonth).issue('pod', (tls) => target.machine.migration.listen({ ...copy, tls }));
    await expect(issued).rejects.toThrow(/expired/);
    await target.machine.quit();
    await source.machine.quit();
  });
});
