import type { KubeVirtCondition } from '../../api/kubevirt/condition.ts';
import { grantedAwayFix } from '../../api/kubevirt/granted-away.ts';
import { isAway } from '../../api/kubevirt/right-to-run-transition.ts';
import { effectiveRunStrategy } from '../../api/kubevirt/run-strategy.ts';
import type { VirtualMachine, VirtualMachineStatus } from '../../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { Env } from '../../env/ports.ts';
import { findCondition, isConditionTrue, removeCondition, setCondition } from '../../kube/conditions.ts';
import { GENERATION_ANNOTATION } from '../../api/kubevirt/well-known.ts';
import { type Decision, isStartRefused, openRequests } from './decide.ts';
import type { ClaimChange } from '../claim-changes.ts';
import { destinationOf, GUEST_MOVED_AWAY } from '../moved-away.ts';
import type { LiveUpdate } from './live-update.ts';
import { printableStatus } from './printable-status.ts';
import { volumeUpdateState } from './volume-migration.ts';
import { crashLoopFailure, startFailureAfter } from './start-failure.ts';

/** What a machine's status says, of all that its controller writes. */

export interface Outcome {
  readonly decision: Decision;
  /** Why what was to be done was not. */
  readonly failure?: { readonly reason: string; readonly message: string } | undefined;
  readonly references: Pick<VirtualMachineStatus, 'instancetypeRef' | 'preferenceRef'>;
  readonly isUnbound: boolean;
  /** What becomes of changes of the machine that its guest was not made with. */
  readonly update: LiveUpdate;
  /** Volumes whose contents are on other claims than the template names. */
  readonly uncopied: readonly ClaimChange[];
}

/** The fields of the status as they should be; what should be absent is undefined. */
export function statusAfter(
  machine: VirtualMachine,
  guest: VirtualMachineInstance | undefined,
  outcome: Outcome,
  env: Pick<Env, 'clock' | 'random'>,
): VirtualMachineStatus {
  const { decision, failure, references, isUnbound } = outcome;
  const { status = {}, metadata } = machine;
  const startFailure = startFailureAfter(machine, guest, env);
  // What was refused is not served later, when nobody thinks of it any more.
  const isRefused = isStartRefused(machine, guest);
  const requests = isRefused ? [] : openRequests(status.stateChangeRequests ?? [], guest, decision);
  const isStarting = decision.action === 'start' && !failure;
  return {
    printableStatus: printableStatus({
      machine: { ...machine, status: { ...status, startFailure } },
      guest,
      isStarting,
      isStopping: decision.action === 'stop',
      isUnbound: isUnbound && (isStarting || guest !== undefined),
    }),
    created: guest !== undefined || undefined,
    ready: isConditionTrue(guest?.status?.conditions, 'Ready') || undefined,
    conditions: conditionsAfter(
      machine,
      guest,
      failure ?? crashLoopFailure(machine, guest, startFailure),
      outcome.update,
      env.clock.now(),
    ),
    // A strategy that could not be acted on is still to be acted on.
    runStrategy: failure ? status.runStrategy : effectiveRunStrategy(machine.spec),
    desiredGeneration: metadata.generation,
    observedGeneration: observedGeneration(guest) ?? status.observedGeneration,
    stateChangeRequests: requests.length > 0 ? [...requests] : undefined,
    startFailure,
    volumeUpdateState: volumeUpdateState(outcome.uncopied),
    rightToRun: rememberedRight(status, guest),
    ...references,
  };
}

function observedGeneration(guest: VirtualMachineInstance | undefined): number | undefined {
  const generation = Number(guest?.metadata.annotations?.[GENERATION_ANNOTATION]);
  return Number.isSafeInteger(generation) ? generation : undefined;
}

/** A guest made anew must begin in a later epoch than all before it, on the disks that they left. */
function rememberedRight(
  { rightToRun: known }: VirtualMachineStatus,
  guest: VirtualMachineInstance | undefined,
): VirtualMachineStatus['rightToRun'] {
  const record = guest?.status?.rightToRun;
  if (record === undefined || (known && known.epoch >= record.epoch)) return known;
  const { epoch, volumes = known?.volumes } = record;
  return { epoch, ...(isAway(record) ? { grantedAway: true } : {}), ...(volumes ? { volumes } : {}) };
}

/** Conditions of a machine's own; all others are those of its guest. */
const OWN: ReadonlySet<string> = new Set(['Ready', 'Failure', 'RestartRequired', GUEST_MOVED_AWAY]);

function conditionsAfter(
  machine: VirtualMachine,
  guest: VirtualMachineInstance | undefined,
  failure: Pick<KubeVirtCondition, 'reason' | 'message'> | undefined,
  update: LiveUpdate,
  nowMs: number,
): KubeVirtCondition[] {
  const own = (machine.status?.conditions ?? []).filter(({ type }) => OWN.has(type));
  const theirs = (guest?.status?.conditions ?? []).filter(({ type }) => !OWN.has(type));
  const ready: KubeVirtCondition = findCondition(guest?.status?.conditions, 'Ready') ?? {
    type: 'Ready',
    status: 'False',
    reason: 'VMINotExists',
    message: 'VMI does not exist',
  };
  // Replaced, not merged: what the guest's condition does not say is not said.
  const known = findCondition(own, 'Ready');
  const since = known?.status === ready.status ? known.lastTransitionTime : undefined;
  const withReady = setCondition(
    removeCondition(own, 'Ready'),
    { ...ready, ...(since === undefined ? {} : { lastTransitionTime: since }) },
    nowMs,
  );
  const withFailure = failure
    ? setCondition(withReady, { type: 'Failure', status: 'True', ...failure }, nowMs)
    : removeCondition(withReady, 'Failure');
  const withRestart =
    update.action === 'restart'
      ? setCondition(withFailure, { type: 'RestartRequired', status: 'True', message: update.message }, nowMs)
      : removeCondition(withFailure, 'RestartRequired');
  const all = withDestination(withRestart, machine, guest, nowMs);
  return [...all, ...theirs].toSorted((a, b) => (a.type < b.type ? -1 : 1));
}

/** Where the guest went stays said until it is back, or reclaimed. */
function withDestination(
  conditions: readonly KubeVirtCondition[],
  machine: VirtualMachine,
  guest: VirtualMachineInstance | undefined,
  nowMs: number,
): readonly KubeVirtCondition[] {
  const { status = {}, metadata } = machine;
  if (rememberedRight(status, guest)?.grantedAway !== true) return removeCondition(conditions, GUEST_MOVED_AWAY);
  if (!guest || !isAway(guest.status?.rightToRun)) return conditions;
  const fix = grantedAwayFix(metadata.namespace ?? '', metadata.name ?? '');
  const message = `The guest went to ${destinationOf(guest)}: ${fix}`;
  return setCondition(conditions, { type: GUEST_MOVED_AWAY, status: 'True', reason: 'Migrated', message }, nowMs);
}
