import { afterEach, describe, expect, it } from 'vitest';
import { sample } from '../../test/support/sample.ts';
import { withMigrationDefaults } from '../api/kubevirt/complete-migration.ts';
import type { VirtualMachine } from '../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstanceMigration } from '../api/kubevirt/virtual-machine-instance-migration.ts';
import { clusterLoops } from '../cluster/cluster.ts';
import { virtualMachineInstanceMigrations, virtualMachines } from '../kube/kubevirt-resources.ts';
import { controlProgram } from './control-program.ts';
import { loopProgram } from './loops.ts';
import { TwoNodes } from './two-nodes.fixture.ts';

/**
 * A guest goes to the other node and back, and the API's data is restored from a backup: real agents, controllers and loops,
 * each write of a node judged by the real webhook.
 */

let nodes: TwoNodes;
afterEach(() => {
  nodes.stop();
  expect(nodes.violations).toEqual([]);
});

async function runningMachine(): Promise<void> {
  const onCaches = (): void => undefined;
  nodes = new TwoNodes({
    others: {
      loops: loopProgram({ loops: clusterLoops, lease: undefined, onCaches }),
      control: controlProgram({ lease: undefined, onCaches }),
    },
    bytesPerSecond: 20_000_000,
    traits: { bootMs: 0 },
  });
  await nodes.start();
  const template = { spec: { domain: { devices: {}, memory: { guest: '64Mi' } } } };
  const machine: unknown = { metadata: { name: 'web' }, spec: { runStrategy: 'Always', template } };
  await nodes.create(virtualMachines, machine as VirtualMachine);
  await nodes.pass(2000);
  await nodes.guestIs('running', ({ status }) => status?.phase === 'Running');
}

async function move(name: string): Promise<void> {
  const asked: unknown = { metadata: { name }, spec: { vmiName: 'web' } };
  const whole = withMigrationDefaults(asked as VirtualMachineInstanceMigration, { isOwnComponent: false });
  await nodes.create(virtualMachineInstanceMigrations, whole);
}

/** All nodes were heard, and the guest is executed once, by whom the record names. */
async function isWhole(): Promise<boolean> {
  const found = await nodes.foundGuest();
  const { rightToRun: { holder, successor } = {}, phase } = found?.status ?? {};
  const [podUID, ...more] = nodes.executing();
  if (nodes.unheard().length > 0 || phase !== 'Running' || successor !== undefined || more.length > 0) return false;
  return podUID !== undefined && holder?.podUID === podUID;
}

/** Milliseconds since the first move was asked for. The second one is asked for after 12 s; either takes some 5 s. */
const SECOND_MOVE_MS = 12_000;
const BACKUPS_MS = Array.from({ length: 48 }, (_, index) => index * 500);
/** How long after a backup the data is restored: in the middle of a move, after it, and after both. */
const LATER_MS = [1500, 7000, 30_000];
const MOMENTS = BACKUPS_MS.flatMap((atMs) => LATER_MS.map((laterMs) => [atMs, laterMs] as const));

/** What is there of a guest after a backup at one moment of its moves, and a restore some time later. */
async function restored(atMs: number, laterMs: number): Promise<void> {
  await runningMachine();
  const moves = [
    { name: 'there', askedMs: 0 },
    { name: 'back', askedMs: SECOND_MOVE_MS },
  ];
  const startMs = nodes.clock.elapsedMs;
  const passTo = async (untilMs: number): Promise<void> => {
    for (let next = moves[0]; next && next.askedMs <= untilMs; next = moves[0]) {
      moves.shift();
      await nodes.pass(startMs + next.askedMs - nodes.clock.elapsedMs);
      await move(next.name);
    }
    await nodes.pass(startMs + untilMs - nodes.clock.elapsedMs);
  };
  await passTo(atMs);
  const backup = await nodes.backUp();
  await passTo(atMs + laterMs);
  await nodes.restore(backup);
  for (let looks = 0; looks < 300 && !(await isWhole()); looks++) await nodes.pass(2000);
  const status = JSON.stringify((await nodes.foundGuest())?.status, undefined, 1);
  expect(await isWhole(), `${nodes.unheard().join()}\n${status}\n${nodes.trace.last(60).join('\n')}`).toBe(true);
}

describe('a guest of which the data was restored is executed once, and on record', () => {
  it('though nobody who is watched knows what became of it: it went on from where it had gone to', () =>
    restored(0, 30_000));

  it.each(sample(MOMENTS, 5))('from %i ms into its moves, %i ms later', restored);
});
