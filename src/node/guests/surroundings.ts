import type { KubeVirt, Restoration } from '../../api/kubevirt/kube-virt.ts';
import type { Runner } from '../../api/kubevirt/right-to-run.ts';
import { isAway } from '../../api/kubevirt/right-to-run-transition.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { HEARD_ANNOTATION, NODE_NAME_LABEL, TARGET_NODE_LABEL } from '../../api/kubevirt/well-known.ts';
import type { KubeObject } from '../../api/meta.ts';
import type { Client } from '../../kube/client.ts';
import type { Informer } from '../../kube/informer.ts';
import { kubeVirts, virtualMachineInstances, virtualMachines } from '../../kube/kubevirt-resources.ts';
import { controllerOf } from '../../kube/owner.ts';
import { compareVersions } from '../../kube/resource-version.ts';
import type { SharedInformers } from '../../kube/shared-informers.ts';
import { deepEqual } from '../../machinery/equal.ts';
import { dispositionOf, type Hold } from '../../migration/disruption/disposition.ts';
import type { Node } from '../../migration/fit/objects.ts';
import type { Standing } from '../../migration/right-to-run/standing.ts';
import type { StartWish } from '../../migration/right-to-run/view.ts';
import { agentIdOf } from '../registration/node-object.ts';
import type { GuestNote } from './guest-notes.ts';
import { guestOwner, isPodOver, type LauncherPod, launcherPods } from './launcher-pod.ts';
import { isOutOfService, nodes } from './out-of-service.ts';
import { OwnWrites } from './own-writes.ts';

/** A guest by its name, and by what tells it from others of that name. */
export interface GuestReference {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/**
 * What the API server says about this node: itself, the pods that are bound to it, and the guests that were given to it,
 * or are about to move to it. What was given away or has just come is not among those that are watched, and is asked for.
 */
export class Surroundings {
  readonly node: string;
  readonly #agentId: string | undefined;
  readonly #client: Client;
  readonly #pods: Informer<LauncherPod>;
  readonly #guests: Informer<VirtualMachineInstance>;
  /** Those that are about to come. */
  readonly #coming: Informer<VirtualMachineInstance>;
  readonly #nodes: Informer<Node>;
  readonly #kubeVirts: Informer<KubeVirt>;
  /** Guests as this agent's own writes left them, until they are heard of. */
  readonly #written = new Map<string, VirtualMachineInstance>();
  readonly #podWrites = new OwnWrites((podUID) => this.#onPod(podUID));
  #onPod: (podUID: string) => void = () => undefined;
  #onRestoration: () => void = () => undefined;

  constructor(options: {
    readonly node: string;
    /** The agent that the Node has to be of. */
    readonly agentId?: string | undefined;
    readonly client: Client;
    readonly informers: SharedInformers;
  }) {
    const { node, agentId, client, informers } = options;
    this.node = node;
    this.#agentId = agentId;
    this.#client = client;
    const indexes = { uid: uidOf, guest: (pod: LauncherPod) => [guestOwner(pod)?.uid ?? ''] };
    this.#pods = informers.of(launcherPods, indexes, { fieldSelector: `spec.nodeName=${node}` });
    this.#guests = informers.of(
      virtualMachineInstances,
      { uid: uidOf, sourceKey: sourceKeys, holder: ({ status }) => [status?.rightToRun?.holder?.podUID ?? ''] },
      { labelSelector: `${NODE_NAME_LABEL}=${node}` },
    );
    const coming = { labelSelector: `${TARGET_NODE_LABEL}=${node}` };
    this.#coming = informers.of(virtualMachineInstances, { uid: uidOf, sourceKey: sourceKeys }, coming);
    this.#nodes = informers.of(nodes, {}, { fieldSelector: `metadata.name=${node}` });
    this.#kubeVirts = informers.of(kubeVirts);
  }

