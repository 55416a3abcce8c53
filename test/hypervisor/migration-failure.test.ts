import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { MigrationTls } from '../../src/hypervisor/migration.ts';
import { eventually } from '../support/eventually.ts';
import { install } from '../support/install.ts';
import {
  type Actor,
  type Copy,
  heard,
  MEBIBYTE,
  MigrationScene,
  notOneLife,
  state,
} from '../support/migration-scene.ts';
import { UNPRIVILEGED } from '../support/qemu.ts';
import { say } from '../support/say.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';

/** Whatever goes wrong before the guest has gone over leaves it where it is, running, and free to try again. */

let scene: MigrationScene;
const proxies: TcpProxy[] = [];
beforeAll(async () => (scene = await MigrationScene.open()));
afterAll(async () => {
  for (const proxy of proxies) proxy.close();
  await scene.close();
});

/** Whether connections of other processes can be ended. */
function canCutLinks(): boolean {
  const command = 'ss';
  install(command, ['iproute2'], () => spawnSync(command, ['--version'], { stdio: 'ignore' }).status === 0);
  if (!UNPRIVILEGED) say('only root may end a connection that QEMU waits for');
  return UNPRIVILEGED !== undefined;
}

const BUSY = 'mib=16 tick=20 hz=200 rate=20';
/** So slow that it is under way until something is done about it. */
const ENDLESS: Copy = { limits: { bandwidthBytesPerSecond: MEBIBYTE, downtimeMs: 1 } };

async function proxy(port: number): Promise<TcpProxy> {
  const made = await TcpProxy.open(port);
  proxies.push(made);
  return made;
}

async function pair(tls?: MigrationTls, copy: Copy = {}): Promise<{ source: Actor; target: Actor; port: number }> {
  const spec = scene.bench.spec({ commandLine: BUSY });
  const source = await scene.running(spec);
  const target = await scene.target(source, spec);
  const { memoryPort } = await target.machine.migration.listen(scene.listenOptions(copy, tls));
  return { source, target, port: memoryPort };
}

/** The guest goes on at the source, all of it, and can still go elsewhere. */
async function expectUnharmed(source: Actor): Promise<void> {
  await eventually(async () => expect(await source.machine.status()).toBe('running'));
  source.console.tell('');
  await source.console.next('guest', 'uptime');
  expect(Number((await source.console.ask('memory')).get('bad'))).toBe(0);
  const target = await scene.target(source, scene.bench.spec({ commandLine: BUSY }));
  const { memoryPort } = await target.machine.migration.listen(scene.listenOptions());
  const first = source.events.length;
  await source.machine.migration.start(scene.sendOptions(memoryPort));
  await scene.finish({ ...source, events: new Later(source, first).events }, target);
  await target.console.next('guest', 'uptime');
  expect(Number((await target.console.ask('memory')).get('bad'))).toBe(0);
  expect(notOneLife(source, target)).toBeUndefined();
  await target.machine.quit();
}

/** What is heard of a machine from now on. */
class Later {
  readonly #actor: Actor;
  readonly #first: number;

  constructor(actor: Actor, first: number) {
    this.#actor = actor;
    this.#first = first;
  }

