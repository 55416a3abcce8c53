import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { probe, virtualMachine } from '../support/guest-manifests.ts';
import { conditionOf, VirtualMachines } from '../support/virtual-machines.ts';

vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

let host: VirtualMachines;
beforeAll(async () => (host = await VirtualMachines.start({ nodes: 1 })));
afterAll(() => host.stop());

/** By the aggregated API, and by the command that speaks to it. */
const WAYS = [
  ['the API', (name: string, action: 'start' | 'stop' | 'restart') => host.power(name, action)],
  ['the command', async (name: string, action: 'start' | 'stop' | 'restart') => void (await host.cli(action, name))],
] as const;

describe.each(WAYS)('by %s', (way, change) => {
  const name = way === 'the API' ? 'asked' : 'told';

  it('a machine is started, restarted and stopped', async () => {
    await host.create(virtualMachine(name, probe(), { runStrategy: 'Manual' }));
    await host.isSaidToBe(name, 'Stopped');
    expect(await host.guest(name)).toBeUndefined();

    await change(name, 'start');
    const first = await host.lives(name);
    const before = await host.guest(name);
    await change(name, 'restart');
    expect((await host.livesAnew(name, before)).boot).not.toBe(first.boot);
    await host.says(before, /power=off/);

    const guest = await host.guest(name);
    await change(name, 'stop');
    await host.isSaidToBe(name, 'Stopped');
    await host.says(guest, /power=off/);
    expect(host.qemus()).toEqual([]);
  });
});

describe('a machine that runs', () => {
  it('is paused and goes on where it was', async () => {
    await host.create(virtualMachine('held', probe()));
    const { boot } = await host.lives('held');
    expect(await host.change('held', 'pause')).toBe(202);
    await host.isSaidToBe('held', 'Paused');
    const guest = await host.guest('held');
    expect(conditionOf(guest, 'Paused')).toMatchObject({ status: 'True', reason: 'PausedByUser' });
    expect(guest.status.phase).toBe('Running');
    const before = host.signs(guest).length;
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(host.signs(guest)).toHaveLength(before);

    await host.cli('unpause', 'held');
    await host.isSaidToBe('held', 'Running');
    expect((await host.lives('held')).boot).toBe(boot);
    expect(conditionOf(await host.guest('held'), 'Paused')?.status).not.toBe('True');
  });

  it('cannot be paused twice, nor go on when it runs', async () => {
    expect(await host.change('held', 'unpause')).toBe(409);
    expect(await host.change('held', 'pause')).toBe(202);
    await host.isSaidToBe('held', 'Paused');
    expect(await host.change('held', 'pause')).toBe(409);
    expect(await host.change('held', 'unpause')).toBe(202);
    await host.isSaidToBe('held', 'Running');
  });

  it('is reset, and boots anew in the same machine', async () => {
    const { boot } = await host.lives('held');
    const { metadata } = await host.guest('held');
    const qemu = host.qemuOf(await host.guest('held'));
    expect(await host.change('held', 'reset')).toBe(202);
    await eventually(async () => expect((await host.lives('held')).boot).not.toBe(boot), 60_000);
    const guest = await host.guest('held');
    expect([guest.metadata.uid, host.qemuOf(guest)]).toEqual([metadata.uid, qemu]);
  });

  it('refuses to be started again, and one that is stopped to be stopped', async () => {
    expect((await host.runCli('start', 'held')).code).toBe(1);
    await host.cli('stop', 'held');
    await host.isSaidToBe('held', 'Stopped');
    expect((await host.runCli('stop', 'held')).stderr).toMatch(/not running|already/i);
  });
});

describe('a machine that is started paused', () => {
  it('executes nothing before it is told to go on, and starts as usual the next time', async () => {
    await host.create(virtualMachine('ready', probe(), { runStrategy: 'Halted' }));
    await host.isSaidToBe('ready', 'Stopped');
    await host.cli('start', 'ready', '--paused', '--dry-run');
    expect(await host.guest('ready')).toBeUndefined();
    await host.cli('start', 'ready', '--paused');
    await host.isSaidToBe('ready', 'Paused');
    const guest = await host.guest('ready');
    expect(guest.status.phase).toBe('Running');
    expect(host.signs(guest)).toEqual([]);
    await host.cli('unpause', 'ready');
    await host.lives('ready');
    await host.cli('restart', 'ready');
    await host.livesAnew('ready', guest);
    await host.isSaidToBe('ready', 'Running');
    await host.cli('stop', 'ready');
    await host.isSaidToBe('ready', 'Stopped');
  });
});

describe('what ran', () => {
  it('never ran twice', () => expect(host.assertNeverDoubled()).toBeGreaterThan(10));
});
