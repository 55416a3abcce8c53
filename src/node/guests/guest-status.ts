import type { KubeVirtCondition } from '../../api/kubevirt/condition.ts';
import type {
  VirtualMachineInstance,
  VirtualMachineInstancePhase,
  VirtualMachineInstanceStatus,
} from '../../api/kubevirt/virtual-machine-instance.ts';
import type { Runner } from '../../api/kubevirt/right-to-run.ts';
import { formatTime } from '../../api/meta.ts';
import type { MachineEnd, MachineStatus } from '../../hypervisor/hypervisor.ts';
import type { AgentSight } from '../guest-agent/guest-agents.ts';
import { removeCondition, setCondition } from '../../kube/conditions.ts';
import { isSameRunner } from '../../migration/right-to-run/attempt.ts';
import type { Standing } from '../../migration/right-to-run/standing.ts';
import type { Cause } from './pod-status.ts';

/** What a guest's status says, of all that the agent of its node writes. The rest is left as it is. */

export interface GuestFacts {
  readonly guest: VirtualMachineInstance;
  readonly self: Runner;
  readonly standing: Standing;
  /** What its machine is doing, where it has one that answers. */
  readonly status: MachineStatus | undefined;
  /** What is known of the agent in it. */
  readonly agent?: AgentSight | undefined;
  /** How its machine ended, where that is known. */
  readonly end: MachineEnd | undefined;
}

type Told = Pick<VirtualMachineInstanceStatus, 'phase' | 'phaseTransitionTimestamps' | 'conditions' | 'guestOSInfo'>;

/** The fields as they should be; none where there is nothing to say. */
export function guestStatus(facts: GuestFacts, nowMs: number): Told {
  const { guest, standing, status } = facts;
  if (isFinal(guest)) return {};
  if (standing.kind === 'holding' && !standing.mustContinue && isRecorded(facts)) {
    if (status === 'running') return told(facts, 'Running', undefined, nowMs);
    // It stands still because it is being moved.
    if (standing.reserved && !standing.isPaused) return {};
    if (status === 'paused')
      return told(facts, 'Running', isHeldByError(guest) ? PAUSED_BY_ERROR : PAUSED_BY_USER, nowMs);
    if (status === 'disk-error') return told(facts, 'Running', PAUSED_BY_ERROR, nowMs);
    return {};
  }
  const { rightToRun } = guest.status ?? {};
  // Where there never was a record, the controller knows better.
  if (standing.kind !== 'ended' || rightToRun === undefined) return {};
  const { holder } = rightToRun;
  // Whoever has the right now knows better, or had it last.
  const isOwn = holder ? isSameRunner(holder, facts.self) : guest.status?.nodeName === facts.self.node;
  if (!isOwn) return {};
  if (standing.givenTo === undefined) return ended(facts, nowMs);
  // Nobody is left who could say how it ended there.
  const isLost = holder === undefined && standing.isAcross !== true;
  return isLost ? failed(facts, lostWith(standing.givenTo), nowMs) : {};
}

function lostWith({ node }: Runner): Cause {
  return { reason: 'GuestLost', message: `the guest was lost with node ${node}, which had taken it over` };
}

function ended(facts: GuestFacts, nowMs: number): Told {
  const { end } = facts;
  if (hasSucceeded(end)) return over(facts, 'Succeeded', nowMs);
  return end?.reason === 'Quit' ? over(facts, 'Failed', nowMs) : failed(facts, causeOf(end), nowMs);
}

/** Why goes with the word that it failed: whoever acts on that may delete the guest before its pod has said it. */
function failed(facts: GuestFacts, cause: Cause, nowMs: number): Told {
  const last = over(facts, 'Failed', nowMs);
  const failure: KubeVirtCondition = { type: 'Synchronized', status: 'False', ...cause };
  return { ...last, conditions: [...setCondition(last.conditions ?? [], failure, nowMs)] };
}

function over(facts: GuestFacts, phase: 'Succeeded' | 'Failed', nowMs: number): Told {
  return told({ ...facts, agent: 'absent' }, phase, undefined, nowMs);
}

/** How much of what a machine printed last is told. */
const LOG_LINES_MAX = 5;

/** Why a machine ended, with the last that it said. */
export function causeOf(end: MachineEnd | undefined): Cause {
  if (!end) return { reason: 'Unknown', message: 'the machine ended while nobody watched' };
  const said = end.log.slice(-LOG_LINES_MAX);
  return { reason: end.reason, message: [end.message, ...said].join('\n') };
}

/** A guest that turned itself off has done what it was there for. All else was done to it. */
export function hasSucceeded(end: MachineEnd | undefined): boolean {
  return end?.reason === 'GuestShutDown';
}

/** Whether an error held the guest, and it has not run since. After it was moved, or was to be, its machine says only that it stands. */
function isHeldByError({ status }: VirtualMachineInstance): boolean {
  const { type, reason } = PAUSED_BY_ERROR;
  return status?.conditions?.some((each) => each.type === type && each.reason === reason) === true;
}

function isFinal({ status }: VirtualMachineInstance): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}

function isRecorded({ guest, self, standing }: GuestFacts): boolean {
  const { rightToRun } = guest.status ?? {};
  const epoch = standing.kind === 'holding' ? standing.epoch : undefined;
  return rightToRun?.epoch === epoch && isSameRunner(rightToRun?.holder, self);
}

const PAUSED_BY_USER: KubeVirtCondition = {
  type: 'Paused',
  status: 'True',
  reason: 'PausedByUser',
  message: 'VMI was paused by user',
};
const PAUSED_BY_ERROR: KubeVirtCondition = {
  type: 'Paused',
  status: 'True',
  reason: 'PausedIOError',
  message: 'VMI was paused, low-level IO error detected',
};

const AGENT_CONNECTED: KubeVirtCondition = { type: 'AgentConnected', status: 'True' };

function told(
  { guest: { status = {} }, agent = 'unknown' }: GuestFacts,
  phase: VirtualMachineInstancePhase,
  paused: KubeVirtCondition | undefined,
  nowMs: number,
): Told {
  const known = withAgent(status.conditions ?? [], agent, nowMs);
  const conditions = paused ? setCondition(known, paused, nowMs) : removeCondition(known, 'Paused');
  const transitions = status.phaseTransitionTimestamps;
  const isNew = status.phase !== phase;
  return {
    phase,
    phaseTransitionTimestamps: isNew
      ? [...(transitions ?? []), { phase, phaseTransitionTimestamp: formatTime(nowMs) }]
      : transitions,
    conditions: status.conditions === undefined && conditions.length === 0 ? undefined : [...conditions],
    // What an agent said of its guest stays true when the agent has gone.
    ...(typeof agent === 'object' ? { guestOSInfo: agent.os } : {}),
  };
}

function withAgent(
  conditions: readonly KubeVirtCondition[],
  agent: AgentSight,
  nowMs: number,
): readonly KubeVirtCondition[] {
  if (agent === 'unknown') return conditions;
  if (agent === 'absent') return removeCondition(conditions, AGENT_CONNECTED.type);
  return setCondition(conditions, AGENT_CONNECTED, nowMs);
}
