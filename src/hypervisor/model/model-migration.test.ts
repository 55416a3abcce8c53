import { describe, expect, it } from 'vitest';
import { ManualClock, seededRandom } from '../../env/test.ts';
import type { Machine, MachineEvent } from '../hypervisor.ts';
import { SMALL_MACHINE } from '../machine.fixture.ts';
import type { ListenOptions, MachineMigration, MirrorOptions, SendOptions } from '../migration.ts';
import type { ModelTraits } from './model-guest.ts';
import { ModelHost } from './model-host.ts';
import { ModelNetwork } from './model-network.ts';

const MIB = 2 ** 20;
const SPEC = { ...SMALL_MACHINE, memoryBytes: 1024 * MIB };
const RANGE = { host: 'node-b', firstPort: 100, lastPort: 109 };
const DISK = { bus: 'virtio', at: 4 } as const;
const LISTEN: ListenOptions = { ...RANGE, tls: undefined, disks: [], allowsPostCopy: true, channels: undefined };
const SEND: SendOptions = {
  target: { host: 'node-b', port: 100 },
  tls: undefined,
  limits: { bandwidthBytesPerSecond: 0, downtimeMs: 50 },
  allowsPostCopy: true,
  allowsAutoConverge: false,
  channels: undefined,
};

/** A guest that runs on one host, and a machine that waits for it on another. */
async function setUp(traits: Partial<ModelTraits> = {}, targetBytes = SPEC.memoryBytes) {
  const clock = new ManualClock();
  const network = new ModelNetwork(100 * MIB);
  const hosts = [1, 2].map(
    (seed) => new ModelHost({ env: { clock, random: seededRandom(seed) }, latencyMs: () => 1, traits, network }),
  );
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 10) {
      clock.advance(10);
      for (let turn = 0; turn < 10; turn++) await Promise.resolve();
    }
  };
  const soon = async <T>(promise: Promise<T>): Promise<T> => {
    promise.catch(() => undefined);
    await pass(50);
    return promise;
  };
  const start = async (index: number, spec = SPEC): Promise<{ machine: Machine; heard: string[] }> => {
    const host = hosts[index];
    if (!host) throw new Error('there is no such host');
    const run = { directory: `/runs/${index}`, instance: `run-${index}` };
    const machine = await soon(host.hypervisor(clock).start(spec, run));
    const heard: string[] = [];
    const name = (event: MachineEvent): string => (event.kind === 'migration' ? event.state : event.kind);
    machine.onEvent((event) => void (event.kind === 'migration-pass' || heard.push(name(event))));
    return { machine, heard };
  };
  const source = await start(0);
  await soon(source.machine.continue());
  const target = await start(1, { ...SPEC, incoming: { ramBytes: targetBytes } });
  const status = async () => [await soon(source.machine.status()), await soon(target.machine.status())];
  const executing = () => hosts.map((host) => [...host.alive].filter(({ isExecuting }) => isExecuting).length);
  const said = () => hosts.map((host) => [...host.alive].flatMap(({ guest }) => guest.said(clock.now())));
  const [from, to]: MachineMigration[] = [source.machine.migration, target.machine.migration];
  if (!from || !to) throw new Error('unreachable');
  const copy = async (send: Partial<SendOptions> = {}, listen: Partial<ListenOptions> = {}): Promise<void> => {
    await soon(to.listen({ ...LISTEN, ...listen }));
    await soon(from.start({ ...SEND, ...send }));
  };
  const link = network.link('node-b');
  return { clock, hosts, link, pass, soon, source, target, from, to, copy, status, executing, said };
}

