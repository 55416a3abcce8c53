import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DevicePlace } from '../../src/hypervisor/machine.ts';
import type { MigrationTls, MirrorOptions } from '../../src/hypervisor/migration.ts';
import { eventually } from '../support/eventually.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
import { type Actor, MEBIBYTE, MigrationScene, notOneLife, state } from '../support/migration-scene.ts';

/** Disks that the two hosts do not share are copied while the guest writes, and switched together with its memory. */

let scene: MigrationScene;
beforeAll(async () => (scene = await MigrationScene.open()));
afterAll(() => scene.close());

const WRITING = 'mib=8 tick=20 hz=200 rate=5 write=5';

interface Pair {
  readonly source: Actor;
  readonly target: Actor;
  readonly paths: readonly [source: string, target: string];
  readonly places: readonly DevicePlace[];
  readonly memoryPort: number;
  readonly disksPort: number;
}

async function pair(machineType: string, tls?: MigrationTls, targetMebibytes = 16): Promise<Pair> {
  const paths = [scene.bench.newDisk(16), scene.bench.newDisk(targetMebibytes)] as const;
  const [spec, other] = paths.map((disk) => scene.bench.spec({ machineType, commandLine: WRITING, disk }));
  if (!spec || !other) throw new Error('unreachable');
  const source = await scene.running(spec);
  const target = await scene.target(source, other);
  const places: DevicePlace[] = [machineType === 'microvm' ? { bus: 'virtio-mmio', at: 0 } : { bus: 'virtio', at: 4 }];
  const { memoryPort, disksPort } = await target.machine.migration.listen(scene.listenOptions({}, tls, places));
  if (disksPort === undefined) throw new Error('nobody serves the disk');
  return { source, target, paths, places, memoryPort, disksPort };
}

function whole({ machine }: Actor): Promise<void> {
  return eventually(async () => expect(await machine.migration.mirrors()).toMatchObject([{ state: 'whole' }]));
}

function mirrorOptions(
  port: number,
  disks: readonly DevicePlace[],
  tls?: MigrationTls,
  bandwidthBytesPerSecond = 0,
): MirrorOptions {
  return { target: { host: '127.0.0.1', port }, tls, disks, bandwidthBytesPerSecond };
}

