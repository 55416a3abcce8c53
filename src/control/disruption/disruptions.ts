import { withCause } from '../../api/kubevirt/evacuation.ts';
import type { EvacuationCause } from '../../api/kubevirt/evacuation-cause.ts';
import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { formatTime } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import type { Clock } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import { Controller, type Result } from '../../kube/controller.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import type { Informer } from '../../kube/informer.ts';
import { kubeVirts, virtualMachineInstances } from '../../kube/kubevirt-resources.ts';
import { controllerOf } from '../../kube/owner.ts';
import { keyOf } from '../../kube/resource.ts';
import type { Service } from '../../kube/service.ts';
import { statusPatch } from '../../kube/status-patch.ts';
import { dispositionOf, disruptionDeadlineMs, type Hold } from '../../migration/disruption/disposition.ts';
import { deletionOf } from '../../migration/disruption/disruption.ts';
import type { Node } from '../../migration/fit/objects.ts';
import { configurationOf, type ControlContext } from '../context.ts';
import { type LauncherPod, nodes, pods } from '../resources.ts';
import { disruptedNodesOf, isCriticalPreemptor, nominatedNodesOf } from './pods-of-nodes.ts';

/** Those of a whole node are driven away at once, and each has its deadline. */
const WORKERS = 16;
/** How soon it is looked again when somebody else wrote at the same time. */
const RECHECK_MS = 200;

/**
 * Makes evictions of preemptions and of NoExecute taints: the guest of a launcher pod that is being deleted for one of them
 * is marked, with the time by which it must be gone, as if its pod had been evicted by the API. Whoever moves marked
 * guests moves it then; its agent holds it meanwhile. Keyed by pods.
 */
export class Disruptions implements Service {
  readonly name = 'disruptions';
  readonly #clock: Clock;
  readonly #client: Client;
  readonly #recorder: Pick<EventRecorder, 'event'>;
  readonly #pods: Informer<LauncherPod>;
  readonly #guests: Informer<VirtualMachineInstance>;
  readonly #nodes: Informer<Node>;
  readonly #configuration: () => KubeVirtConfiguration;
  readonly #controller: Controller;

  constructor({ env, client, recorder, informers, metrics }: ControlContext) {
    this.#clock = env.clock;
    this.#client = client;
    this.#recorder = recorder;
    this.#pods = informers.of(pods, { disruptedOn: disruptedNodesOf, nominatedTo: nominatedNodesOf });
    this.#guests = informers.of(virtualMachineInstances);
    this.#nodes = informers.of(nodes);
    this.#configuration = configurationOf(informers);
    this.#controller = new Controller({
      name: 'disruption-controller',
      env,
      workers: WORKERS,
      reconcile: (key, signal) => this.#reconcile(key, signal),
      ...(metrics ? { metrics } : {}),
    });
    this.#pods.onChange(({ object, old }) => {
      if (disruptedNodesOf(object).length > 0) this.#controller.enqueue(keyOf(object));
      // Who waits for the room is told only after the room is being made.
      for (const node of new Set([...nominatedNodesOf(object), ...(old ? nominatedNodesOf(old) : [])]))
        this.#wake(node);
    });
    this.#nodes.onChange(({ object }) => this.#wake(object.metadata.name ?? ''));
    this.#guests.onChange(({ object }) => this.#wake(object.status?.nodeName ?? ''));
    informers.of(kubeVirts).onChange(() => {
      for (const pod of this.#pods.list()) if (disruptedNodesOf(pod).length > 0) this.#controller.enqueue(keyOf(pod));
    });
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#controller.run(signal);
  }

  #wake(node: string): void {
    if (this.#pods.countByIndex('disruptedOn', node) === 0) return;
    for (const pod of this.#pods.byIndex('disruptedOn', node)) this.#controller.enqueue(keyOf(pod));
  }

  async #reconcile(key: string, signal: AbortSignal): Promise<Result | void> {
    const pod = this.#pods.get(key);
    const guest = pod && this.#guestOf(pod);
    if (!pod || !guest) return;
    const node = this.#nodes.get(pod.spec?.nodeName ?? '');
    const ground = { pod, guest, configuration: this.#configuration(), node };
    const hold = dispositionOf(ground);
    if (hold === 'stop') return;
    const isCritical = hold.cause === 'Preemption' && this.#isRoomForCritical(pod.spec?.nodeName ?? '');
    const cause = causeOf(hold, pod, disruptionDeadlineMs(ground, isCritical), this.#clock.now());
    const body = statusPatch(guest, withCause(guest, cause));
    if (!body) return;
    const { namespace = '', name = '' } = guest.metadata;
    try {
      // For the version that was looked at: others mark guests, too.
      const patch = { type: 'merge', body } as const;
      await this.#client.patch(virtualMachineInstances, namespace, name, patch, signal, { subresource: 'status' });
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) return;
      if (error instanceof ApiError && error.code === 409) return { requeueAfterMs: RECHECK_MS };
      throw error;
    }
    this.#tellPeople(guest, pod, hold, cause);
  }

  /** The guest that a pod executes: any other pod of its, such as one that it was to move to, is no loss. */
  #guestOf(pod: LauncherPod): VirtualMachineInstance | undefined {
    const owner = controllerOf(pod);
    const guest = this.#guests.get(`${pod.metadata.namespace ?? ''}/${owner?.name ?? ''}`);
    const { rightToRun, nodeName } = guest?.status ?? {};
    const isHolder = guest?.metadata.uid === owner?.uid && rightToRun?.holder?.podUID === pod.metadata.uid;
    // A mark is for the node that the guest is said to be on; that is told a moment after it has moved.
    return isHolder && nodeName === pod.spec?.nodeName ? guest : undefined;
  }

  #isRoomForCritical(node: string): boolean {
    return this.#pods.byIndex('nominatedTo', node).some(isCriticalPreemptor);
  }

  #tellPeople(guest: VirtualMachineInstance, pod: LauncherPod, { mover }: Hold, cause: EvacuationCause): void {
    const isKnown = guest.status?.evacuationCauses?.some(({ podUID }) => podUID === pod.metadata.uid) === true;
    const what = mover === 'Us' ? 'it is to move' : 'somebody else is to move it';
    const message = `${cause.message}: ${what} by ${cause.deadline}`;
    if (!isKnown) this.#recorder.event(guest, 'Warning', 'Disrupted', message);
  }
}

const MESSAGES: Readonly<Record<Hold['cause'], string>> = {
  Preemption: 'preempted to accommodate a pod of higher priority',
  NoExecuteTaint: 'driven away by a NoExecute taint',
};

function causeOf({ cause }: Hold, pod: LauncherPod, deadlineMs: number, nowMs: number): EvacuationCause {
  const { name = '', uid = '' } = pod.metadata;
  return {
    cause,
    since: formatTime(deletionOf(pod)?.askedMs ?? nowMs),
    deadline: formatTime(deadlineMs),
    podUID: uid,
    message: `pod ${name} was ${MESSAGES[cause]}`,
  };
}
