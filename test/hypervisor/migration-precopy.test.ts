import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { MachineEvent } from '../../src/hypervisor/hypervisor.ts';
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

/** Memory goes from one QEMU to another while its guest writes to it, over our interface alone. */

let scene: MigrationScene;
beforeAll(async () => (scene = await MigrationScene.open()));
afterAll(() => scene.close());

const BUSY = 'mib=16 tick=20 hz=200 rate=20';
/** Slow enough for several passes, in which pages are dirtied again after they were sent. */
const SLOW: Copy = { limits: { bandwidthBytesPerSecond: 40 * MEBIBYTE, downtimeMs: 30 } };

async function expectWhole(source: Actor, target: Actor): Promise<void> {
  await target.console.next('guest', 'uptime');
  expect(Number((await target.console.ask('memory')).get('bad'))).toBe(0);
  expect(notOneLife(source, target)).toBeUndefined();
}

describe('a guest that dirties its memory', () => {
  it('goes over TLS, whole, and the source says how far it is', async () => {
    const spec = scene.bench.spec({ commandLine: BUSY });
    const tls = await scene.credentials();
    const source = await scene.running(spec);
    const target = await scene.target(source, spec);
    expect(await target.machine.status()).toBe('incoming');
    expect(await source.machine.migration.progress()).toMatchObject({ state: 'none', memory: undefined });

    const { memoryPort, disksPort } = await target.machine.migration.listen(scene.listenOptions(SLOW, tls.target));
    expect(disksPort).toBeUndefined();
    await expect(target.machine.continue()).rejects.toMatchObject({ code: 'Refused' });
    await source.machine.migration.start(scene.sendOptions(memoryPort, SLOW, tls.source));
    await state(source, 'pre-switchover');
    expect(await source.machine.status()).toBe('paused');
    await expect(source.machine.continue()).rejects.toMatchObject({ code: 'Refused' });
    const { memory, ...progress } = await source.machine.migration.progress();
    expect(progress).toMatchObject({ state: 'pre-switchover', message: undefined, throttlePercent: 0 });
    expect(memory?.totalBytes).toBeGreaterThanOrEqual(32 * MEBIBYTE);
    expect(memory?.transferredBytes).toBeGreaterThan(16 * MEBIBYTE);
    expect(memory?.passes).toBeGreaterThan(1);
    await scene.finish(source, target);

    await expectWhole(source, target);
    expect(heard(source).slice(1)).toEqual(['setup', 'active', 'stopped', 'pre-switchover', 'device', 'completed']);
    const passes = source.events.flatMap((event) => (event.kind === 'migration-pass' ? [event.pass] : []));
    expect(passes.length).toBeGreaterThan(1);
    expect(passes).toEqual(passes.map((_, index) => index + 1));
    // A target is set up when it listens, and again when its source has come.
    expect([...new Set(heard(target))]).toEqual(['setup', 'active', 'completed', 'resumed']);
    await target.machine.quit();
  });

  it.each(['none', 'zstd'] as const)('goes over several channels, compressed with %s', async (compression) => {
    const spec = scene.bench.spec({ commandLine: BUSY });
    const tls = await scene.credentials();
    const copy: Copy = { ...SLOW, channels: { count: 3, compression } };
    const source = await scene.running(spec);
    const target = await scene.target(source, spec);
    const { memoryPort } = await target.machine.migration.listen(scene.listenOptions(copy, tls.target));
    await source.machine.migration.start(scene.sendOptions(memoryPort, copy, tls.source));
    await scene.finish(source, target);
    await expectWhole(source, target);
    await target.machine.quit();
  });

  it('goes once it is given what it needs, which may change on the way', async () => {
    const spec = scene.bench.spec({ commandLine: 'mib=16 tick=20 hz=200 rate=100' });
    // One twentieth of what the guest writes: it would never end.
    const copy: Copy = { limits: { bandwidthBytesPerSecond: 5 * MEBIBYTE, downtimeMs: 5 } };
    const source = await scene.running(spec);
    const target = await scene.target(source, spec);
    const { memoryPort } = await target.machine.migration.listen(scene.listenOptions(copy));
    await source.machine.migration.start(scene.sendOptions(memoryPort, copy));
    await eventually(() => expect(source.events).toContainEqual(expect.objectContaining({ pass: 2 })));
    expect(await source.machine.migration.progress()).toMatchObject({ state: 'active' });
    await source.machine.migration.setLimits({ bandwidthBytesPerSecond: 0, downtimeMs: 2000 });
    await scene.finish(source, target);
    await expectWhole(source, target);
    await target.machine.quit();
  });

  it('is slowed down where that is allowed, until it can be caught up with', async () => {
    const spec = scene.bench.spec({ commandLine: 'mib=16 tick=20 hz=200 rate=60' });
    const copy: Copy = { limits: { bandwidthBytesPerSecond: 20 * MEBIBYTE, downtimeMs: 50 }, allowsAutoConverge: true };
    const source = await scene.running(spec);
    const target = await scene.target(source, spec);
    const { memoryPort } = await target.machine.migration.listen(scene.listenOptions(copy));
    await source.machine.migration.start(scene.sendOptions(memoryPort, copy));
    await eventually(async () =>
      expect((await source.machine.migration.progress()).throttlePercent).toBeGreaterThan(0),
    );
    await source.machine.migration.setLimits({ bandwidthBytesPerSecond: 0, downtimeMs: 2000 });
    await scene.finish(source, target);
    await expectWhole(source, target);
    await target.machine.quit();
  });
});