describe('a disk of its own', () => {
  it.each(['microvm', 'pc-q35-7.2'])('goes with its guest, over TLS: %s', async (machineType) => {
    const tls = await scene.credentials();
    const { source, target, paths, places, memoryPort, disksPort } = await pair(machineType, tls.target);
    expect(disksPort).not.toBe(memoryPort);
    const to = mirrorOptions(disksPort, places, tls.source);
    await source.machine.migration.startMirrors(to);
    await whole(source);
    expect(source.events).toContainEqual(expect.objectContaining({ kind: 'mirror' }));
    await expect(source.machine.migration.finishMirrors()).rejects.toMatchObject({ code: 'Refused' });
    await source.machine.migration.start(scene.sendOptions(memoryPort, {}, tls.source));
    await state(source, 'pre-switchover');
    await source.machine.migration.finishMirrors();
    expect(await source.machine.migration.mirrors()).toEqual([]);
    expect(readFileSync(paths[0]).equals(readFileSync(paths[1]))).toBe(true);
    await scene.finish(source, target);
    await target.console.next('guest', 'uptime');
    for (const what of ['memory', 'disk']) expect(Number((await target.console.ask(what)).get('bad'))).toBe(0);
    expect(notOneLife(source, target)).toBeUndefined();
    await target.machine.quit();
  });

  it('goes no faster than it may', async () => {
    const [slow, fast] = [await pair('microvm'), await pair('microvm')];
    for (const { paths, source } of [slow, fast]) {
      await source.machine.stop();
      // Holes would be skipped, and count for nothing.
      writeFileSync(paths[0], randomBytes(16 * MEBIBYTE), { flag: 'r+' });
    }
    // At this pace it takes hours, whatever is sent at first; the other one is over while it is at it.
    await slow.source.machine.migration.startMirrors(mirrorOptions(slow.disksPort, slow.places, undefined, 1024));
    await fast.source.machine.migration.startMirrors(mirrorOptions(fast.disksPort, fast.places));
    await whole(fast.source);
    expect(await slow.source.machine.migration.mirrors()).toMatchObject([{ state: 'copying' }]);
    await slow.source.machine.migration.dropMirrors();
    for (const { source, target } of [slow, fast]) for (const { machine } of [source, target]) await machine.quit();
  });

  it('does not go where there is less room, or more', async () => {
    const { source, target, places, disksPort } = await pair('microvm', undefined, 15);
    const to = mirrorOptions(disksPort, places);
    await expect(source.machine.migration.startMirrors(to)).rejects.toMatchObject({
      code: 'Refused',
      message: expect.stringContaining(`${15 * MEBIBYTE} at the target`) as string,
    });
    expect(await source.machine.migration.mirrors()).toEqual([]);
    expect(await source.machine.status()).toBe('running');
    for (const { machine } of [source, target]) await machine.quit();
  });

  it('is lost on the way, again and again, and its guest goes on', async () => {
    for (let count = 0; count < 8; count++) {
      const { source, target, places, disksPort } = await pair('microvm');
      const to = mirrorOptions(disksPort, places);
      await source.machine.migration.startMirrors(to);
      await target.machine.kill();
      await source.console.next('guest', 'uptime');
      await source.machine.migration.dropMirrors();
      expect(Number((await source.console.ask('disk')).get('bad'))).toBe(0);
      await source.machine.quit();
    }
  });

  it('stays whole here when its copy is lost, or given up', async () => {
    const { source, target, places, disksPort } = await pair('microvm');
    const to = mirrorOptions(disksPort, places);
    await source.machine.migration.startMirrors(to);
    await source.machine.migration.dropMirrors();
    await source.machine.migration.startMirrors(to);
    await whole(source);
    await target.machine.kill();
    await eventually(async () =>
      expect(await source.machine.migration.mirrors()).toMatchObject([
        { state: 'failed', place: places[0], message: expect.any(String) as string },
      ]),
    );
    await source.machine.stop();
    await expect(source.machine.migration.finishMirrors()).rejects.toMatchObject({ code: 'Refused' });
    await source.machine.continue();
    await source.machine.migration.dropMirrors();
    expect(await source.machine.migration.mirrors()).toEqual([]);
    expect(Number((await source.console.ask('disk')).get('bad'))).toBe(0);
    await source.machine.quit();
  });

  it.each(['while it is copied', 'once it is whole'])('is let go of on a link that is silent, %s', async (when) => {
    const { source, target, places, disksPort } = await pair('microvm');
    const link = await TcpProxy.open(disksPort);
    const to = mirrorOptions(link.port, places);
    await source.machine.migration.startMirrors(to);
    if (when === 'once it is whole') await whole(source);
    link.freeze();
    await source.console.next('guest', 'uptime');
    await source.machine.migration.dropMirrors();
    expect(await source.machine.migration.mirrors()).toEqual([]);
    await source.console.next('guest', 'uptime');
    expect(Number((await source.console.ask('disk')).get('bad'))).toBe(0);
    for (const { machine } of [source, target]) await machine.quit();
    link.close();
  });

  it('is not begun with on a link that is silent, which holds the guest up for a moment, and no longer', async () => {
    const { source, target, places, disksPort } = await pair('microvm');
    const link = await TcpProxy.open(disksPort);
    link.freeze();
    const to = mirrorOptions(link.port, places);
    await expect(source.machine.migration.startMirrors(to)).rejects.toMatchObject({ code: 'Refused' });
    expect(await source.machine.migration.mirrors()).toEqual([]);
    await source.console.next('guest', 'uptime');
    expect(Number((await source.console.ask('disk')).get('bad'))).toBe(0);
    for (const { machine } of [source, target]) await machine.quit();
    link.close();
  });

  it('is not served to strangers', async () => {
    const [tls, others] = [await scene.credentials(), await scene.credentials()];
    const { source, target, places, disksPort } = await pair('microvm', tls.target);
    for (const stranger of [undefined, others.source]) {
      const to = mirrorOptions(disksPort, places, stranger);
      await expect(source.machine.migration.startMirrors(to)).rejects.toMatchObject({ code: 'Refused' });
    }
    for (const { machine } of [source, target]) await machine.quit();
  });
});
