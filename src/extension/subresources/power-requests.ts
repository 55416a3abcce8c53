import { grantedAwayFix } from '../../api/kubevirt/granted-away.ts';
import { effectiveRunStrategy, type RunStrategy } from '../../api/kubevirt/run-strategy.ts';
import { PAUSED_START } from '../../api/kubevirt/state-change-request.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { JsonObject } from '../../api/meta.ts';
import { type ApiError, badRequest, conflict } from '../../api/status.ts';
import { unreachable } from '../../api/unreachable.ts';

/**
 * What start, stop and restart write, by the machine's run strategy, as in KubeVirt: where the strategy itself says
 * whether the guest runs, it is changed; where users say it, a request is left for the controller. Pure.
 */

export interface PowerOptions {
  /** Of start: the guest is held before its first instruction. */
  readonly paused?: boolean;
  /** How long the guest has to shut down; in KubeVirt's bodies it is called so for stop, and has its unit for restart. */
  readonly gracePeriod?: number | null;
  readonly gracePeriodSeconds?: number | null;
}

/** Merge patches; each goes with the resource version of what was decided on. */
export interface PowerPlan {
  readonly machine?: JsonObject;
  readonly machineStatus?: JsonObject;
  /** Comes first. */
  readonly guest?: JsonObject;
}

export type PowerAction = 'start' | 'stop' | 'restart';

type Guest = VirtualMachineInstance | undefined;

/** What to write. Throws why nothing is to be. */
export function planPower(
  action: PowerAction,
  machine: VirtualMachine,
  guest: Guest,
  options: PowerOptions,
): PowerPlan {
  switch (action) {
    case 'start':
      return planStart(machine, guest, options);
    case 'stop':
      return planStop(machine, guest, options);
    case 'restart':
      return planRestart(machine, guest, options);
    default:
      return unreachable(action);
  }
}

function planStart(machine: VirtualMachine, guest: Guest, { paused }: PowerOptions): PowerPlan {
  if (guest && isAlive(guest)) throw refusal(machine, 'VM is already running');
  if (machine.status?.rightToRun?.grantedAway === true && !guest) throw grantedAway(machine);
  const strategy = effectiveRunStrategy(machine.spec);
  const start = { action: 'Start', ...(paused ? { data: PAUSED_START } : {}) };
  switch (strategy) {
    case 'Halted':
      // The strategy cannot say it; a request can, and the controller changes the strategy on its account.
      if (paused && machine.spec.template.spec?.startStrategy !== 'Paused') return requests(machine, [start]);
      return { machine: { spec: running(machine, true) } };
    case 'Manual':
      return requests(machine, guest ? [stopOf(guest), start] : [start]);
    case 'RerunOnFailure':
      if (guest?.status?.phase === 'Failed')
        throw refusal(machine, 'RerunOnFailure does not support starting VM from failed state');
      return requests(machine, guest?.status?.phase === 'Succeeded' ? [stopOf(guest), start] : [start]);
    case 'Always':
    case 'Once':
    case 'WaitAsReceiver':
      throw refusal(machine, `${strategy} does not support manual start requests`);
    default:
      return unreachable(strategy);
  }
}

function planStop(machine: VirtualMachine, guest: Guest, { gracePeriod }: PowerOptions): PowerPlan {
  if (gracePeriod !== undefined && gracePeriod !== null && gracePeriod < 0)
    throw badRequest('gracePeriod has to be greater or equal to 0');
  const strategy = effectiveRunStrategy(machine.spec);
  const shorter = guest && !isFinal(guest) ? graceOf(gracePeriod) : {};
  switch (strategy) {
    case 'Halted':
      if (!guest || isFinal(guest)) throw refusal(machine, NOT_RUNNING);
      if (!isShorter(guest, gracePeriod))
        throw refusal(machine, 'Halted only supports manual stop requests with a shorter graceperiod');
      // It is being stopped already: all that changes is how long that may take.
      return shorter;
    case 'Manual':
    case 'RerunOnFailure':
      if (!guest || isFinal(guest)) throw refusal(machine, NOT_RUNNING);
      return { ...shorter, ...requests(machine, [stopOf(guest)]) };
    case 'Always':
    case 'Once':
    case 'WaitAsReceiver':
      return { ...shorter, machine: { spec: running(machine, false) } };
    default:
      return unreachable(strategy);
  }
}