describe('a guest that its owner holds', () => {
  it('is had back when its copy was over, is held as it was, and goes again', async () => {
    const spec = scene.bench.spec({ commandLine: BUSY });
    const source = await scene.running(spec);
    await source.machine.stop();
    const [lost, target] = [await scene.target(source, spec), await scene.target(source, spec)];
    const first = await lost.machine.migration.listen(scene.listenOptions());
    await source.machine.migration.start(scene.sendOptions(first.memoryPort));
    await state(source, 'pre-switchover');
    await source.machine.migration.switchOver();
    await state(source, 'completed');
    await lost.machine.quit();
    await eventually(async () => expect(await source.machine.status()).toBe('finished-migrate'));

    await source.machine.hold();
    expect(await source.machine.status()).toBe('paused');
    source.events.length = 0;
    const again = await target.machine.migration.listen(scene.listenOptions());
    await source.machine.migration.start(scene.sendOptions(again.memoryPort));
    await scene.finish(source, target);
    await expectWhole(source, target);
    await target.machine.quit();
  });
});

describe('whoever adopts a machine', () => {
  it('goes on with its migration', async () => {
    const spec = scene.bench.spec({ commandLine: BUSY });
    const source = await scene.running(spec);
    const target = await scene.target(source, spec);
    const { memoryPort } = await target.machine.migration.listen(scene.listenOptions());
    await source.machine.migration.start(scene.sendOptions(memoryPort));
    await state(source, 'pre-switchover');
    source.machine.detach();
    const adopted = await scene.bench.hypervisor.adopt(source.machine.run);
    if (!adopted) throw new Error('the machine is gone');
    expect(await adopted.migration.progress()).toMatchObject({ state: 'pre-switchover' });
    const events: MachineEvent[] = [...source.events];
    adopted.onEvent((event) => events.push(event));
    await scene.finish({ ...source, machine: adopted, events }, target);
    await expectWhole(source, target);
    await target.machine.quit();
  });
});

describe('what is listened on', () => {
  it('is a port of the range that nobody else has', async () => {
    const spec = scene.bench.spec();
    const source = await scene.running(spec);
    const [one, other] = [await scene.target(source, spec), await scene.target(source, spec)];
    const first = await one.machine.migration.listen(scene.listenOptions());
    const range = { ...scene.listenOptions(), firstPort: first.memoryPort, lastPort: first.memoryPort };
    await expect(other.machine.migration.listen(range)).rejects.toMatchObject({
      code: 'Refused',
      message: expect.stringContaining('is free at 127.0.0.1') as string,
    });
    const wider = { ...range, lastPort: range.lastPort + 20 };
    expect((await other.machine.migration.listen(wider)).memoryPort).toBeGreaterThan(first.memoryPort);
    for (const { machine } of [source, one, other]) await machine.quit();
  });

  it('takes no post-copy over several channels', async () => {
    const spec = scene.bench.spec();
    const source = await scene.running(spec);
    const target = await scene.target(source, spec);
    const both: Copy = { allowsPostCopy: true, channels: { count: 2, compression: 'none' } };
    await expect(target.machine.migration.listen(scene.listenOptions(both))).rejects.toMatchObject({ code: 'Refused' });
    await expect(source.machine.migration.start(scene.sendOptions(1, both))).rejects.toMatchObject({ code: 'Refused' });
    for (const { machine } of [source, target]) await machine.quit();
  });
});
