import type { RightToRun, Runner } from '../../api/kubevirt/right-to-run.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { JsonObject } from '../../api/meta.ts';
import type { ApiError } from '../../api/status.ts';
import { isSameRunner } from '../../migration/right-to-run/attempt.ts';
import { reclaim } from '../../migration/right-to-run/seize.ts';
import { failed, objectionOf, type ReclaimFacts, type ReclaimPlan } from './reclaim-plan.ts';

/**
 * What is written when an admin says which copy of a guest counts, of one that is of this cluster alone: where data that was
 * restored and a journal disagree, where a journal is lost, or where a node is gone whose object was deleted.
 *
 *   keep a node   its pod is named as the next to have the right; its agent, which executes the guest, writes itself in
 *   afresh        nobody has the right: whoever executes the guest ends it, and the machine can start it anew
 */

/** Which copy counts. */
export type Keeping = { readonly kind: 'afresh' } | { readonly kind: 'keep'; readonly node: string };

/** What to write. Throws why nothing is to be. */
export function planReclaimWithin(facts: ReclaimFacts, keeping: Keeping): ReclaimPlan {
  const { machine, guest, nowMs } = facts;
  const record = guest?.status?.rightToRun;
  if (!guest || !record) throw objectionOf(machine, 'nobody has had the right to run its guest');
  if (record.across === true)
    throw objectionOf(machine, 'its guest goes to another namespace or cluster: reclaim it without keep and afresh');
  const { phase } = guest.status ?? {};
  const isOver = phase === 'Succeeded' || phase === 'Failed';
  if (keeping.kind === 'keep') return keep(facts, guest, record, keeping.node);
  if (isOver && !record.holder) throw objectionOf(machine, 'nobody has the right to run its guest already');
  const end = isOver ? {} : failed(guest, nowMs);
  return {
    guest: changesOf(record, undefined).map((rightToRun) => ({ status: { rightToRun, ...end } })),
    message: 'nobody has the right to run the guest; the machine can start it afresh',
  };
}

function keep(
  { machine, keptNodeUID }: ReclaimFacts,
  guest: VirtualMachineInstance,
  record: RightToRun,
  node: string,
): ReclaimPlan {
  const objection = (why: string): ApiError => objectionOf(machine, why);
  const runner = runnerOn(guest, node, keptNodeUID);
  if (!record.holder) throw objection('nobody has the right to run its guest: there is nothing to keep');
  if (!runner) throw objection(`its guest has no launcher pod on a node ${node}`);
  if (isSameRunner(record.holder, runner)) throw objection(`node ${node} has the right to run its guest already`);
  if (isSameRunner(record.successor, runner))
    throw objection(`node ${node} is named as the next already: its agent writes itself in if it executes the guest`);
  return {
    guest: changesOf(record, runner).map((rightToRun) => ({ status: { rightToRun } })),
    message: `the guest goes on at node ${node}, if it is executed there`,
  };
}

/** The guest's launcher pod on a node: as the record knows it, or as the node is now. */
function runnerOn({ status }: VirtualMachineInstance, node: string, nodeUID: string | undefined): Runner | undefined {
  const { rightToRun, activePods = {} } = status ?? {};
  const known = [rightToRun?.successor, rightToRun?.holder].find((runner) => runner?.node === node);
  if (known) return known;
  const podUID = Object.keys(activePods).find((uid) => activePods[uid] === node);
  return podUID === undefined || nodeUID === undefined ? undefined : { node, nodeUID, podUID };
}

/** The records that follow each other, as parts of merge patches. */
function changesOf(record: RightToRun, kept: Runner | undefined): JsonObject[] {
  return reclaim(record, kept).steps.flatMap((step) =>
    step.kind === 'record' ? [{ holder: null, successor: null, ...(step.to as unknown as JsonObject) }] : [],
  );
}