describe('pre-copy of a model', () => {
  it('takes as long as its memory needs, stops, and goes over when it is told to', async () => {
    const { pass, soon, source, target, from, copy, status, executing, said } = await setUp();
    await pass(5000);
    await copy();
    await pass(5000);
    const half = (await soon(from.progress())).memory;
    expect((half?.remainingBytes ?? 0) / (half?.totalBytes ?? 1)).toBeCloseTo(0.5, 1);
    expect(half).toMatchObject({ passes: 1, bytesPerSecond: 100 * MIB });
    await pass(10_000);
    expect(source.heard.slice(1)).toEqual(['setup', 'active', 'stopped', 'pre-switchover']);
    const late = (await soon(from.progress())).memory;
    expect(late?.passes).toBeGreaterThanOrEqual(2);
    expect(Object.values(late ?? {}).filter((count) => !Number.isInteger(count))).toEqual([]);
    expect(executing()).toEqual([0, 0]);
    await expect(soon(source.machine.continue())).rejects.toMatchObject({ code: 'Refused' });
    await expect(soon(target.machine.continue())).rejects.toMatchObject({ code: 'Refused' });
    const before = said()[0];
    await soon(from.switchOver());
    await pass(100);
    expect(source.heard.slice(-2)).toEqual(['device', 'completed']);
    expect(target.heard).toEqual(['setup', 'active', 'completed']);
    expect(await status()).toEqual(['finished-migrate', 'paused']);
    await soon(target.machine.continue());
    await pass(1000);
    expect(executing()).toEqual([0, 1]);
    const [left, right] = said();
    expect(left).toEqual(before);
    expect(right?.[0]).toMatchObject({ bootId: left?.[0]?.bootId, firstCount: (left?.[0]?.lastCount ?? 0) + 1 });
    expect(right?.[0]?.lastCount).toBeGreaterThan(left?.[0]?.lastCount ?? 0);
  });

  it('never ends where the guest writes faster, until limits are lifted or it is slowed down', async () => {
    const busy = { workingSetShare: 0.8, dirtyBytesPerSecond: 500 * MIB };
    const first = await setUp(busy);
    await first.copy();
    await first.pass(120_000);
    expect((await first.soon(first.from.progress())).state).toBe('active');
    await first.soon(first.from.setLimits({ downtimeMs: 60_000 }));
    await first.pass(20_000);
    expect((await first.soon(first.from.progress())).state).toBe('pre-switchover');

    const second = await setUp(busy);
    await second.copy({ allowsAutoConverge: true });
    await second.pass(180_000);
    expect(await second.soon(second.from.progress())).toMatchObject({ state: 'pre-switchover' });
    expect((await second.soon(second.from.progress())).throttlePercent).toBeGreaterThan(20);
  });

  it('is as slow as it is told to be', async () => {
    const { pass, soon, from, copy } = await setUp();
    await copy({ limits: { bandwidthBytesPerSecond: 10 * MIB, downtimeMs: 50 } });
    await pass(10_000);
    expect(((await soon(from.progress())).memory?.transferredBytes ?? 0) / MIB).toBeCloseTo(100, -1);
  });

  it.each(['setup', 'active', 'pre-switchover', 'device'] as const)('is called back from %s', async (state) => {
    const { pass, soon, source, from, link, copy, status, executing } = await setUp();
    if (state === 'setup') link.become('silent');
    await copy();
    if (state === 'pre-switchover' || state === 'device') await pass(15_000);
    if (state === 'device') {
      link.become('silent');
      await soon(from.switchOver());
    }
    expect((await soon(from.progress())).state).toBe(state);
    await soon(from.cancel());
    expect(source.heard).toContain('cancelled');
    expect(executing()[0]).toBe(1);
    link.become('up');
    if (state === 'active') await expect(status()).rejects.toMatchObject({ code: 'Unreachable' });
  });

  it('fails with its target, and goes on', async () => {
    const { pass, soon, source, target, from, copy, executing } = await setUp();
    await copy();
    await pass(1000);
    await soon(target.machine.kill());
    expect(source.heard.at(-1)).toBe('failed');
    expect((await soon(from.progress())).message).toContain('gone');
    expect(executing()).toEqual([1, 0]);
  });

  it('fails at the very end: the target has it all, and the source goes on by itself', async () => {
    const { hosts, pass, soon, source, target, from, copy, link, status, executing } = await setUp();
    await copy();
    await pass(15_000);
    for (const { listeners } of hosts[1]?.alive ?? [])
      listeners.add({
        event: (event) => {
          if (event.kind === 'migration' && event.state === 'completed') link.become('cut');
        },
        ended: () => undefined,
      });
    await soon(from.switchOver());
    await pass(100);
    expect(source.heard.slice(-3)).toEqual(['device', 'failed', 'resumed']);
    expect(target.heard.at(-1)).toBe('completed');
    expect(await status()).toEqual(['running', 'paused']);
    expect(executing()).toEqual([1, 0]);
  });

  it('is not noticed to have stopped where its link is silent, and goes on when that is mended', async () => {
    const { pass, soon, from, copy, link } = await setUp();
    await copy();
    await pass(1000);
    link.become('silent');
    await pass(60_000);
    const stuck = await soon(from.progress());
    expect(stuck.state).toBe('active');
    await pass(60_000);
    expect((await soon(from.progress())).memory).toEqual(stuck.memory);
    link.become('up');
    await pass(15_000);
    expect((await soon(from.progress())).state).toBe('pre-switchover');
  });

  it.each<[what: string, send: Partial<SendOptions>, listen: Partial<ListenOptions>, bytes: number]>([
    ['nobody there', { target: { host: 'node-b', port: 109 } }, {}, SPEC.memoryBytes],
    ['another size', {}, {}, 512 * MIB],
    ['no credentials', {}, { tls: { directory: '/tls', peer: 'node-a' } }, SPEC.memoryBytes],
    ['other ways', { allowsPostCopy: false }, {}, SPEC.memoryBytes],
  ])('is refused: %s', async (_, send, listen, bytes) => {
    const { pass, soon, from, copy, executing } = await setUp({}, bytes);
    await copy(send, listen);
    await pass(100);
    expect((await soon(from.progress())).state).toBe('failed');
    expect(executing()).toEqual([1, 0]);
  });
});

