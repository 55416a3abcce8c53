import type { KubeVirtCondition } from '../../api/kubevirt/condition.ts';
import { isMarked } from '../../api/kubevirt/evacuation.ts';
import type {
  VirtualMachineInstance,
  VirtualMachineInstanceStatus,
} from '../../api/kubevirt/virtual-machine-instance.ts';
import { bytesOf } from '../../api/kubevirt/memory-room.ts';
import { memoryBytesOfPod, socketsOfPod, wantedMemoryBytes, wantedSockets } from '../../api/kubevirt/pod-room.ts';
import { isAway } from '../../api/kubevirt/right-to-run-transition.ts';
import { formatTime } from '../../api/meta.ts';
import { formatQuantity } from '../../api/quantity.ts';
import { findCondition, isConditionTrue, removeCondition, setCondition } from '../../kube/conditions.ts';
import type { PersistentVolumeClaim } from '../../migration/fit/objects.ts';
import { destinationOf, GUEST_MOVED_AWAY } from '../moved-away.ts';
import type { LauncherPod } from '../resources.ts';
import { COMPUTE } from './launcher-pod.ts';
import { guestMemory, memoryOverhead } from './launcher-resources.ts';
import { migratability } from './live-migratable.ts';
import { migratedVolumesOf, volumesChange } from './migrated-volumes.ts';
import { isFinal, isGoingDown, nextPhase } from './phase.ts';
import { volumeStatusOf } from './volume-status.ts';

/** What a guest's status says, of all that its controller writes. The rest is the agent's, and is left as it is. */

export interface Observed {
  readonly guest: VirtualMachineInstance;
  /** The launcher pod that runs the guest, or will. */
  readonly pod: LauncherPod | undefined;
  /** All launcher pods of the guest. */
  readonly pods: readonly LauncherPod[];
  readonly claimOf: (claimName: string) => PersistentVolumeClaim | undefined;
  /** Those of the node that the guest is on. */
  readonly nodeLabels: { readonly [key: string]: string };
  /** Why what was to be done was not. */
  readonly failure: Failure | undefined;
}

export interface Failure {
  readonly reason: string;
  readonly message: string;
}

/** The guest waits for a claim that is not there. */
export const CLAIM_NOT_FOUND = 'FailedPvcNotFound';

/** The fields of the status as they should be; what should be absent is undefined. */
export function statusAfter(observed: Observed, nowMs: number): VirtualMachineInstanceStatus {
  const { guest, pod, pods, claimOf } = observed;
  const { status = {} } = guest;
  const phase = nextPhase(guest, pod, pods.length);
  const isNewPhase = phase !== status.phase;
  // One that was over before it could be told has been all the same.
  const passed = !status.phase && phase === 'Scheduling' ? (['Pending', phase] as const) : [phase];
  const transitions = passed.map((each) => ({ phase: each, phaseTransitionTimestamp: formatTime(nowMs) }));
  const { conditions, method } = migratability(guest, observed);
  const isHanding = phase === 'Scheduled' && isNewPhase;
  return {
    phase,
    phaseTransitionTimestamps: isNewPhase
      ? [...(status.phaseTransitionTimestamps ?? []), ...transitions]
      : status.phaseTransitionTimestamps,
    conditions: conditionsAfter(observed, phase, isFinal(guest) ? [] : conditions, nowMs),
    activePods: activePods(pods),
    migratedVolumes: migratedVolumesOf(guest, pod, claimOf),
    ...(isFinal(guest) ? {} : { migrationMethod: method, volumeStatus: volumeStatusOf(guest, claimOf) }),
    ...(pod ? fromPod(pod, status) : {}),
    ...(isHanding ? { nodeName: pod?.spec?.nodeName, migrationTransport: 'Unix' } : {}),
    // A guest is where it may be executed, as its agent says with the record. Others who write a record leave it to us.
    ...(status.rightToRun?.holder && !isAway(status.rightToRun) ? { nodeName: status.rightToRun.holder.node } : {}),
    ...(status.memory ? {} : sizeOf(guest)),
  };
}

function fromPod(pod: LauncherPod, status: VirtualMachineInstanceStatus): Partial<VirtualMachineInstanceStatus> {
  const image = pod.spec?.containers?.find(({ name }) => name === COMPUTE)?.image;
  const { qosClass = status.qosClass } = pod.status ?? {};
  return { qosClass, launcherContainerImageVersion: image ?? status.launcherContainerImageVersion };
}

