import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import type { JsonObject } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import type { Env } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import { findCondition } from '../../kube/conditions.ts';
import { Controller, type Result } from '../../kube/controller.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import type { Informer } from '../../kube/informer.ts';
import { keyOf } from '../../kube/resource.ts';
import type { Service } from '../../kube/service.ts';
import { configurationOf, type ControlContext } from '../context.ts';
import { Budgets } from '../disruption-budget/budgets.ts';
import { MovingGuests } from '../moving-guests.ts';
import { controllerOf } from '../../kube/owner.ts';
import { virtualMachineInstanceMigrations, virtualMachineInstances } from '../../kube/kubevirt-resources.ts';
import { deschedulerChanges } from '../descheduler.ts';
import { guestKeyOf, guestKeysOf } from '../migration/keys.ts';
import { type LauncherPod, nodes, persistentVolumeClaims, pods } from '../resources.ts';
import { statusPatch } from '../../kube/status-patch.ts';
import { claimNameOf } from '../volume-claims.ts';
import {
  GUEST_FINALIZER,
  MACHINE_FINALIZER,
  NODE_NAME_LABEL,
  RECEIVER_ANNOTATION,
  SYNCHRONIZATION_FINALIZER,
} from '../../api/kubevirt/well-known.ts';
import type { Node, PersistentVolumeClaim } from '../../migration/fit/objects.ts';
import { wasHandedOff } from '../../migration/halves/past-phases.ts';
import { labelChanges } from './labels.ts';
import { type KubeletLaunchers, launcherName, launcherPod } from './launcher-pod.ts';
import { outdatedLabelChange } from './outdated-launcher.ts';
import { hasArrived, isForgettable, isGoingDown, isHandedOver, needsPod, nextPhase } from './phase.ts';
import { CLAIM_NOT_FOUND, type Failure, statusAfter } from './status.ts';

export interface VirtualMachineInstancesOptions extends ControlContext {
  /** The launcher's image. */
  readonly launcherImage: string;
  /** How launcher pods are where kubelets run them; where absent, agents do. */
  readonly kubelets?: KubeletLaunchers | undefined;
}

const WORKERS = 8;
/** When what we read and what we hear disagree, one of them is late: this is how soon we look again. */
const RECHECK_MS = 1000;
/** The pod that a guest has left ends a moment after the guest has come elsewhere: both are told together. */
const ARRIVAL_MS = 200;
/** How soon a pod is tried again that the server refused. */
const RETRY_CREATE_MS = 10_000;

/**
 * Gives each VirtualMachineInstance its launcher pod, hands it over to the agent of the node that the pod got, and lets
 * it go when nobody executes it any more. It writes no phase once an agent has the right to run the guest.
 */
export class VirtualMachineInstances implements Service {
  readonly name = 'virtual machine instances';
  readonly #env: Env;
  readonly #client: Client;
  readonly #recorder: Pick<EventRecorder, 'event'>;
  readonly #launcherImage: string;
  readonly #kubelets: KubeletLaunchers | undefined;
  readonly #guests: Informer<VirtualMachineInstance>;
  readonly #pods: Informer<LauncherPod>;
  readonly #claims: Informer<PersistentVolumeClaim>;
  readonly #nodes: Informer<Node>;
  readonly #migrations: Informer<VirtualMachineInstanceMigration>;
  readonly #configuration: () => KubeVirtConfiguration;
  readonly #budgets: Budgets;
  readonly #controller: Controller;