describe('post-copy of a model', () => {
  async function underWay() {
    const scene = await setUp({ workingSetShare: 0.8, dirtyBytesPerSecond: 500 * MIB });
    await scene.copy();
    await scene.pass(1000);
    await scene.soon(scene.from.startPostCopy());
    expect(scene.executing()).toEqual([0, 0]);
    await scene.soon(scene.from.switchOver());
    expect(await scene.status()).toEqual(['paused', 'paused']);
    await expect(scene.soon(scene.source.machine.continue())).rejects.toMatchObject({ code: 'Refused' });
    await expect(scene.soon(scene.from.cancel())).rejects.toMatchObject({ code: 'Refused' });
    await scene.soon(scene.target.machine.continue());
    expect(scene.executing()).toEqual([0, 1]);
    return scene;
  }

  it('lets the guest go first', async () => {
    const { pass, source, target, status } = await underWay();
    await pass(15_000);
    expect(await status()).toEqual(['finished-migrate', 'running']);
    expect(source.heard.slice(-2)).toEqual(['postcopy-active', 'completed']);
    expect(target.heard.at(-1)).toBe('completed');
  });

  it.each(['cut', 'silent'] as const)('stands while its link is %s, and goes on once it is mended', async (how) => {
    const { pass, soon, source, target, from, to, link, status, executing } = await underWay();
    link.become(how);
    if (how === 'silent') for (const side of [from, to]) await soon(side.pausePostCopy());
    await pass(100);
    for (const { heard } of [source, target]) expect(heard.at(-1)).toBe('postcopy-paused');
    expect(executing()).toEqual([0, 0]);
    link.become('up');
    const port = await soon(to.listenAgain(RANGE));
    await soon(from.resumePostCopy({ host: 'node-b', port }));
    expect(executing()).toEqual([0, 1]);
    await pass(15_000);
    expect(await status()).toEqual(['finished-migrate', 'running']);
  });

  it('loses the guest with its source', async () => {
    const { pass, soon, source, target, executing } = await underWay();
    await soon(source.machine.kill());
    await pass(1000);
    expect(target.heard.at(-1)).toBe('postcopy-paused');
    expect(executing()).toEqual([0, 0]);
  });
});

describe('the disks of a model', () => {
  const mirrorOptions = (port: number, bandwidthBytesPerSecond = 0): MirrorOptions => {
    return { target: { host: 'node-b', port }, tls: undefined, disks: [DISK], bandwidthBytesPerSecond };
  };

  it('are copied, stay equal, and are let go of', async () => {
    const { pass, soon, from, to, source } = await setUp({ diskBytes: 1000 * MIB });
    const { disksPort = 0 } = await soon(to.listen({ ...LISTEN, disks: [DISK] }));
    const options = mirrorOptions(disksPort);
    await soon(from.startMirrors(options));
    await pass(5000);
    expect(await soon(from.mirrors())).toMatchObject([{ state: 'copying', place: DISK }]);
    await soon(source.machine.stop());
    await expect(soon(from.finishMirrors())).rejects.toMatchObject({ code: 'Refused' });
    await pass(6000);
    expect(source.heard).toContain('mirror');
    await soon(from.finishMirrors());
    expect(await soon(from.mirrors())).toEqual([]);
    await soon(to.closeDisks());
    await expect(soon(from.startMirrors(options))).rejects.toMatchObject({ code: 'Refused' });
  });

  it('are copied no faster than they may be', async () => {
    const { pass, soon, from, to } = await setUp({ diskBytes: 1000 * MIB });
    const { disksPort = 0 } = await soon(to.listen({ ...LISTEN, disks: [DISK] }));
    await soon(from.startMirrors(mirrorOptions(disksPort, 50 * MIB)));
    await pass(19_000);
    expect(await soon(from.mirrors())).toMatchObject([{ state: 'copying' }]);
    await pass(1100);
    expect(await soon(from.mirrors())).toMatchObject([{ state: 'whole' }]);
  });

  it('are no copies once the link broke', async () => {
    const { soon, from, to, link } = await setUp();
    const { disksPort = 0 } = await soon(to.listen({ ...LISTEN, disks: [DISK] }));
    await soon(from.startMirrors(mirrorOptions(disksPort)));
    link.become('cut');
    expect(await soon(from.mirrors())).toMatchObject([{ state: 'failed' }]);
    await soon(from.dropMirrors());
    expect(await soon(from.mirrors())).toEqual([]);
  });
});
