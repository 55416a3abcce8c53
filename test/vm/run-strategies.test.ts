import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Anything } from '../support/api.ts';
import { probe, virtualMachine } from '../support/guest-manifests.ts';
import { VirtualMachines } from '../support/virtual-machines.ts';

vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

let host: VirtualMachines;
beforeAll(async () => (host = await VirtualMachines.start({ nodes: 1 })));
afterAll(() => host.stop());

/** What becomes of a machine whose guest shut down by itself, and of one whose guest was killed. */
const CASES: readonly [strategy: string, afterShutdown: 'runs' | 'stops', afterDeath: 'runs' | 'stops'][] = [
  ['Always', 'runs', 'runs'],
  ['RerunOnFailure', 'stops', 'runs'],
  ['Manual', 'stops', 'stops'],
  ['Once', 'stops', 'stops'],
];

/** The guest that runs once the machine was started. */
async function started(name: string, runStrategy: string): Promise<Anything> {
  await host.create(virtualMachine(name, probe(), { runStrategy }));
  if (runStrategy === 'Manual') {
    await host.isSaidToBe(name, 'Stopped');
    await host.power(name, 'start');
  }
  await host.lives(name);
  return host.guest(name);
}

async function comesTo(name: string, before: Anything, outcome: 'runs' | 'stops'): Promise<void> {
  if (outcome === 'runs') {
    expect((await host.livesAnew(name, before)).boot).not.toBe(host.signs(before)[0]?.boot);
    return;
  }
  await host.isSaidToBe(name, 'Stopped');
  // Whoever wants to start it has had the time.
  await new Promise((resolve) => setTimeout(resolve, 500));
  await host.isSaidToBe(name, 'Stopped');
}

describe.each(CASES)('a machine that runs %s', (strategy, afterShutdown, afterDeath) => {
  const name = strategy.toLowerCase();

  it(`${afterShutdown === 'runs' ? 'runs again' : 'stops'} when its guest shuts down`, async () => {
    const before = await started(`${name}-off`, strategy);
    await host.shutDownFromInside(`${name}-off`);
    await comesTo(`${name}-off`, before, afterShutdown);
  });

  it(`${afterDeath === 'runs' ? 'runs again' : 'stops'} when QEMU is killed`, async () => {
    const before = await started(`${name}-killed`, strategy);
    process.kill(host.qemuOf(before), 'SIGKILL');
    await comesTo(`${name}-killed`, before, afterDeath);
    await host.told(`${name}-killed`, /killed by SIGKILL|SIGKILL/);
  });
});

describe('a machine that is halted', () => {
  it('does not run, and runs once it is told otherwise', async () => {
    await host.create(virtualMachine('halted', probe(), { runStrategy: 'Halted' }));
    await host.isSaidToBe('halted', 'Stopped');
    expect(await host.guest('halted')).toBeUndefined();
    await host.kubectl.ok(['patch', 'vm', 'halted', '--type=merge', '-p', '{"spec":{"runStrategy":"Always"}}']);
    await host.lives('halted');
    await host.kubectl.ok(['patch', 'vm', 'halted', '--type=merge', '-p', '{"spec":{"runStrategy":"Halted"}}']);
    await host.isSaidToBe('halted', 'Stopped');
  });

  it('may be told in the older way', async () => {
    await host.create(virtualMachine('older', probe(), { running: true }));
    await host.lives('older');
    await host.kubectl.ok(['patch', 'vm', 'older', '--type=merge', '-p', '{"spec":{"running":false}}']);
    await host.isSaidToBe('older', 'Stopped');
  });
});

describe('what ran', () => {
  it('never ran twice', () => expect(host.assertNeverDoubled()).toBeGreaterThan(10));
});