  constructor(options: VirtualMachineInstancesOptions) {
    const { env, client, recorder, informers, metrics, launcherImage } = options;
    this.#env = env;
    this.#client = client;
    this.#recorder = recorder;
    this.#launcherImage = launcherImage;
    this.#kubelets = options.kubelets;
    this.#guests = informers.of(virtualMachineInstances, { claims: claimKeys });
    this.#pods = informers.of(pods, { guest: guestUids });
    this.#claims = informers.of(persistentVolumeClaims);
    // What a node's processor is was said before a guest came there: that nodes change is no news for guests.
    this.#nodes = informers.of(nodes);
    this.#migrations = informers.of(virtualMachineInstanceMigrations, { guest: guestKeysOf });
    this.#configuration = configurationOf(informers);
    this.#budgets = new Budgets(options);
    this.#controller = new Controller({
      name: 'virtualmachineinstance-controller',
      env,
      workers: WORKERS,
      reconcile: (key, signal) => this.#reconcile(key, signal),
      ...(metrics ? { metrics } : {}),
    });
    const moving = new MovingGuests(informers);
    // Of one that is gone nothing is left to do.
    this.#guests.onChange(({ object }) => {
      const afterMs = this.#isArriving(object) ? ARRIVAL_MS : moving.patienceMs(object);
      this.#controller.enqueue(keyOf(object), { afterMs });
    });
    this.#pods.onChange(({ object }) => {
      const { namespace = '' } = object.metadata;
      if (guestUids(object).length > 0) this.#controller.enqueue(`${namespace}/${controllerOf(object)?.name ?? ''}`);
    });
    // Of a guest that is to be deleted: what it waits for may be over.
    this.#migrations.onChange(({ object }) => {
      const guest = this.#guests.get(guestKeyOf(object));
      if (guest?.metadata.deletionTimestamp !== undefined) this.#controller.enqueue(keyOf(guest));
    });
    this.#claims.onChange(({ object }) => {
      for (const guest of this.#guests.byIndex('claims', keyOf(object))) this.#controller.enqueue(keyOf(guest));
    });
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#controller.run(signal);
  }

  async #reconcile(key: string, signal: AbortSignal): Promise<Result | void> {
    const guest = this.#guests.get(key);
    if (!guest) return;
    try {
      if (!(await this.#isHeld(guest, signal))) return;
      return await this.#bring(guest, signal);
    } catch (error) {
      // Somebody else wrote at the same time, or it is gone; we hear of it, and begin anew.
      if (!(error instanceof ApiError)) throw error;
      if (error.code === 404) return;
      if (error.code === 409) return { requeueAfterMs: RECHECK_MS };
      throw error;
    }
  }

  async #bring(guest: VirtualMachineInstance, signal: AbortSignal): Promise<Result | void> {
    const all = this.#pods.byIndex('guest', guest.metadata.uid ?? '');
    let pod = currentPod(guest, all) ?? (await this.#unseenPod(guest, signal));
    let failure: Failure | undefined;
    if (needsPod(guest, pod)) {
      const made = this.#missingClaim(guest) ?? (await this.#create(guest, signal));
      if (made === STALE) return { requeueAfterMs: RECHECK_MS };
      if ('metadata' in made) pod = made;
      else failure = made;
    }
    // What it needs may be known only now; as soon as it is given to an agent it may run.
    if (nextPhase(guest, pod) === 'Scheduled') await this.#budgets.ensure(guest, signal);
    const nodeLabels = this.#nodes.get(guest.status?.nodeName ?? '')?.metadata.labels ?? {};
    const observed = { guest, pod, pods: all, claimOf: this.#claimOf(guest), nodeLabels, failure };
    const told = await this.#tell(guest, statusPatch(guest, statusAfter(observed, this.#env.clock.now())), signal);
    await this.#label(told, signal);
    if (pod && !isGoingDown(pod)) await this.#annotate(told, pod, signal);
    if (guest.metadata.deletionTimestamp !== undefined) await this.#end(told, all, signal);
    if (failure && failure.reason !== CLAIM_NOT_FOUND) return { requeueAfterMs: RETRY_CREATE_MS };
  }

  /** Whether a guest has come to another node, and the pod that it left has not been heard to have ended. */
  #isArriving(guest: VirtualMachineInstance): boolean {
    const { metadata, status } = guest;
    const left = metadata.labels?.[NODE_NAME_LABEL];
    const hasCome = labelChanges(guest)[NODE_NAME_LABEL] !== undefined;
    if (left === undefined || !hasCome || metadata.deletionTimestamp !== undefined) return false;
    const holder = status?.rightToRun?.holder?.podUID;
    return this.#pods.byIndex('guest', metadata.uid ?? '').some((pod) => {
      return pod.spec?.nodeName === left && pod.metadata.uid !== holder && !isGoingDown(pod);
    });
  }

  /** A guest is to be kept until nobody executes it: it says so before anybody can. */
  async #isHeld(guest: VirtualMachineInstance, signal: AbortSignal): Promise<boolean> {
    const { finalizers = [], deletionTimestamp } = guest.metadata;
    if (finalizers.includes(GUEST_FINALIZER) || deletionTimestamp !== undefined) return true;
    await this.#patchMetadata(guest, { finalizers: [...finalizers, GUEST_FINALIZER] }, signal);
    return false;
  }

  /**
   * Pods and guests are heard of separately: a pod that the guest's phase tells of and that is not in the cache may be
   * one that we have not heard of yet. Only the server knows that it is gone.
   */
  async #unseenPod(guest: VirtualMachineInstance, signal: AbortSignal): Promise<LauncherPod | undefined> {
    const phase = guest.status?.phase ?? '';
    if (isHandedOver(guest) || (phase !== 'Scheduling' && phase !== 'Scheduled')) return undefined;
    const { namespace = '', uid } = guest.metadata;
    const pod = await this.#client.find(pods, namespace, launcherName(guest), signal);
    return pod && controllerOf(pod)?.uid === uid ? pod : undefined;
  }

  #missingClaim(guest: VirtualMachineInstance): Failure | undefined {
    const missing = claimKeys(guest).find((key) => !this.#claims.get(key));
    if (missing === undefined) return undefined;
    const message = `PVC ${missing} does not exist, waiting for it to appear`;
    const isNew = findCondition(guest.status?.conditions, 'Synchronized')?.message !== message;
    if (isNew) this.#recorder.event(guest, 'Warning', CLAIM_NOT_FOUND, message);
    return { reason: CLAIM_NOT_FOUND, message };
  }

  async #create(guest: VirtualMachineInstance, signal: AbortSignal): Promise<LauncherPod | Failure> {
    const { namespace = '', name = '', uid, resourceVersion } = guest.metadata;
    // A guest whose pod came and went must not get another one on the word of a late cache.
    const current = await this.#client.get(virtualMachineInstances, namespace, name, signal);
    if (current.metadata.uid !== uid || current.metadata.resourceVersion !== resourceVersion) return STALE;
    const claimOf = this.#claimOf(guest);
    const isBlock = (claim: string): boolean => claimOf(claim)?.spec?.volumeMode === 'Block';
    const [image, kubelets] = [this.#launcherImage, this.#kubelets];
    const options = { image, kubelets, configuration: this.#configuration(), isBlock };
    // First: from its first moment on the pod is kept, also where no webhook is there to be asked.
    await this.#budgets.ensure(guest, signal);
    try {
      const pod = await this.#client.create(pods, launcherPod(guest, options) as LauncherPod, signal);
      this.#recorder.event(guest, 'Normal', 'SuccessfulCreate', `Created virtual machine pod ${pod.metadata.name}`);
      return pod;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.code === 409) return this.#taken(guest, error, signal);
      return this.#failed(guest, error);
    }
  }

  /** Whether the pod that is in the way is ours, and only our cache is late. */
  async #taken(guest: VirtualMachineInstance, error: ApiError, signal: AbortSignal): Promise<Failure> {
    const { namespace = '', uid } = guest.metadata;
    const pod = await this.#client.get(pods, namespace, launcherName(guest), signal);
    return controllerOf(pod)?.uid === uid ? STALE : this.#failed(guest, error);
  }

  #failed(guest: VirtualMachineInstance, error: ApiError): Failure {
    this.#recorder.event(guest, 'Warning', 'FailedCreate', `Error creating pod: ${error.message}`);
    return { reason: 'FailedCreate', message: `failed to create virtual machine pod: ${error.message}` };
  }

  /** The guest as it is once it says what is new. */
  async #tell(
    guest: VirtualMachineInstance,
    body: JsonObject | undefined,
    signal: AbortSignal,
  ): Promise<VirtualMachineInstance> {
    if (!body) return guest;
    const { namespace = '', name = '' } = guest.metadata;
    const patch = { type: 'merge', body } as const;
    const options = { subresource: 'status' };
    const told = await this.#client.patch(virtualMachineInstances, namespace, name, patch, signal, options);
    this.#guests.wrote(told);
    return told;
  }

  async #label(guest: VirtualMachineInstance, signal: AbortSignal): Promise<void> {
    const labels = { ...labelChanges(guest), ...outdatedLabelChange(guest, this.#launcherImage) };
    const change: JsonObject = {
      ...(Object.keys(labels).length > 0 ? { labels } : {}),
      ...(hasArrived(guest) ? { annotations: { [RECEIVER_ANNOTATION]: null } } : {}),
    };
    if (Object.keys(change).length > 0) await this.#patchMetadata(guest, change, signal);
  }

  /** Its pod says what the descheduler has to know of the guest. */
  async #annotate(guest: VirtualMachineInstance, { metadata }: LauncherPod, signal: AbortSignal): Promise<void> {
    const annotations = deschedulerChanges(guest, { metadata });
    if (Object.keys(annotations).length === 0) return;
    const { namespace = '', name = '', uid = '' } = metadata;
    const patch = { type: 'merge', body: { metadata: { uid, annotations } } } as const;
    await this.#client.patch(pods, namespace, name, patch, signal);
  }

  /** Ends the pods of a guest that is to be deleted, and lets it go once nobody executes it. */
  async #end(guest: VirtualMachineInstance, all: readonly LauncherPod[], signal: AbortSignal): Promise<void> {
    for (const { metadata } of all) {
      const { namespace = '', name = '', uid = '', deletionTimestamp } = metadata;
      if (deletionTimestamp !== undefined) continue;
      try {
        await this.#client.delete(pods, namespace, name, signal, { preconditions: { uid } });
      } catch (error) {
        if (error instanceof ApiError && error.code === 404) continue;
        this.#recorder.event(guest, 'Warning', 'FailedDelete', `Error deleting pod ${name}: ${String(error)}`);
        throw error;
      }
      this.#recorder.event(guest, 'Normal', 'SuccessfulDelete', `Deleted virtual machine pod ${name}`);
    }
    const { finalizers = [] } = guest.metadata;
    // A guest that outlived its machine has nobody else who would let it go.
    const isLone = controllerOf(guest)?.kind !== 'VirtualMachine';
    const others = finalizers.filter((each) => each !== GUEST_FINALIZER && !(isLone && each === MACHINE_FINALIZER));
    if (!isForgettable(guest, all.length) || this.#isHalf(guest) || others.length === finalizers.length) return;
    if (await this.#hasPods(guest, signal)) return;
    await this.#patchMetadata(guest, { finalizers: others }, signal);
  }

  /**
   * Whether the other side of a migration has yet to hear what the guest says of its end. Where no agent ever had it, the
   * migration says all there is to hear, and a side that is dead keeps nobody from starting the guest anew.
   */
  #isHalf(guest: VirtualMachineInstance): boolean {
    return this.#migrations.byIndex('guest', keyOf(guest)).some((half) => {
      const isKept = half.metadata.finalizers?.includes(SYNCHRONIZATION_FINALIZER) === true;
      return isKept && (!isFinalMigration(half) || wasHandedOff(half));
    });
  }

  /** Whether the server knows pods of the guest that we have not heard of; they will be told of, and ended. */
  async #hasPods({ metadata }: VirtualMachineInstance, signal: AbortSignal): Promise<boolean> {
    const { namespace = '', uid = '' } = metadata;
    const labelSelector = `kubevirt.io/created-by=${uid}`;
    const { items } = await this.#client.list(pods, { namespace, labelSelector }, signal);
    return items.some((pod) => controllerOf(pod)?.uid === uid);
  }

  async #patchMetadata({ metadata }: VirtualMachineInstance, change: JsonObject, signal: AbortSignal): Promise<void> {
    const { namespace = '', name = '', uid = '', resourceVersion = '' } = metadata;
    const patch = { type: 'merge', body: { metadata: { uid, resourceVersion, ...change } } } as const;
    this.#guests.wrote(await this.#client.patch(virtualMachineInstances, namespace, name, patch, signal));
  }

  #claimOf({ metadata }: VirtualMachineInstance): (claimName: string) => PersistentVolumeClaim | undefined {
    return (claimName) => this.#claims.get(`${metadata.namespace ?? ''}/${claimName}`);
  }
}

/** Stands for: the guest is not what it was when this was decided. */
const STALE: Failure = { reason: '', message: '' };

/** The pod that executes the guest, by the record of that; before there is one, the guest's first. */
function currentPod(guest: VirtualMachineInstance, all: readonly LauncherPod[]): LauncherPod | undefined {
  const holder = guest.status?.rightToRun?.holder?.podUID;
  const first = launcherName(guest);
  return all.find(({ metadata }) => (holder === undefined ? metadata.name === first : metadata.uid === holder));
}

/** The guest that manages a pod; none for other pods. */
function guestUids(pod: LauncherPod): readonly string[] {
  const owner = controllerOf(pod);
  return owner?.kind === 'VirtualMachineInstance' && owner.apiVersion.startsWith('kubevirt.io/') ? [owner.uid] : [];
}

/** The claims that a guest's volumes name. */
function claimKeys({ metadata, spec }: VirtualMachineInstance): readonly string[] {
  return (spec.volumes ?? []).flatMap((volume) => {
    const name = claimNameOf(volume);
    return name === undefined ? [] : [`${metadata.namespace ?? ''}/${name}`];
  });
}
