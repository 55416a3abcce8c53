import { sourceAnnotation } from '../../api/kubevirt/evacuation.ts';
import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { EVICTION_SOURCE_ANNOTATION } from '../../api/kubevirt/well-known.ts';
import { ApiError } from '../../api/status.ts';
import { Controller, type Result } from '../../kube/controller.ts';
import type { Informer } from '../../kube/informer.ts';
import { kubeVirts, virtualMachineInstanceMigrations, virtualMachineInstances } from '../../kube/kubevirt-resources.ts';
import { controllerOf } from '../../kube/owner.ts';
import { keyOf } from '../../kube/resource.ts';
import type { Service } from '../../kube/service.ts';
import { statusPatch } from '../../kube/status-patch.ts';
import { deepEqual } from '../../machinery/equal.ts';
import { hasDrainTaint } from '../../migration/eviction/drain-taint.ts';
import type { Node } from '../../migration/fit/objects.ts';
import { configurationOf, type ControlContext } from '../context.ts';
import { isDuplicate } from '../migration/duplicate.ts';
import { guestKeyOf, guestKeysOf, launchedGuestsOf } from '../migration/keys.ts';
import { type LauncherPod, nodes, pods } from '../resources.ts';
import { decideMove, type EvacuationFacts, isEvacuation, isLeavable, markAfter } from './decide.ts';
import { nodesOfGuest } from './draining.ts';
import { evacuationMigration } from './evacuation-migration.ts';

/** A node may have a thousand guests, which all have to leave at once, and most of each one's time is waiting for the server. */
const WORKERS = 32;
/** When what we read and what we hear disagree, one of them is late: this is how soon we look again. */
const RECHECK_MS = 1000;

/**
 * Moves guests off nodes that they have to leave, and lets them stay when they need not leave any more. It is keyed by
 * guests; a node that is cordoned or tainted wakes those that are on it, and nobody else.
 *
 * It alone takes marks and causes away. What it takes away on the word of a node or a pod it asks the server about: a
 * guest that was marked a moment ago would else stay on a node of which we have not heard yet that it is cordoned.
 */
export class Evacuations implements Service {
  readonly name = 'evacuations';
  readonly #context: ControlContext;
  readonly #guests: Informer<VirtualMachineInstance>;
  readonly #migrations: Informer<VirtualMachineInstanceMigration>;
  readonly #pods: Informer<LauncherPod>;
  readonly #nodes: Informer<Node>;
  readonly #configuration: () => KubeVirtConfiguration;
  readonly #controller: Controller;
  /** What stands in the way of guests, by key, as people were last told. */
  readonly #obstacles = new Map<string, string>();

  constructor(context: ControlContext) {
    const { env, informers, metrics } = context;
    this.#context = context;
    this.#guests = informers.of(virtualMachineInstances, { onNode: nodesOfGuest });
    this.#migrations = informers.of(virtualMachineInstanceMigrations, { guest: guestKeysOf });
    this.#pods = informers.of(pods, { launched: launchedGuestsOf });
    this.#nodes = informers.of(nodes);
    this.#configuration = configurationOf(informers);
    this.#controller = new Controller({
      name: 'evacuation-controller',
      env,
      workers: WORKERS,
      reconcile: (key, signal) => this.#reconcile(key, signal),
      priorityOf: (key) => (isPressed(this.#guests.get(key)) ? 1 : 0),
      ...(metrics ? { metrics } : {}),
    });
    this.#listen();
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#controller.run(signal);
  }