/** Pods that have a node and have not ended there. */
function activePods(pods: readonly LauncherPod[]): Record<string, string> | undefined {
  const active = pods.filter(
    ({ spec, status }) => spec?.nodeName && !['Succeeded', 'Failed'].includes(status?.phase ?? ''),
  );
  if (active.length === 0) return undefined;
  return Object.fromEntries(active.map(({ metadata, spec }) => [metadata.uid ?? '', spec?.nodeName ?? '']));
}

/** What the guest starts with. Once said it stays, until somebody plugs in more. */
function sizeOf({ spec }: VirtualMachineInstance): Pick<VirtualMachineInstanceStatus, 'memory' | 'currentCPUTopology'> {
  const memory = guestMemory(spec);
  const { sockets, cores, threads } = spec.domain.cpu ?? {};
  const overhead = { memoryOverhead: formatQuantity(memoryOverhead(spec)) };
  const amount = memory && formatQuantity(memory);
  return {
    memory:
      amount === undefined
        ? overhead
        : { guestAtBoot: amount, guestCurrent: amount, guestRequested: amount, ...overhead },
    currentCPUTopology: { sockets: sockets || 1, cores: cores || 1, threads: threads || 1 },
  };
}

function conditionsAfter(
  { guest, pod, failure, claimOf }: Observed,
  phase: VirtualMachineInstanceStatus['phase'],
  migratability: readonly KubeVirtCondition[],
  nowMs: number,
): KubeVirtCondition[] {
  const wanted: (readonly [string, KubeVirtCondition | undefined])[] = [
    ['Ready', readyCondition(guest, pod)],
    ['PodScheduled', scheduledCondition(pod, failure)],
    ['Synchronized', synchronizedCondition(failure ?? nodeFailure(pod) ?? endOf(guest, pod, phase))],
  ];
  wanted.push(['VolumesChange', volumesChange(migratedVolumesOf(guest, pod, claimOf))]);
  wanted.push(['HotMemoryChange', memoryChange(guest, pod)]);
  wanted.push(['HotVCPUChange', processorChange(guest, pod)], [EVICTION_REQUESTED.type, evictionCondition(guest)]);
  for (const condition of migratability) wanted.push([condition.type, condition]);
  let conditions: readonly KubeVirtCondition[] = guest.status?.conditions ?? [];
  for (const [type, condition] of wanted) {
    const old = findCondition(conditions, type);
    if (!condition) conditions = removeCondition(conditions, type);
    // Reasons of an earlier state must not outlive it.
    else if (old && old.status !== condition.status)
      conditions = setCondition(removeCondition(conditions, type), condition, nowMs);
    else conditions = setCondition(conditions, condition, nowMs);
  }
  return [...conditions];
}

/** As KubeVirt says it to whoever looks at conditions. */
const EVICTION_REQUESTED: KubeVirtCondition = {
  type: 'EvictionRequested',
  status: 'True',
  reason: 'EvictionRequested',
  message: 'VMI is marked for eviction',
};

/** Told only of guests that have to leave the node that they are on. */
function evictionCondition(guest: VirtualMachineInstance): KubeVirtCondition | undefined {
  return isMarked(guest) && !isFinal(guest) ? EVICTION_REQUESTED : undefined;
}

function readyCondition(guest: VirtualMachineInstance, pod: LauncherPod | undefined): KubeVirtCondition {
  const isNot = (reason: string, message: string): KubeVirtCondition => ({
    type: 'Ready',
    status: 'False',
    reason,
    message,
  });
  if (isAway(guest.status?.rightToRun)) return isNot(GUEST_MOVED_AWAY, `The guest went to ${destinationOf(guest)}`);
  if (!pod) return isNot('PodNotExists', 'virt-launcher pod has not yet been scheduled');
  if (isGoingDown(pod)) return isNot('PodTerminating', 'virt-launcher pod is terminating');
  if (guest.status?.phase !== 'Running') return isNot('GuestNotRunning', 'Guest VM is not reported as running');
  // Its launcher says so too, by its readiness gate, but a moment later, and not why.
  if (isConditionTrue(guest.status?.conditions, 'Paused')) return isNot('GuestPaused', 'Guest VM is paused');
  const ready = findPodCondition(pod, 'Ready');
  if (!ready) return isNot('PodConditionMissing', 'virt-launcher pod is missing the Ready condition');
  if (ready.status === 'True') return { type: 'Ready', status: 'True' };
  return isNot(ready.reason ?? 'PodNotReady', ready.message ?? '');
}

