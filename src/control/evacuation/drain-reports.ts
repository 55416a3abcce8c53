import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { formatTime, type JsonObject } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import { Controller, type Result } from '../../kube/controller.ts';
import type { Informer } from '../../kube/informer.ts';
import { kubeVirts, virtualMachineInstanceMigrations, virtualMachineInstances } from '../../kube/kubevirt-resources.ts';
import { keyOf } from '../../kube/resource.ts';
import type { Service } from '../../kube/service.ts';
import { deepEqual } from '../../machinery/equal.ts';
import type { Node, NodeCondition } from '../../migration/fit/objects.ts';
import { configurationOf, type ControlContext } from '../context.ts';
import { guestKeyOf, guestKeysOf } from '../migration/keys.ts';
import { nodes } from '../resources.ts';
import { isDraining, nodesOfGuest } from './draining.ts';
import { DRAIN_BLOCKED, drainBlocked, type Hindrance, hindranceOf, lookAgainMs } from './hindrances.ts';

/** Long enough for what happens to many guests of a node at once to be told once, and no time to whoever waits. */
const GATHER_MS = 200;
/** All guests of a node are looked at each time: where there are a thousand, a second more is gathered. */
const GATHER_MS_PER_GUEST = 1;

/**
 * Says of nodes that are being emptied which guests stay there, and why: the node's condition DrainBlocked. A node that
 * nothing was ever in the way of has no such condition. Keyed by nodes.
 */
export class DrainReports implements Service {
  readonly name = 'drain reports';
  readonly #context: ControlContext;
  readonly #guests: Informer<VirtualMachineInstance>;
  readonly #migrations: Informer<VirtualMachineInstanceMigration>;
  readonly #nodes: Informer<Node>;
  readonly #configuration: () => KubeVirtConfiguration;
  readonly #controller: Controller;

  constructor(context: ControlContext) {
    const { env, informers, metrics } = context;
    this.#context = context;
    this.#guests = informers.of(virtualMachineInstances, { onNode: nodesOfGuest });
    this.#migrations = informers.of(virtualMachineInstanceMigrations, { guest: guestKeysOf });
    this.#nodes = informers.of(nodes);
    this.#configuration = configurationOf(informers);
    this.#controller = new Controller({
      name: 'drain-reports',
      env,
      reconcile: (name, signal) => this.#reconcile(name, signal),
      ...(metrics ? { metrics } : {}),
    });
    this.#listen();
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#controller.run(signal);
  }

  #listen(): void {
    this.#nodes.onChange(({ type, object, old }) => {
      const isChanged = !old || !deepEqual(old.spec, object.spec) || !deepEqual(reportOf(old), reportOf(object));
      if (type !== 'deleted' && isChanged && this.#isConcerned(object))
        this.#controller.enqueue(object.metadata.name ?? '');
    });
    this.#guests.onChange(({ object, old }) => {
      for (const name of new Set([...nodesOfGuest(object), ...(old ? nodesOfGuest(old) : [])])) this.#wake(name);
    });
    this.#migrations.onChange(({ object }) => {
      const guest = this.#guests.get(guestKeyOf(object));
      for (const name of guest ? nodesOfGuest(guest) : []) this.#wake(name);
    });
    this.#context.informers.of(kubeVirts).onChange(({ object, old }) => {
      if (old && deepEqual(old.spec, object.spec)) return;
      for (const { metadata } of this.#nodes.list()) this.#wake(metadata.name ?? '');
    });
  }

  #wake(name: string): void {
    const node = this.#nodes.get(name);
    if (!node || !this.#isConcerned(node)) return;
    const guests = this.#guests.countByIndex('onNode', name);
    this.#controller.enqueue(name, { afterMs: GATHER_MS + guests * GATHER_MS_PER_GUEST });
  }

  #isConcerned(node: Node): boolean {
    return isDraining(node, this.#configuration()) || reportOf(node)?.status === 'True';
  }

  async #reconcile(name: string, signal: AbortSignal): Promise<Result | void> {
    const node = this.#nodes.get(name);
    if (!node) return;
    const { hindrances, wakeAtMs } = this.#look(node);
    await this.#tell(node, drainBlocked(hindrances), signal);
    if (wakeAtMs !== undefined) return { requeueAfterMs: wakeAtMs - this.#context.env.clock.now() };
  }

  async #tell(node: Node, verdict: ReturnType<typeof drainBlocked>, signal: AbortSignal): Promise<void> {
    const known = reportOf(node);
    const isNews = known
      ? known.status !== verdict.status || known.reason !== verdict.reason || known.message !== verdict.message
      : verdict.status === 'True';
    if (!isNews) return;
    const now = formatTime(this.#context.env.clock.now());
    const isTransition = known?.status !== verdict.status;
    const lastTransitionTime = isTransition ? now : (known?.lastTransitionTime ?? now);
    const condition = { ...verdict, lastHeartbeatTime: now, lastTransitionTime } as JsonObject;
    try {
      await this.#patch(node, condition, signal);
    } catch (error) {
      // Gone, or another one of its name by now: there is nothing to be said of it.
      if (!(error instanceof ApiError && (error.code === 404 || error.code === 409))) throw error;
    }
  }

  /** A patch of this condition alone: the others are the agent's, who writes at the same time. */
  async #patch({ metadata }: Node, condition: JsonObject, signal: AbortSignal): Promise<void> {
    const { name = '', uid = '' } = metadata;
    const body: JsonObject = { metadata: { uid }, status: { conditions: [condition] } };
    const options = { subresource: 'status' };
    await this.#context.client.patch(nodes, '', name, { type: 'strategic', body }, signal, options);
  }

  /** What is in the way, and when to look again although nothing happens. */
  #look(node: Node): { readonly hindrances: readonly Hindrance[]; readonly wakeAtMs?: number } {
    const configuration = this.#configuration();
    if (!isDraining(node, configuration)) return { hindrances: [] };
    const nowMs = this.#context.env.clock.now();
    const hindrances: Hindrance[] = [];
    let wakeAtMs = Number.POSITIVE_INFINITY;
    for (const guest of this.#guests.byIndex('onNode', node.metadata.name ?? '')) {
      const migrations = this.#migrations.byIndex('guest', keyOf(guest));
      const hindrance = hindranceOf(guest, migrations, configuration, nowMs);
      if (hindrance) hindrances.push(hindrance);
      wakeAtMs = Math.min(wakeAtMs, lookAgainMs(guest, migrations, nowMs) ?? wakeAtMs);
    }
    return { hindrances, ...(wakeAtMs < Number.POSITIVE_INFINITY ? { wakeAtMs } : {}) };
  }
}

function reportOf({ status }: Node): NodeCondition | undefined {
  return status?.conditions?.find(({ type }) => type === DRAIN_BLOCKED);
}
