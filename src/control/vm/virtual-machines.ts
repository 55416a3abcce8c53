import type { EventReason } from '../../api/event-reasons.ts';
import type { JsonObject } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import { grantedAwayFix } from '../../api/kubevirt/granted-away.ts';
import { isAway } from '../../api/kubevirt/right-to-run-transition.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceSpec } from '../../api/kubevirt/virtual-machine-instance-spec.ts';
import type { Env } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import { findCondition } from '../../kube/conditions.ts';
import { Controller, type Result } from '../../kube/controller.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import type { Informer } from '../../kube/informer.ts';
import { keyOf } from '../../kube/resource.ts';
import type { Service } from '../../kube/service.ts';
import { configurationOf, type ControlContext } from '../context.ts';
import { followedAnnotations } from '../descheduler.ts';
import { controllerOf } from '../../kube/owner.ts';
import { virtualMachineInstances, virtualMachines } from '../../kube/kubevirt-resources.ts';
import { type LauncherPod, persistentVolumeClaims, pods } from '../resources.ts';
import type { ClaimChange } from '../claim-changes.ts';
import { destinationOf, GUEST_MOVED_AWAY } from '../moved-away.ts';
import { MovingGuests } from '../moving-guests.ts';
import { uidsOf } from '../migration/keys.ts';
import { statusPatch } from '../../kube/status-patch.ts';
import { claimNameOf } from '../volume-claims.ts';
import {
  GENERATION_ANNOTATION,
  IDENTITY_ANNOTATION,
  MACHINE_FINALIZER,
  TEMPLATE_HASH_ANNOTATION,
} from '../../api/kubevirt/well-known.ts';
import type { PersistentVolumeClaim } from '../../migration/fit/objects.ts';
import { type Decision, decide, isFinal, isStartRefused } from './decide.ts';
import { type LiveUpdate, liveUpdate } from './live-update.ts';
import { makeGuest } from './make-guest.ts';
import { receivedIdentity } from './received-identity.ts';
import { isSizingKept, type KeptSizing, keepSizing, SizingError } from './sizing.ts';
import { templateHash } from './template-hash.ts';
import { uncopiedMessage, uncopiedVolumes } from './volume-migration.ts';
import { type Outcome, statusAfter } from './status.ts';

const WORKERS = 8;
/** When what we read and what we hear disagree, one of them is late: this is how soon we look again. */
const RECHECK_MS = 1000;
/** How soon a machine is looked at again whose instance type, preference or name could not be had. */
const RETRY_FAILURE_MS = 15_000;

type Failure = NonNullable<Outcome['failure']>;

/**
 * Keeps each VirtualMachine's guest as the machine's run strategy and its users want it: makes the guest and ends it,
 * and says in the machine's status what has become of it. A guest is made only for the version of the machine that was
 * decided on, so that a request that has been served is not served twice on the word of a late cache.
 */
export class VirtualMachines implements Service {
  readonly name = 'virtual machines';
  readonly #env: Env;
  readonly #client: Client;
  readonly #recorder: Pick<EventRecorder, 'event'>;
  readonly #machines: Informer<VirtualMachine>;
  readonly #guests: Informer<VirtualMachineInstance>;
  readonly #claims: Informer<PersistentVolumeClaim>;
  readonly #pods: Informer<LauncherPod>;
  readonly #configuration: () => KubeVirtConfiguration;
  readonly #controller: Controller;