  /** Few guests ever have to leave: only what may be about them is looked at. */
  #listen(): void {
    this.#guests.onChange(({ type, object, old }) => {
      if (type === 'deleted') this.#obstacles.delete(keyOf(object));
      else if (this.#isConcerned(object) || (old && isNoted(old))) this.#controller.enqueue(keyOf(object));
    });
    this.#migrations.onChange(({ object }) => {
      const key = guestKeyOf(object);
      const guest = this.#guests.get(key);
      if (isEvacuation(object) || (guest && isNoted(guest))) this.#controller.enqueue(key);
    });
    this.#pods.onChange(({ object }) => {
      for (const key of launchedGuestsOf(object)) {
        const guest = this.#guests.get(key);
        if (guest && isNoted(guest)) this.#controller.enqueue(key);
      }
    });
    this.#nodes.onChange(({ object, old }) => {
      if (old && deepEqual(old.spec, object.spec)) return;
      for (const guest of this.#guests.byIndex('onNode', object.metadata.name ?? ''))
        if (this.#isConcerned(guest)) this.#controller.enqueue(keyOf(guest));
    });
    this.#context.informers.of(kubeVirts).onChange(({ object, old }) => {
      if (old && deepEqual(old.spec, object.spec)) return;
      for (const guest of this.#guests.list()) if (this.#isConcerned(guest)) this.#controller.enqueue(keyOf(guest));
    });
  }

  #isConcerned(guest: VirtualMachineInstance): boolean {
    if (isNoted(guest)) return true;
    const node = this.#nodeOf(guest);
    return node !== undefined && hasDrainTaint(node, this.#configuration());
  }

  #nodeOf(guest: VirtualMachineInstance): Node | undefined {
    return this.#nodes.get(nodesOfGuest(guest)[0] ?? '');
  }

  async #reconcile(key: string, signal: AbortSignal): Promise<Result | void> {
    const guest = this.#guests.get(key);
    if (!guest || !isLeavable(guest)) return;
    try {
      const facts = await this.#mark(this.#observe(guest), signal);
      await this.#annotate(facts.guest, signal);
      const { isNeeded, canceled, obstacle } = decideMove(facts);
      this.#tellObstacle(facts.guest, obstacle);
      for (const migration of canceled) await this.#cancel(facts.guest, migration, signal);
      if (isNeeded) return await this.#create(facts, signal);
    } catch (error) {
      // Somebody else wrote at the same time, or it is gone; we hear of it, and begin anew.
      if (!(error instanceof ApiError)) throw error;
      if (error.code === 404) return;
      if (error.code === 409) return { requeueAfterMs: RECHECK_MS };
      throw error;
    }
  }

  #observe(guest: VirtualMachineInstance): EvacuationFacts {
    const key = keyOf(guest);
    return {
      guest,
      node: this.#nodeOf(guest),
      configuration: this.#configuration(),
      migrations: this.#migrations.byIndex('guest', key),
      pods: this.#pods.byIndex('launched', key).filter((pod) => controllerOf(pod)?.uid === guest.metadata.uid),
      nowMs: this.#context.env.clock.now(),
    };
  }

  /** Makes the mark what it should be. Answers the facts as they are then. */
  async #mark(heard: EvacuationFacts, signal: AbortSignal): Promise<EvacuationFacts> {
    const { client } = this.#context;
    if (!statusPatch(heard.guest, markAfter(heard))) return heard;
    const facts = await this.#ascertained(heard, signal);
    const { guest } = facts;
    const body = statusPatch(guest, markAfter(facts));
    if (!body) return facts;
    const { namespace = '', name = '' } = guest.metadata;
    const patch = { type: 'merge', body } as const;
    const options = { subresource: 'status' };
    return { ...facts, guest: await client.patch(virtualMachineInstances, namespace, name, patch, signal, options) };
  }

  /** The same facts, with the guest's node and pod as they are on the server now. */
  async #ascertained(facts: EvacuationFacts, signal: AbortSignal): Promise<EvacuationFacts> {
    const { client } = this.#context;
    const { guest, node } = facts;
    const { namespace = '' } = guest.metadata;
    const holder = guest.status?.rightToRun?.holder?.podUID;
    const heard = facts.pods.find(({ metadata }) => metadata.uid === holder);
    const pod = heard && (await client.find(pods, namespace, heard.metadata.name ?? '', signal));
    return {
      ...facts,
      node: node && (await client.find(nodes, '', node.metadata.name ?? '', signal)),
      pods: [...facts.pods.filter((each) => each !== heard), ...(pod ? [pod] : [])],
    };
  }

  /** The guest says whether it is the descheduler who wants it to leave. */
  async #annotate(guest: VirtualMachineInstance, signal: AbortSignal): Promise<void> {
    const annotations = sourceAnnotation(guest);
    if (!annotations) return;
    const { namespace = '', name = '', uid = '' } = guest.metadata;
    const patch = { type: 'merge', body: { metadata: { uid, annotations } } } as const;
    await this.#context.client.patch(virtualMachineInstances, namespace, name, patch, signal);
  }

  #tellObstacle(guest: VirtualMachineInstance, obstacle: string | undefined): void {
    const key = keyOf(guest);
    if (obstacle === this.#obstacles.get(key)) return;
    if (obstacle === undefined) {
      this.#obstacles.delete(key);
      return;
    }
    this.#obstacles.set(key, obstacle);
    const message = `VirtualMachineInstance is not migrateable: ${obstacle}`;
    this.#context.recorder.event(guest, 'Warning', 'FailedCreate', message);
  }

  async #cancel(
    guest: VirtualMachineInstance,
    { metadata }: VirtualMachineInstanceMigration,
    signal: AbortSignal,
  ): Promise<void> {
    const { client, recorder } = this.#context;
    const { namespace = '', name = '', uid = '', resourceVersion = '' } = metadata;
    const preconditions = { uid, resourceVersion };
    await client.delete(virtualMachineInstanceMigrations, namespace, name, signal, { preconditions });
    recorder.event(guest, 'Normal', 'SuccessfulDelete', `Deleted Migration ${name}: the guest need not leave any more`);
  }

  async #create(heard: EvacuationFacts, signal: AbortSignal): Promise<Result | void> {
    const { client, recorder } = this.#context;
    const { namespace = '', name = '', uid } = heard.guest.metadata;
    // It may have left by now, or may stay: we may not have heard of that yet.
    const guest = await client.get(virtualMachineInstances, namespace, name, signal);
    const facts = { ...heard, guest };
    if (guest.metadata.uid !== uid || !isLeavable(guest) || !decideMove(facts).isNeeded) return;
    const migration = evacuationMigration(guest, facts.migrations, facts.configuration);
    try {
      await client.create(virtualMachineInstanceMigrations, migration, signal);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      // It is there, and we have not heard of it yet; or another one is, which serves as well.
      if (isDuplicate(error)) return { requeueAfterMs: RECHECK_MS };
      recorder.event(guest, 'Warning', 'FailedCreate', `Error creating a Migration: ${error.message}`);
      throw error;
    }
    recorder.event(guest, 'Normal', 'SuccessfulCreate', `Created Migration ${migration.metadata.name}`);
  }
}

/** Whether anything is said of the guest's leaving that may have to be done, or taken back. */
function isNoted({ metadata, status }: VirtualMachineInstance): boolean {
  const { evacuationNodeName, evacuationCauses = [] } = status ?? {};
  const isAnnotated = metadata.annotations?.[EVICTION_SOURCE_ANNOTATION] !== undefined;
  return Boolean(evacuationNodeName) || evacuationCauses.length > 0 || isAnnotated;
}

/** Whether the guest's time runs out: it goes before all that are only to leave some time. */
function isPressed(guest: VirtualMachineInstance | undefined): boolean {
  return guest?.status?.evacuationCauses?.some(({ deadline }) => deadline !== undefined) === true;
}