/** Processors that the guest is to get: by its next move, unless the pod that it is in was made for them. */
function processorChange(guest: VirtualMachineInstance, pod: LauncherPod | undefined): KubeVirtCondition | undefined {
  const { phase, currentCPUTopology } = guest.status ?? {};
  const [wanted, current = 0] = [wantedSockets(guest), currentCPUTopology?.sockets];
  if (phase !== 'Running' || current === 0 || wanted <= current) return undefined;
  const isHere = pod !== undefined && socketsOfPod(pod) >= wanted;
  const message = `the guest has ${current} sockets, and is to have ${wanted}`;
  return isHere
    ? { type: 'HotVCPUChange', status: 'False', reason: 'Plugging', message }
    : { type: 'HotVCPUChange', status: 'True', reason: 'MigrationNeeded', message };
}

/** Memory, likewise. */
function memoryChange(guest: VirtualMachineInstance, pod: LauncherPod | undefined): KubeVirtCondition | undefined {
  const { phase, memory } = guest.status ?? {};
  const [wanted, current = 0] = [wantedMemoryBytes(guest), bytesOf(memory?.guestCurrent)];
  if (phase !== 'Running' || current === 0 || wanted <= current) return undefined;
  const isHere = pod !== undefined && memoryBytesOfPod(pod) >= wanted;
  const message = `the guest has ${memory?.guestCurrent} of memory, and is to have ${guest.spec.domain.memory?.guest}`;
  return isHere
    ? { type: 'HotMemoryChange', status: 'False', reason: 'Plugging', message }
    : { type: 'HotMemoryChange', status: 'True', reason: 'MigrationNeeded', message };
}

/** Told only where no node was found. */
function scheduledCondition(pod: LauncherPod | undefined, failure: Failure | undefined): KubeVirtCondition | undefined {
  if (!pod && failure?.reason === CLAIM_NOT_FOUND)
    return { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: failure.message };
  const scheduled = pod && findPodCondition(pod, 'PodScheduled');
  if (scheduled?.status !== 'False') return undefined;
  const { reason = '', message = '' } = scheduled;
  return { type: 'PodScheduled', status: 'False', reason, message };
}

/** What of a pod's status says how it ended. */
interface PodEnd {
  readonly phase?: string;
  readonly reason?: string;
  readonly message?: string;
}

/** How a guest failed, by its launcher; that stays said when the launcher is gone. */
function endOf(
  { status }: VirtualMachineInstance,
  pod: LauncherPod | undefined,
  phase: VirtualMachineInstanceStatus['phase'],
): Failure | undefined {
  if (phase !== 'Failed') return undefined;
  const { phase: podPhase, reason, message = '' }: PodEnd = pod?.status ?? {};
  // Whoever told it to go knows why.
  if (podPhase === 'Failed' && reason !== undefined) return reason === 'Quit' ? undefined : { reason, message };
  const known = findCondition(status?.conditions, 'Synchronized');
  return known?.status === 'False' ? { reason: known.reason ?? '', message: known.message ?? '' } : undefined;
}

function synchronizedCondition(failure: Failure | undefined): KubeVirtCondition | undefined {
  return failure && { type: 'Synchronized', status: 'False', ...failure };
}

/** A kubelet's words for a pod of which all goes well. */
const PLAIN_WAITS: ReadonlySet<string> = new Set(['', 'ContainerCreating', 'PodInitializing']);

/** What the node misses, an image or a volume, keeps the guest from starting as much as anything that we failed to do. */
function nodeFailure(pod: LauncherPod | undefined): Failure | undefined {
  for (const { state } of pod?.status?.containerStatuses ?? []) {
    const { reason, message = '' } = state?.waiting ?? {};
    if (reason !== undefined && !PLAIN_WAITS.has(reason)) return { reason, message };
  }
  return undefined;
}

function findPodCondition(pod: LauncherPod, type: string) {
  return pod.status?.conditions?.find((condition) => condition.type === type);
}