  /** Calls back with the UID of every pod that a change may matter to. */
  onChange(callback: (podUID: string) => void): void {
    this.#onPod = callback;
    this.#pods.onChange(({ object, type }) => {
      if (type === 'deleted') this.#podWrites.gone(object.metadata.uid ?? '');
      else this.#podWrites.heard(object);
    });
    for (const guests of [this.#guests, this.#coming])
      guests.onChange(({ object, type }) => {
        const { uid = '' } = object.metadata;
        if (type === 'deleted') this.#written.delete(uid);
        for (const pod of this.#pods.byIndex('guest', uid))
          if (!hasNoPart(pod, object, type === 'deleted')) callback(pod.metadata.uid ?? '');
        const { holder } = object.status?.rightToRun ?? {};
        if (holder?.node === this.node) callback(holder.podUID);
      });
    this.#nodes.onChange(({ object, old }) => {
      const isSame =
        object.metadata.uid === old?.metadata.uid &&
        agentIdOf(object) === agentIdOf(old) &&
        deepEqual(object.spec?.taints, old?.spec?.taints) &&
        readyTransition(object) === readyTransition(old);
      if (isSame) return;
      for (const pod of this.#pods.list()) callback(pod.metadata.uid ?? '');
      this.#onRestoration();
    });
    this.#kubeVirts.onChange(({ object, old }) => {
      const isRestored = !deepEqual(object.status?.restoration, old?.status?.restoration);
      // The versions of before the restore may be higher than those that come.
      if (object.status?.restoration?.id !== old?.status?.restoration?.id) this.#written.clear();
      for (const { metadata } of this.#pods.list())
        if (metadata.deletionTimestamp || isRestored) callback(metadata.uid ?? '');
      if (isRestored) this.#onRestoration();
    });
  }

  /** Calls back when nodes are to be heard, or were, since the API's data was restored. */
  onRestoration(callback: () => void): void {
    this.#onRestoration = callback;
  }

  /** What is to be settled since the API's data was restored; undefined where it never was. */
  get restoration(): Restoration | undefined {
    const [kubeVirt] = this.#kubeVirts.list();
    return kubeVirt?.status?.restoration;
  }

  /** The restoration since which this node is to be heard; undefined where it is not. */
  get dueRestoration(): string | undefined {
    const { id, unheard } = this.restoration ?? {};
    return unheard?.includes(this.node) === true ? id : undefined;
  }

  /** The restoration of which all is said, by what this node's own object says. */
  get heardRestoration(): string | undefined {
    return this.#nodes.get(this.node)?.metadata.annotations?.[HEARD_ANNOTATION];
  }

  /**
   * Nodes that are to be heard before a guest is started, as the server says right now: what is watched may be of before
   * the restore.
   */
  async unheard(signal: AbortSignal): Promise<readonly string[]> {
    const { items } = await this.#client.list(kubeVirts, {}, signal);
    return items.flatMap(({ status }) => status?.restoration?.unheard ?? []);
  }

  /** For how long a pod that is being deleted holds its guest; undefined where it does not. */
  holdOf(pod: LauncherPod | undefined, guest: VirtualMachineInstance | undefined): Hold | undefined {
    if (!guest || pod?.metadata.deletionTimestamp === undefined) return undefined;
    const [kubeVirt] = this.#kubeVirts.list();
    const configuration = kubeVirt?.spec.configuration ?? {};
    const disposition = dispositionOf({ pod, guest, configuration, node: this.#nodes.get(this.node) });
    return disposition === 'stop' ? undefined : disposition;
  }

  /**
   * The pod of this UID. That one is gone is believed only of the server, and so is everything while this node is to be
   * heard: each watch goes on in its own time after a restore, and what it knows till then is of before.
   */
  async pod(podUID: string, note: GuestNote | undefined, signal: AbortSignal): Promise<LauncherPod | undefined> {
    const known = this.recalledPod(podUID);
    const isBelieved = known !== undefined && this.dueRestoration === undefined;
    if (isBelieved || (!known && !note)) return known;
    const { namespace = note?.namespace ?? '', name = note?.podName ?? '' } = known?.metadata ?? {};
    const found = await this.#client.find(launcherPods, namespace, name, signal);
    return found?.metadata.uid === podUID ? found : undefined;
  }

  /** The guest that a pod is for, if there is such a guest: by the server itself while this node is to be heard. */
  async guest(
    podUID: string,
    pod: LauncherPod | undefined,
    note: GuestNote | undefined,
    signal: AbortSignal,
  ): Promise<VirtualMachineInstance | undefined> {
    const isDue = this.dueRestoration !== undefined;
    const reference = this.#referenceOf(podUID, pod, note);
    if (!reference) return isDue ? this.#namedBy(podUID, signal) : undefined;
    const { namespace, name, uid } = reference;
    const known = isDue ? undefined : this.#knownGuest(uid);
    if (known) return known;
    const found = await this.#client.find(virtualMachineInstances, namespace, name, signal);
    return found?.metadata.uid === uid ? found : undefined;
  }

  /** The guest here, or about to come, whose record names a pod of which nothing else is known, as the server says. */
  async #namedBy(podUID: string, signal: AbortSignal): Promise<VirtualMachineInstance | undefined> {
    for (const label of [NODE_NAME_LABEL, TARGET_NODE_LABEL]) {
      const scope = { labelSelector: `${label}=${this.node}` };
      const { items } = await this.#client.list(virtualMachineInstances, scope, signal);
      const named = items.find(({ status }) => {
        const { holder, successor } = status?.rightToRun ?? {};
        return holder?.podUID === podUID || successor?.podUID === podUID;
      });
      if (named) return named;
    }
    return undefined;
  }

  /** Which guest a pod is for: what a pod is for never changes, so that one that was heard of will do. */
  #referenceOf(podUID: string, pod: LauncherPod | undefined, note: GuestNote | undefined): GuestReference | undefined {
    return referenceOf(podUID, pod ?? this.recalledPod(podUID), note, this.#guests);
  }

  /** The guest as it was last heard of, without asking anybody: no newer than `last` where that is all there is. */
  recalledGuest(
    podUID: string,
    pod: LauncherPod | undefined,
    note: GuestNote | undefined,
    last: VirtualMachineInstance | undefined,
  ): VirtualMachineInstance | undefined {
    const uid = last?.metadata.uid ?? this.#referenceOf(podUID, pod, note)?.uid;
    const known = uid === undefined ? undefined : this.#knownGuest(uid);
    return known && last ? newest([known, last]) : (known ?? last);
  }

  /** The pod as it was last heard of. */
  recalledPod(podUID: string): LauncherPod | undefined {
    return this.#pods.byIndex('uid', podUID)[0];
  }

  /** The newest of what is watched and of what was written. */
  #knownGuest(uid: string): VirtualMachineInstance | undefined {
    const watched = [...this.#guests.byIndex('uid', uid), ...this.#coming.byIndex('uid', uid)];
    const written = this.#written.get(uid);
    const known = newest(watched);
    if (!written || !known) this.#written.delete(uid);
    if (!written || !known) return known;
    const best = newest([known, written]);
    if (best === known) this.#written.delete(uid);
    return best;
  }

  /** Whether a guest is here, or about to come, whose source is known by this key. */
  isAwaited(key: string): boolean {
    return [this.#guests, this.#coming].some((guests) => guests.byIndex('sourceKey', key).length > 0);
  }

  /** Whether it is known which guest a pod that is gone was for. */
  canName(podUID: string, note: GuestNote | undefined): boolean {
    return this.#referenceOf(podUID, undefined, note) !== undefined;
  }

  /** The guest of a name that this node runs. */
  runningGuest(namespace: string, name: string): VirtualMachineInstance | undefined {
    const key = `${namespace}/${name}`;
    const { uid = '' } = (this.#guests.get(key) ?? this.#coming.get(key))?.metadata ?? {};
    const guest = this.#knownGuest(uid);
    const { rightToRun } = guest?.status ?? {};
    return rightToRun?.holder?.node === this.node && !isAway(rightToRun) ? guest : undefined;
  }

  /** Writes something about a pod that was looked at: that it has changed like that is no news. */
  async writePod(podUID: string, write: () => Promise<LauncherPod>): Promise<void> {
    await this.#podWrites.write(podUID, write);
  }

  /** Takes note of a guest as the server answered it. */
  wrote(guest: VirtualMachineInstance): void {
    this.#written.set(guest.metadata.uid ?? '', guest);
  }

  /**
   * Who this agent is when it speaks of a pod. A node that registered anew has another UID, but what its journal knows of
   * was begun by the old one.
   */
  runner(podUID: string, guest: VirtualMachineInstance | undefined, standing: Standing): Runner {
    const { holder, successor } = guest?.status?.rightToRun ?? {};
    const known = standing.kind === 'none' ? [] : [...journaledRunners(standing), holder, successor];
    const self = known.find((runner) => runner?.podUID === podUID && runner.node === this.node);
    if (self) return self;
    return { node: this.node, nodeUID: this.#nodes.get(this.node)?.metadata.uid ?? '', podUID };
  }

  /** Whether this node is registered, by this agent and no other of its name: two would start the same guests. */
  get isRegistered(): boolean {
    const node = this.#nodes.get(this.node);
    return node !== undefined && (this.#agentId === undefined || agentIdOf(node) === this.#agentId);
  }

  /** UIDs of nodes that were declared out of service, as far as they matter to this one. */
  outOfService(self: Runner): ReadonlySet<string> {
    const node = this.#nodes.get(this.node);
    return isOutOfService(node) ? new Set([node?.metadata.uid ?? '', self.nodeUID]) : new Set();
  }

  /** Whether a pod was heard of, and is not gone. */
  knowsPod(podUID: string): boolean {
    return this.#pods.byIndex('uid', podUID).length > 0;
  }

  /** Whether there is a virtual machine of this UID: one that is kept, or a guest that is its own. */
  async hasMachine(namespace: string, name: string, uid: string, signal: AbortSignal): Promise<boolean> {
    const machine = await this.#client.find(virtualMachines, namespace, name, signal);
    if (machine?.metadata.uid === uid) return true;
    return (await this.#client.find(virtualMachineInstances, namespace, name, signal))?.metadata.uid === uid;
  }

  /** What the guest's virtual machine remembers of its right to run. */
  async remembered(guest: VirtualMachineInstance, signal: AbortSignal): Promise<StartWish['remembered']> {
    const owner = controllerOf(guest);
    if (owner?.kind !== 'VirtualMachine') return undefined;
    const machine = await this.#client.find(virtualMachines, guest.metadata.namespace ?? '', owner.name, signal);
    return machine?.metadata.uid === owner.uid ? machine.status?.rightToRun : undefined;
  }
}

/** Since when the node is, or is not, ready: by that pods know why they were driven away. */
function readyTransition(node: Node | undefined): string | undefined {
  return node?.status?.conditions?.find(({ type }) => type === 'Ready')?.lastTransitionTime;
}

/** UID of the virtual machine that a guest is of: itself where it is of none. */
export function machineUidOf(guest: VirtualMachineInstance): string {
  const owner = controllerOf(guest);
  return owner?.kind === 'VirtualMachine' ? owner.uid : (guest.metadata.uid ?? '');
}

function referenceOf(
  podUID: string,
  pod: LauncherPod | undefined,
  note: GuestNote | undefined,
  guests: Informer<VirtualMachineInstance>,
): GuestReference | undefined {
  const owner = pod && guestOwner(pod);
  if (owner) return { namespace: pod.metadata.namespace ?? '', name: owner.name, uid: owner.uid };
  if (note) return { namespace: note.namespace, name: note.name, uid: note.guestUID };
  const [held] = guests.byIndex('holder', podUID);
  const { namespace = '', name = '', uid = '' } = held?.metadata ?? {};
  return held && { namespace, name, uid };
}

/**
 * Whether a pod has ended, and is named neither in the record of its guest nor as a side of its migration; of one that
 * leaves this node, a side has said its last word.
 */
function hasNoPart(pod: LauncherPod, guest: VirtualMachineInstance, isLeaving: boolean): boolean {
  if (!isPodOver(pod)) return false;
  const { metadata } = pod;
  const { rightToRun: { holder, successor } = {}, migrationState = {} } = guest.status ?? {};
  const { sourcePod, targetPod, targetLetter } = migrationState;
  const isSide = [sourcePod, targetPod].includes(metadata.name) || targetLetter?.sourcePodUID === metadata.uid;
  const isNamed = [holder?.podUID, successor?.podUID].includes(metadata.uid);
  return !isNamed && (isLeaving || !isSide);
}

/** Who is named in what a pod's journal says. */
function journaledRunners(standing: Standing): readonly Runner[] {
  const attempt = 'attempt' in standing ? standing.attempt : 'reserved' in standing ? standing.reserved : undefined;
  const taken = 'taken' in standing ? standing.taken : undefined;
  return [attempt, taken].flatMap((each) => (each ? [each.source, each.target] : []));
}

/** The last of them, by their versions. */
function newest(guests: readonly VirtualMachineInstance[]): VirtualMachineInstance | undefined {
  return guests.reduce<VirtualMachineInstance | undefined>((best, guest) => {
    const isNewer = (compareVersions(guest.metadata.resourceVersion, best?.metadata.resourceVersion) ?? 0) > 0;
    return best === undefined || isNewer ? guest : best;
  }, undefined);
}

/** By what the agent is known that a guest comes from, or came from. */
function sourceKeys({ status }: VirtualMachineInstance): readonly string[] {
  return status?.migrationState?.sourceState?.agentKeys ?? [];
}

function uidOf({ metadata }: KubeObject): readonly string[] {
  return [metadata.uid ?? ''];
}
