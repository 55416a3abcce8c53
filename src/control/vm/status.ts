import type { KubeVirtCondition } from '../../api/kubevirt/condition.ts';
import { effectiveRunStrategy } from '../../api/kubevirt/run-strategy.ts';
import type { VirtualMachine, VirtualMachineStatus } from '../../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { Env } from '../../env/ports.ts';
import { findCondition, isConditionTrue, removeCondition, setCondition } from '../../kube/conditions.ts';
import { GENERATION_ANNOTATION, TEMPLATE_HASH_ANNOTATION } from '../../api/kubevirt/well-known.ts';
import { type Decision, isFinal, openRequests } from './decide.ts';
import { printableStatus } from './printable-status.ts';
import { crashLoopFailure, startFailureAfter } from './start-failure.ts';
import { templateHash } from './template-hash.ts';

/** What a machine's status says, of all that its controller writes. */

export interface Outcome {
  readonly decision: Decision;
  /** Why what was to be done was not. */
  readonly failure?: { readonly reason: string; readonly message: string } | undefined;
  readonly references: Pick<VirtualMachineStatus, 'instancetypeRef' | 'preferenceRef'>;
  readonly isUnbound: boolean;
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
  const requests = openRequests(status.stateChangeRequests ?? [], guest, decision);
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
      env.clock.now(),
    ),
    // A strategy that could not be acted on is still to be acted on.
    runStrategy: failure ? status.runStrategy : effectiveRunStrategy(machine.spec),
    desiredGeneration: metadata.generation,
    observedGeneration: observedGeneration(guest) ?? status.observedGeneration,
    stateChangeRequests: requests.length > 0 ? [...requests] : undefined,
    startFailure,
    rightToRun: rememberedRight(status, guest),
    ...references,
  };
}

function observedGeneration(guest: VirtualMachineInstance | undefined): number | undefined {
  const generation = Number(guest?.metadata.annotations?.[GENERATION_ANNOTATION]);
  return Number.isSafeInteger(generation) ? generation : undefined;
}

/** A guest made anew must begin in a later epoch than all before it. */
function rememberedRight(
  { rightToRun: known }: VirtualMachineStatus,
  guest: VirtualMachineInstance | undefined,
): VirtualMachineStatus['rightToRun'] {
  const epoch = guest?.status?.rightToRun?.epoch;
  if (epoch === undefined || (known && known.epoch >= epoch)) return known;
  return { ...known, epoch };
}

/** Conditions of a machine's own; all others are those of its guest. */
const OWN: ReadonlySet<string> = new Set(['Ready', 'Failure', 'RestartRequired']);

function conditionsAfter(
  machine: VirtualMachine,
  guest: VirtualMachineInstance | undefined,
  failure: Pick<KubeVirtCondition, 'reason' | 'message'> | undefined,
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
  const all = needsRestart(machine, guest)
    ? setCondition(withFailure, RESTART_REQUIRED, nowMs)
    : removeCondition(withFailure, RESTART_REQUIRED.type);
  return [...all, ...theirs].toSorted((a, b) => (a.type < b.type ? -1 : 1));
}

const RESTART_REQUIRED: KubeVirtCondition = {
  type: 'RestartRequired',
  status: 'True',
  message: 'a non-live-updatable field was changed in the template spec',
};

/** Whether the guest was made from another template than it would be now. Nothing of it is changed while it runs. */
function needsRestart(machine: VirtualMachine, guest: VirtualMachineInstance | undefined): boolean {
  const made = guest?.metadata.annotations?.[TEMPLATE_HASH_ANNOTATION];
  return guest !== undefined && !isFinal(guest) && made !== undefined && made !== templateHash(machine);
}
