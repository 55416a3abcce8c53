import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import {
  type Actor,
  type Copy,
  heard,
  MEBIBYTE,
  MigrationScene,
  notOneLife,
  state,
} from '../support/migration-scene.ts';
import { CAN_GIVE_POST_COPY, hasPostCopyForAll, postCopyQemu } from '../support/post-copy.ts';
import { Workbench } from '../support/qemu.ts';
import { say } from '../support/say.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';

/** The guest goes over first, and its memory follows. */

let scene: MigrationScene;
let isPossible = true;
const proxies: TcpProxy[] = [];

beforeAll(async () => {
  scene = await MigrationScene.open((bench) => {
    if (hasPostCopyForAll()) return bench.hypervisor;
    isPossible = CAN_GIVE_POST_COPY;
    return isPossible
      ? Workbench.hypervisor(bench.version, undefined, postCopyQemu(bench.directory))
      : bench.hypervisor;
  });
});
afterAll(async () => {
  for (const proxy of proxies) proxy.close();
  await scene.close();
});

/** Slow enough to be cut on the way, and too slow to ever end before. */
const COPY: Copy = {
  allowsPostCopy: true,
  limits: { bandwidthBytesPerSecond: 6 * MEBIBYTE, downtimeMs: 1 },
};
const RANGE = { host: '127.0.0.1', firstPort: 22_000, lastPort: 22_999 };

/** A guest that runs at the target, most of its memory being at the source still. */
async function underWay(): Promise<{ source: Actor; target: Actor; link: TcpProxy }> {
  const spec = scene.bench.spec({ commandLine: 'mib=16 tick=20 hz=200 rate=20' });
  const tls = await scene.credentials();
  const source = await scene.running(spec);
  const target = await scene.target(source, spec);
  const { memoryPort } = await target.machine.migration.listen(scene.listenOptions(COPY, tls.target));
  const link = await TcpProxy.open(memoryPort);
  proxies.push(link);
  await source.machine.migration.start(scene.sendOptions(memoryPort, { ...COPY, proxyPort: link.port }, tls.source));
  await state(source, 'active');
  await source.machine.migration.startPostCopy();
  await state(source, 'pre-switchover');
  expect(await source.machine.status()).toBe('paused');
  await source.machine.migration.switchOver();
  for (const actor of [source, target]) await state(actor, 'postcopy-active');
  await eventually(async () => expect(await target.machine.status()).toBe('paused'));
  expect(await source.machine.status()).toBe('paused');
  await expect(source.machine.continue()).rejects.toMatchObject({ code: 'Refused' });
  await expect(source.machine.migration.cancel()).rejects.toMatchObject({ code: 'Refused' });
  await target.machine.continue();
  return { source, target, link };
}

async function mend({ source, target }: { readonly source: Actor; readonly target: Actor }): Promise<void> {
  for (const actor of [source, target]) await state(actor, 'postcopy-paused');
  const port = await target.machine.migration.listenAgain(RANGE);
  await source.machine.migration.setLimits({ bandwidthBytesPerSecond: 0 });
  await source.machine.migration.resumePostCopy({ host: RANGE.host, port });
}

async function expectWhole({ source, target }: { readonly source: Actor; readonly target: Actor }): Promise<void> {
  for (const actor of [source, target]) await state(actor, 'completed');
  await eventually(async () => expect(await source.machine.status()).toBe('finished-migrate'));
  await target.console.next('guest', 'uptime');
  expect(Number((await target.console.ask('memory')).get('bad'))).toBe(0);
  await source.machine.quit();
  await source.console.over();
  expect(notOneLife(source, target)).toBeUndefined();
  await target.machine.quit();
}

describe('post-copy', () => {
  it('lets a guest go that could not be caught up with', async () => {
    if (!isPossible) return say('this user may not handle page faults: no post-copy');
    const both = await underWay();
    expect((await both.source.machine.migration.progress()).memory?.remainingBytes).toBeGreaterThan(0);
    await expectWhole(both);
    expect(heard(both.source)).not.toContain('postcopy-paused');
    expect((await both.target.machine.ended).reason).toBe('Quit');
  });

  it('goes on after its link was cut', async () => {
    if (!isPossible) return say('this user may not handle page faults: no post-copy');
    const both = await underWay();
    both.link.cut();
    await mend(both);
    await expectWhole(both);
  });

  it('goes on after its link went silent, once both sides have let go of it', async () => {
    if (!isPossible) return say('this user may not handle page faults: no post-copy');
    const both = await underWay();
    both.link.freeze();
    for (const { machine } of [both.source, both.target]) await machine.migration.pausePostCopy();
    await mend(both);
    await expectWhole(both);
  });

  it('that never began leaves the guest where it is', async () => {
    if (!isPossible) return say('this user may not handle page faults: no post-copy');
    const spec = scene.bench.spec({ commandLine: 'mib=16 tick=20 hz=200 rate=20' });
    const source = await scene.running(spec);
    const target = await scene.target(source, spec);
    const { memoryPort } = await target.machine.migration.listen(scene.listenOptions(COPY));
    await source.machine.migration.start(scene.sendOptions(memoryPort, COPY));
    await state(source, 'active');
    await source.machine.migration.startPostCopy();
    await state(source, 'pre-switchover');
    await target.machine.kill();
    await source.machine.migration.switchOver();
    await state(source, 'failed');
    // QEMU resumes a guest whose pre-copy failed, and leaves this one to us.
    expect(await source.machine.status()).toBe('paused');
    await source.machine.continue();
    expect(await source.machine.status()).toBe('running');
    expect(Number((await source.console.ask('memory')).get('bad'))).toBe(0);
    await source.machine.quit();
  });

  it('is refused by a host that does not let it, and the target may be asked for less', async () => {
    if (hasPostCopyForAll()) return say('everybody may handle page faults here');
    const spec = scene.bench.spec();
    const run = scene.bench.newRun();
    const target = await scene.bench.hypervisor.start({ ...spec, incoming: { ramBytes: 32 * MEBIBYTE + 8192 } }, run);
    await expect(target.migration.listen(scene.listenOptions(COPY))).rejects.toMatchObject({ code: 'Refused' });
    await target.migration.listen(scene.listenOptions());
    await target.quit();
  });
});