  constructor({ env, client, recorder, informers, metrics }: ControlContext) {
    this.#env = env;
    this.#client = client;
    this.#recorder = recorder;
    this.#machines = informers.of(virtualMachines, { claim: claimKeys });
    this.#guests = informers.of(virtualMachineInstances);
    this.#claims = informers.of(persistentVolumeClaims);
    this.#pods = informers.of(pods, { uid: uidsOf });
    this.#configuration = configurationOf(informers);
    this.#controller = new Controller({
      name: 'virtualmachine-controller',
      env,
      workers: WORKERS,
      reconcile: (key, signal) => this.#reconcile(key, signal),
      ...(metrics ? { metrics } : {}),
    });
    this.#machines.onChange(({ object }) => this.#controller.enqueue(keyOf(object)));
    const moving = new MovingGuests(informers);
    // A guest has its machine's name.
    this.#guests.onChange(({ type, object }) => {
      this.#controller.enqueue(keyOf(object), { afterMs: type === 'deleted' ? 0 : moving.patienceMs(object) });
    });
    this.#claims.onChange(({ object, old }) => {
      if (old?.status?.phase === object.status?.phase && old) return;
      for (const machine of this.#machines.byIndex('claim', keyOf(object))) this.#controller.enqueue(keyOf(machine));
    });
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#controller.run(signal);
  }

  async #reconcile(key: string, signal: AbortSignal): Promise<Result | void> {
    const machine = this.#machines.get(key);
    if (!machine) return;
    const named = this.#guests.get(key);
    const isOurs = named !== undefined && controllerOf(named)?.uid === machine.metadata.uid;
    const guest = isOurs ? named : undefined;
    try {
      if (machine.metadata.deletionTimestamp !== undefined && !guest) return await this.#forget(machine, signal);
      if (!(await this.#isHeld(machine, signal))) return;
      return await this.#bring(machine, guest, signal);
    } catch (error) {
      // Somebody else wrote at the same time; we hear of it, and begin anew.
      if (error instanceof ApiError && error.code === 409) return { requeueAfterMs: RECHECK_MS };
      throw error;
    }
  }

  async #bring(
    machine: VirtualMachine,
    guest: VirtualMachineInstance | undefined,
    signal: AbortSignal,
  ): Promise<Result | void> {
    const identity = receivedIdentity(machine, guest);
    if (guest && identity && (await this.#adopt(machine, guest, identity, signal))) return;
    const decision = decide(machine, guest, this.#env.clock.now());
    const { kept, failure: sizingFailure } = await this.#sizing(machine, decision, signal);
    const uncopied = uncopiedVolumes(machine, guest, this.#podOf(guest));
    let failure = sizingFailure ?? this.#unstartable(machine, decision, uncopied) ?? this.#refused(machine, guest);
    if (decision.action === 'start' && !failure) failure = await this.#start(machine, decision, kept, signal);
    // Not for this version of the machine: nothing was done, and nothing is said.
    if (failure === STALE) return { requeueAfterMs: RECHECK_MS };
    const update = liveUpdate(machine, guest, this.#configuration());
    const isUnbound = this.#isUnbound(machine);
    const outcome = { decision, failure, references: kept.references, isUnbound, update, uncopied };
    await this.#tell(machine, guest, outcome, signal);
    if (guest && update.action === 'apply' && decision.action === 'none')
      await this.#update(machine, guest, update, signal);
    if (decision.action === 'stop' && guest) await this.#stop(machine, guest, signal);
    if (decision.action === 'setStrategy') await this.#setStrategy(machine, guest, decision.strategy, signal);
    // Only now: what the guest tells must be in the machine's status before the guest may be forgotten.
    if (guest) await this.#release(guest, signal);
    if (guest && guest.metadata.deletionTimestamp === undefined) await this.#annotate(machine, guest, signal);
    if (decision.action === 'wait') return { requeueAfterMs: decision.untilMs - this.#env.clock.now() };
    if (failure) return { requeueAfterMs: RETRY_FAILURE_MS };
  }

  /** Lets a machine keep what the guest that it has received is known by; true where we hear of that, and go on then. */
  async #adopt(
    machine: VirtualMachine,
    guest: VirtualMachineInstance,
    template: VirtualMachineInstanceSpec,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { namespace = '', name = '', uid = '', resourceVersion = '' } = machine.metadata;
    const { domain, networks } = template;
    const next = { ...machine, spec: { ...machine.spec, template: { ...machine.spec.template, spec: template } } };
    // It has what the template says from now on, and need not be started again for it. This comes first: what is not
    // the same yet is seen to again.
    if (guest.metadata.annotations?.[TEMPLATE_HASH_ANNOTATION] === templateHash(machine)) {
      const annotations = { [TEMPLATE_HASH_ANNOTATION]: templateHash(next) };
      await this.#patchMetadata(virtualMachineInstances, guest, { annotations }, signal);
    }
    const { firmware, devices } = domain;
    const spec = {
      domain: { firmware, devices: { interfaces: devices.interfaces } },
      ...(networks ? { networks } : {}),
    } as unknown as JsonObject;
    const annotations = { [IDENTITY_ANNOTATION]: guest.metadata.uid ?? '' };
    const body: JsonObject = { metadata: { uid, resourceVersion, annotations }, spec: { template: { spec } } };
    try {
      await this.#client.patch(virtualMachines, namespace, name, { type: 'merge', body }, signal);
      return true;
    } catch (error) {
      if (!(error instanceof ApiError) || (error.code !== 422 && error.code !== 403 && error.code !== 400)) throw error;
      // Somebody does not like the template, whose guest runs all the same.
      const message = `The machine cannot keep the identity of the guest that it has received: ${error.message}`;
      this.#recorder.event(machine, 'Warning', 'FailedUpdate', message);
      return false;
    }
  }

  /** A machine that is to be kept until its guest is gone says so before there is a guest. */
  async #isHeld(machine: VirtualMachine, signal: AbortSignal): Promise<boolean> {
    const { finalizers = [], deletionTimestamp } = machine.metadata;
    if (finalizers.includes(MACHINE_FINALIZER) || deletionTimestamp !== undefined) return true;
    await this.#patchMetadata(virtualMachines, machine, { finalizers: [...finalizers, MACHINE_FINALIZER] }, signal);
    return false;
  }

  async #sizing(
    machine: VirtualMachine,
    decision: Decision,
    signal: AbortSignal,
  ): Promise<{ readonly kept: KeptSizing; readonly failure?: Failure }> {
    const { instancetypeRef, preferenceRef } = machine.status ?? {};
    const known = { sizing: {}, references: { instancetypeRef, preferenceRef } };
    const isGoing = machine.metadata.deletionTimestamp !== undefined;
    if (isGoing || (decision.action !== 'start' && isSizingKept(machine))) return { kept: known };
    try {
      return { kept: await keepSizing(this.#client, machine, signal) };
    } catch (error) {
      if (!(error instanceof SizingError)) throw error;
      const { reason, message } = error;
      const isNew = findCondition(machine.status?.conditions, 'Failure')?.message !== message;
      if (isNew) this.#recorder.event(machine, 'Warning', reason, message);
      return { kept: known, failure: { reason, message } };
    }
  }

  async #start(
    machine: VirtualMachine,
    decision: Extract<Decision, { action: 'start' }>,
    { sizing }: KeptSizing,
    signal: AbortSignal,
  ): Promise<Failure | undefined> {
    const { namespace = '', name = '', uid, resourceVersion } = machine.metadata;
    const made = makeGuest(machine, { sizing, configuration: this.#configuration(), isReceiver: decision.isReceiver });
    if (!made.guest) {
      const message = made.errors.map(({ message: each }) => each).join('; ');
      return this.#failed(machine, 'FailedCreate', `Error creating virtual machine instance: ${message}`);
    }
    const current = await this.#client.get(virtualMachines, namespace, name, signal);
    if (current.metadata.uid !== uid || current.metadata.resourceVersion !== resourceVersion) return STALE;
    try {
      const guest = await this.#client.create(virtualMachineInstances, made.guest, signal);
      const message = `Started the virtual machine by creating the new virtual machine instance ${guest.metadata.name}`;
      this.#recorder.event(machine, 'Normal', 'SuccessfulCreate', message);
      return undefined;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.code === 409) return this.#isTaken(machine, signal);
      return this.#failed(machine, 'FailedCreate', `Error creating virtual machine instance: ${error.message}`);
    }
  }

  /** Whether the guest that is in the way is ours, and only our cache is late. */
  async #isTaken(machine: VirtualMachine, signal: AbortSignal): Promise<Failure> {
    const { namespace = '', name = '', uid } = machine.metadata;
    const other = await this.#client.get(virtualMachineInstances, namespace, name, signal);
    if (controllerOf(other)?.uid === uid) return STALE;
    const message = `VirtualMachineInstance ${name} exists and is not of this machine`;
    return this.#failed(machine, 'AlreadyExists', message);
  }

  #failed(machine: VirtualMachine, reason: EventReason, message: string): Failure {
    this.#recorder.event(machine, 'Warning', reason, message);
    return { reason, message };
  }

  async #stop(machine: VirtualMachine, guest: VirtualMachineInstance, signal: AbortSignal): Promise<void> {
    const { namespace = '', name = '', uid = '' } = guest.metadata;
    try {
      await this.#client.delete(virtualMachineInstances, namespace, name, signal, { preconditions: { uid } });
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) return;
      const message = `Error deleting virtual machine instance ${name}: ${String(error)}`;
      this.#recorder.event(machine, 'Warning', 'FailedDelete', message);
      throw error;
    }
    const message = `Stopped the virtual machine by deleting the virtual machine instance ${uid}`;
    this.#recorder.event(machine, 'Normal', 'SuccessfulDelete', message);
  }

  /** Tells a guest that runs what it is to be from now on. */
  async #update(
    machine: VirtualMachine,
    guest: VirtualMachineInstance,
    { sockets, memory, volumes }: Extract<LiveUpdate, { action: 'apply' }>,
    signal: AbortSignal,
  ): Promise<void> {
    const { namespace = '', name = '', uid = '', resourceVersion = '' } = guest.metadata;
    const annotations = { [GENERATION_ANNOTATION]: String(machine.metadata.generation ?? 0) };
    const body: JsonObject = {
      metadata: { uid, resourceVersion, annotations },
      spec: {
        domain: {
          ...(sockets === undefined ? {} : { cpu: { sockets } }),
          ...(memory ? { memory: { guest: memory.guest }, resources: memory.resources as JsonObject } : {}),
        },
        ...(volumes ? { volumes: volumes as unknown as JsonObject[] } : {}),
      },
    };
    await this.#client.patch(virtualMachineInstances, namespace, name, { type: 'merge', body }, signal);
    const told = [
      sockets === undefined ? [] : `${sockets} sockets`,
      memory ? `${memory.guest} of memory` : [],
      volumes ? 'other volumes' : [],
    ].flat();
    this.#recorder.event(machine, 'Normal', 'SuccessfulUpdate', `The guest is to have ${told.join(' and ')}`);
  }

  async #setStrategy(
    machine: VirtualMachine,
    guest: VirtualMachineInstance | undefined,
    strategy: string,
    signal: AbortSignal,
  ): Promise<void> {
    const { namespace = '', name = '', resourceVersion = '' } = machine.metadata;
    const isOld = machine.spec.runStrategy === undefined;
    const spec: JsonObject = isOld ? { running: strategy === 'Always' } : { runStrategy: strategy };
    // The version may have changed by what was just said of it; the spec must not have.
    const current = await this.#client.get(virtualMachines, namespace, name, signal);
    if (current.metadata.generation !== machine.metadata.generation) return;
    const version = current.metadata.resourceVersion ?? resourceVersion;
    const patch = { type: 'merge', body: { metadata: { resourceVersion: version }, spec } } as const;
    await this.#client.patch(virtualMachines, namespace, name, patch, signal);
    if (!guest || !isAway(guest.status?.rightToRun)) return;
    const message = `The guest went to ${destinationOf(guest)}: the virtual machine is halted, and kept`;
    this.#recorder.event(machine, 'Normal', GUEST_MOVED_AWAY, message);
  }

  /** Says what is new. */
  async #tell(
    machine: VirtualMachine,
    guest: VirtualMachineInstance | undefined,
    outcome: Outcome,
    signal: AbortSignal,
  ): Promise<void> {
    const { namespace = '', name = '' } = machine.metadata;
    const body = statusPatch(machine, statusAfter(machine, guest, outcome, this.#env));
    if (!body) return;
    await this.#client.patch(virtualMachines, namespace, name, { type: 'merge', body }, signal, {
      subresource: 'status',
    });
  }

  /** What owners tell the descheduler holds for the guest that there is, not only for the next one. */
  async #annotate(machine: VirtualMachine, guest: VirtualMachineInstance, signal: AbortSignal): Promise<void> {
    const { annotations: wanted } = machine.spec.template.metadata ?? {};
    const annotations = followedAnnotations(wanted, guest.metadata.annotations);
    if (Object.keys(annotations).length > 0)
      await this.#patchMetadata(virtualMachineInstances, guest, { annotations }, signal);
  }

  /** Lets go of a guest that has ended and is to be deleted. */
  async #release(guest: VirtualMachineInstance, signal: AbortSignal): Promise<void> {
    const { finalizers = [], deletionTimestamp } = guest.metadata;
    if (deletionTimestamp === undefined || !isFinal(guest) || !finalizers.includes(MACHINE_FINALIZER)) return;
    const others = finalizers.filter((each) => each !== MACHINE_FINALIZER);
    await this.#patchMetadata(virtualMachineInstances, guest, { finalizers: others }, signal);
  }

  /** Lets go of a machine that is to be deleted, once the server says that its guest is gone. */
  async #forget(machine: VirtualMachine, signal: AbortSignal): Promise<Result | void> {
    const { namespace = '', name = '', uid, finalizers = [] } = machine.metadata;
    if (!finalizers.includes(MACHINE_FINALIZER)) return;
    const guest = await this.#client.find(virtualMachineInstances, namespace, name, signal);
    if (guest && controllerOf(guest)?.uid === uid) return { requeueAfterMs: RECHECK_MS };
    const others = finalizers.filter((each) => each !== MACHINE_FINALIZER);
    await this.#patchMetadata(virtualMachines, machine, { finalizers: others }, signal);
  }

  async #patchMetadata(
    resource: typeof virtualMachines | typeof virtualMachineInstances,
    { metadata }: VirtualMachine | VirtualMachineInstance,
    change: JsonObject,
    signal: AbortSignal,
  ): Promise<void> {
    const { namespace = '', name = '', uid = '', resourceVersion = '' } = metadata;
    const patch = { type: 'merge', body: { metadata: { uid, resourceVersion, ...change } } } as const;
    try {
      await this.#client.patch(resource as typeof virtualMachines, namespace, name, patch, signal);
    } catch (error) {
      // Gone meanwhile: there is nothing left to hold or to let go.
      if (!(error instanceof ApiError && error.code === 404)) throw error;
    }
  }

  /** The pod that executes a guest, where it is known. */
  #podOf(guest: VirtualMachineInstance | undefined): LauncherPod | undefined {
    return this.#pods.byIndex('uid', guest?.status?.rightToRun?.holder?.podUID ?? '')[0];
  }

  /** Why a machine is not started, whatever is asked of it. */
  #unstartable(machine: VirtualMachine, { action }: Decision, uncopied: readonly ClaimChange[]): Failure | undefined {
    if (action !== 'start' || uncopied.length === 0) return undefined;
    const reason = 'ManualRecoveryRequired';
    const message = uncopiedMessage(uncopied);
    const isNew = findCondition(machine.status?.conditions, 'Failure')?.message !== message;
    return isNew ? this.#failed(machine, reason, message) : { reason, message };
  }

  /** Why a machine is not started whose guest went elsewhere. */
  #refused(machine: VirtualMachine, guest: VirtualMachineInstance | undefined): Failure | undefined {
    if (!isStartRefused(machine, guest)) return undefined;
    const { namespace = '', name = '' } = machine.metadata;
    const message = `the guest went to another namespace or cluster, and is not started here; ${grantedAwayFix(namespace, name)}`;
    const isNew = findCondition(machine.status?.conditions, 'Failure')?.message !== message;
    return isNew ? this.#failed(machine, 'GrantedAway', message) : { reason: 'GrantedAway', message };
  }

  #isUnbound(machine: VirtualMachine): boolean {
    return claimKeys(machine).some((key) => this.#claims.get(key)?.status?.phase === 'Pending');
  }
}

/** Stands for: the machine is not what it was when this was decided. */
const STALE: Failure = { reason: '', message: '' };

/** The claims that a machine's volumes name. */
function claimKeys({ metadata, spec }: VirtualMachine): readonly string[] {
  return (spec.template.spec?.volumes ?? []).flatMap((volume) => {
    const name = claimNameOf(volume);
    return name === undefined ? [] : [`${metadata.namespace ?? ''}/${name}`];
  });
}