/** Strategies under which a guest that was stopped is started by nobody. */
const NOT_RESTARTED: readonly RunStrategy[] = ['Halted', 'Once', 'WaitAsReceiver'];

function planRestart(machine: VirtualMachine, guest: Guest, { gracePeriodSeconds }: PowerOptions): PowerPlan {
  if (gracePeriodSeconds && gracePeriodSeconds > 0)
    throw badRequest('For force restart, only gracePeriod=0 is supported for now');
  if (gracePeriodSeconds && gracePeriodSeconds < 0) throw badRequest('gracePeriod has to be greater or equal to 0');
  const strategy = effectiveRunStrategy(machine.spec);
  if (NOT_RESTARTED.includes(strategy))
    throw refusal(machine, `RunStrategy ${strategy} does not support manual restart requests`);
  if (!guest) throw refusal(machine, `${NOT_RUNNING}: Halted`);
  return { ...graceOf(gracePeriodSeconds), ...requests(machine, [stopOf(guest), { action: 'Start' }]) };
}

const NOT_RUNNING = 'VM is not running';

function grantedAway(machine: VirtualMachine): ApiError {
  const { namespace = '', name = '' } = machine.metadata;
  return refusal(machine, `its guest went to another namespace or cluster; ${grantedAwayFix(namespace, name)}`);
}

/** As KubeVirt words it: with the kind in singular. */
function refusal({ metadata }: VirtualMachine, detail: string): ApiError {
  return conflict({ group: 'kubevirt.io', plural: 'virtualmachine' }, metadata.name ?? '', detail);
}

function isFinal({ status }: VirtualMachineInstance): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}

function isAlive(guest: VirtualMachineInstance): boolean {
  const phase = guest.status?.phase ?? '';
  return !isFinal(guest) && phase !== '' && phase !== 'Unknown';
}

/** Whoever once said it by `running` goes on to do so. */
function running({ spec }: VirtualMachine, shouldRun: boolean): JsonObject {
  if (spec.runStrategy === undefined && spec.running !== undefined) return { running: shouldRun };
  return { runStrategy: shouldRun ? 'Always' : 'Halted' };
}

function graceOf(seconds: number | null | undefined): PowerPlan {
  if (seconds === undefined || seconds === null) return {};
  return { guest: { spec: { terminationGracePeriodSeconds: seconds } } };
}

function isShorter({ spec }: VirtualMachineInstance, seconds: number | null | undefined): boolean {
  if (seconds === undefined || seconds === null) return false;
  const { terminationGracePeriodSeconds: present } = spec;
  return present === undefined || seconds < present;
}

function stopOf({ metadata }: VirtualMachineInstance): JsonObject {
  return { action: 'Stop', uid: metadata.uid ?? '' };
}

/** A stop overrules what was asked before; anything else has to wait until that is done. */
function requests(machine: VirtualMachine, changes: JsonObject[]): PowerPlan {
  const { stateChangeRequests = [], startFailure } = machine.status ?? {};
  const isStop = changes.length === 1 && changes[0]?.['action'] === 'Stop';
  if (stateChangeRequests.length > 0 && !isStop)
    throw refusal(machine, 'unable to complete request: stop/start already underway');
  // Whoever asks by hand does not want to wait for what failed before.
  return {
    machineStatus: { status: { stateChangeRequests: changes, ...(startFailure ? { startFailure: null } : {}) } },
  };
}