  get events(): Actor['events'] {
    const [actor, first] = [this.#actor, this.#first];
    return new Proxy(actor.events, { get: (all, key) => Reflect.get(all.slice(first), key) as unknown });
  }
}

describe('a cancelled migration', () => {
  it('while memory is copied', async () => {
    const { source, target, port } = await pair();
    await source.machine.migration.start(scene.sendOptions(port, ENDLESS));
    await state(source, 'active');
    await source.machine.migration.cancel();
    await state(source, 'cancelled');
    expect(await target.machine.ended).toMatchObject({ reason: 'Failed' });
    expect(heard(source)).not.toContain('stopped');
    await expectUnharmed(source);
  });

  it('before the switchover', async () => {
    const { source, target, port } = await pair();
    await source.machine.migration.start(scene.sendOptions(port));
    await state(source, 'pre-switchover');
    await source.machine.migration.cancel();
    await state(source, 'cancelled');
    await eventually(() => expect(heard(source).slice(heard(source).indexOf('stopped'))).toContain('resumed'));
    expect(await target.machine.ended).toMatchObject({ reason: 'Failed' });
    await expectUnharmed(source);
  });

  it('while nothing is under way, is nothing', async () => {
    const { source, target } = await pair();
    await source.machine.migration.cancel();
    expect((await source.machine.migration.progress()).state).toBe('none');
    await target.machine.quit();
    await expectUnharmed(source);
  });

  it.each<[string, Copy]>([
    ['over one channel', ENDLESS],
    ['over several', { ...ENDLESS, channels: { count: 2, compression: 'none' } }],
    ['over several, packed', { ...ENDLESS, channels: { count: 2, compression: 'zstd' } }],
  ])('on a link that is silent, %s', async (_, copy) => {
    const tls = await scene.credentials();
    const { source, port } = await pair(tls.target, copy);
    const link = await proxy(port);
    const { migration } = source.machine;
    await migration.start(scene.sendOptions(port, { ...copy, proxyPort: link.port }, tls.source));
    await state(source, 'active');
    link.freeze();
    // Until it waits to get rid of what it has sent.
    let sentBytes: number | undefined = -1;
    await eventually(async () => {
      const before = sentBytes;
      sentBytes = (await migration.progress()).memory?.transferredBytes;
      expect(sentBytes).toBe(before);
    });
    await migration.cancel();
    // QEMU ends its link before it says why, so that either may come of it.
    await eventually(async () => expect(['cancelled', 'failed']).toContain((await migration.progress()).state));
    await expectUnharmed(source);
  });
});

describe('a failed migration', () => {
  it('whose target is killed says so', async () => {
    const { source, target, port } = await pair();
    await source.machine.migration.start(scene.sendOptions(port, ENDLESS));
    await state(source, 'active');
    await target.machine.kill();
    await state(source, 'failed');
    await expectUnharmed(source);
  });

  it('whose target is killed while the guest stands still lets it go on', async () => {
    const { source, target, port } = await pair();
    await source.machine.migration.start(scene.sendOptions(port));
    await state(source, 'pre-switchover');
    await target.machine.kill();
    await source.machine.migration.switchOver();
    await state(source, 'failed');
    await expectUnharmed(source);
  });

  it('whose target nobody answers for says so', async () => {
    const { source, target, port } = await pair();
    await target.machine.quit();
    await source.machine.migration.start(scene.sendOptions(port));
    await state(source, 'failed');
    expect((await source.machine.migration.progress()).message).toContain('refused');
    await expectUnharmed(source);
  });

  it('at the very end: the target has it all, and the source goes on by itself', async () => {
    const { source, target, port } = await pair();
    const link = await proxy(port);
    await source.machine.migration.start(scene.sendOptions(port, { proxyPort: link.port }));
    await state(source, 'pre-switchover');
    link.holdAnswers();
    await source.machine.migration.switchOver();
    await state(target, 'completed');
    expect(heard(source)).not.toContain('completed');
    link.cut();
    await state(source, 'failed');
    await eventually(() => expect(heard(source).slice(-2).toSorted()).toEqual(['failed', 'resumed']));
    expect(await target.machine.status()).toBe('paused');
    await target.machine.kill();
    await expectUnharmed(source);
  });
});

describe('a target that never answers', () => {
  it('holds the guest up for a moment, and no longer', async () => {
    if (!canCutLinks()) return;
    const tls = await scene.credentials();
    const { source, port } = await pair(tls.target);
    const link = await proxy(port);
    link.freeze();
    const started = source.machine.migration.start(scene.sendOptions(port, { proxyPort: link.port }, tls.source));
    await expect(started).rejects.toMatchObject({ code: 'Unreachable' });
    await state(source, 'failed');
    await expectUnharmed(source);
  });
});

describe('a stranger', () => {
  it('who says nothing holds the guest up for a moment, and no longer', async () => {
    if (!canCutLinks()) return;
    const tls = await scene.credentials();
    const { source, target, port } = await pair(tls.target);
    const stranger = connect(port, '127.0.0.1').on('error', () => undefined);
    await once(stranger, 'connect');
    const started = source.machine.migration.start(scene.sendOptions(port, {}, tls.source));
    await expect(started).rejects.toMatchObject({ code: 'Unreachable' });
    stranger.destroy();
    // It had begun, or had not, when it was given up.
    await state(source, 'failed', 'cancelled');
    await target.machine.quit();
    await expectUnharmed(source);
  });

  it.each<[who: string, names: { source?: string; target?: string }, why: RegExp]>([
    ['target', { target: 'node-x' }, /does not match the hostname/],
    ['source', { source: 'node-x' }, /./],
  ])('is refused as the %s', async (_, names, why) => {
    const tls = await scene.credentials(names);
    const { source, port } = await pair(tls.target);
    await source.machine.migration.start(scene.sendOptions(port, {}, tls.source));
    await state(source, 'failed');
    expect((await source.machine.migration.progress()).message).toMatch(why);
    await expectUnharmed(source);
  });

  it('is refused without credentials, and with those of another authority; the right one is still let in', async () => {
    const [tls, others] = [await scene.credentials(), await scene.credentials()];
    const { source, target, port } = await pair(tls.target);
    const stranger = await scene.running(scene.bench.spec({ commandLine: BUSY }));
    for (const credentials of [undefined, others.source]) {
      const before = stranger.events.length;
      await stranger.machine.migration.start(scene.sendOptions(port, {}, credentials));
      await state({ ...stranger, events: new Later(stranger, before).events }, 'failed');
    }
    await expectUnharmed(stranger);
    expect(await target.machine.status()).toBe('incoming');
    await source.machine.migration.start(scene.sendOptions(port, {}, tls.source));
    await scene.finish(source, target);
    await target.console.next('guest', 'uptime');
    expect(notOneLife(source, target)).toBeUndefined();
    await target.machine.quit();
  });
});
