import { install, installation } from '../control/installation/install.ts';
import type { KubeVirt } from '../api/kubevirt/kube-virt.ts';
import type { MigrationState } from '../api/kubevirt/migration-state.ts';
import type { VirtualMachineInstance } from '../api/kubevirt/virtual-machine-instance.ts';
import { NODE_NAME_LABEL, SYSTEM_NAMESPACE, TARGET_NODE_LABEL } from '../api/kubevirt/well-known.ts';
import type { JsonObject, KubeObject } from '../api/meta.ts';
import type { LogEntry } from '../apiserver/storage/port.ts';
import type { Amend } from '../apiserver/storage/renew-log.ts';
import { turn } from '../env/turn.ts';
import type { HostedModel } from '../hypervisor/model/hosted-model.ts';
import type { ModelTraits } from '../hypervisor/model/model-guest.ts';
import { ModelHost } from '../hypervisor/model/model-host.ts';
import { ModelNetwork } from '../hypervisor/model/model-network.ts';
import type { Client } from '../kube/client.ts';
import { kubeVirts, virtualMachineInstances as guests } from '../kube/kubevirt-resources.ts';
import type { Resource } from '../kube/resource.ts';
import { type Transport, TransportError, type TransportRequest } from '../kube/transport.ts';
import { type LauncherPod, launcherPods as pods } from '../node/guests/launcher-pod.ts';
import { nodes as nodeResource } from '../node/guests/out-of-service.ts';
import { NearPeers, nearKey } from '../node/migrations/near-peers.fixture.ts';
import { CONFIGURATIONS } from './buckets.ts';
import { Component, type Program } from './component.ts';
import { calmed, mixOf } from './fault-mix.ts';
import { ModelDisk } from './model-disk.ts';
import { agentProgram, type ModelNode } from './model-node.ts';
import { NodeWebhook } from './node-webhook.ts';
import { SimulatedServer } from './server.ts';
import { Streams } from './streams.ts';
import { Trace } from './trace.ts';
import { tracingLogger } from './tracing-logger.ts';
import { VirtualClock } from './virtual-clock.ts';
import { webhookRegistration } from './webhook-registration.ts';
import { ADMIN, unending, World } from './world.ts';

const NAMESPACE = 'shop';
const namespaces: Resource = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', namespaced: false };

export const SOURCE = 'node-a';
export const TARGET = 'node-b';
export const MIGRATION = 'migration-1';

export interface TwoNodesOptions {
  readonly traits?: Partial<ModelTraits>;
  readonly bytesPerSecond?: number;
  readonly onLine?: (line: string) => void;
  /** How long pods may take to end. */
  readonly podGraceSeconds?: number;
  /** Which requests of an agent are not answered, at this moment. */
  readonly isUnanswered?: (agent: string, path: string) => boolean;
  /** What runs beside the agents, by its name: where there are controllers, the test need not play their parts. */
  readonly others?: Readonly<Record<string, Program>>;
  /** Told of every request. */
  readonly onRequest?: (component: string, request: TransportRequest) => void;
}

/**
 * Two nodes with real agents, on models of machines and disks, beside a real API server, in virtual time. The parts of
 * scheduler and controllers are the test's.
 */
export class TwoNodes {
  readonly clock = new VirtualClock();
  readonly peers = new NearPeers();
  readonly network: ModelNetwork;
  /** What must never happen. */
  readonly violations: string[] = [];
  readonly trace: Trace;
  readonly server: SimulatedServer;
  readonly #world: World;
  readonly #models = new Map<string, HostedModel>();
  readonly #agents = new Map<string, Component>();
  readonly #client: Client;
  readonly #podGraceSeconds: number;

  constructor(options: TwoNodesOptions = {}) {
    const {
      traits = {},
      bytesPerSecond = 100_000_000,
      onLine,
      podGraceSeconds = 30,
      isUnanswered,
      onRequest,
    } = options;
    this.#podGraceSeconds = podGraceSeconds;
    const streams = new Streams(1);
    const mix = calmed(mixOf([], streams));
    this.trace = new Trace({ elapsedMs: () => this.clock.elapsedMs, onLine });
    const { clock, trace } = this;
    const log = (component: string) =>
      tracingLogger({ component, trace, onBug: (message) => this.violations.push(message) });
    this.network = new ModelNetwork(bytesPerSecond);
    this.server = new SimulatedServer({
      clock,
      streams,
      trace,
      log,
      disk: { random: streams.of('tears'), delay: async () => undefined, fault: () => undefined },
      webhooks: new NodeWebhook({
        unheard: () => this.unheard(),
        onRefusal: (message) => this.violations.push(message),
      }),
      downMs: () => Number.POSITIVE_INFINITY,
      onRequest: () => () => undefined,
      onLoaded: () => undefined,
      onUnusable: (message) => this.violations.push(message),
      onCommit: () => undefined,
    });
    const spoilTransport = (component: string, transport: Transport): Transport => ({
      send: async (request) => {
        onRequest?.(component, request);
        if (isUnanswered?.(component, request.path)) throw new TransportError('nobody answers');
        return transport.send(request);
      },
      close: () => transport.close(),
    });
    this.#world = new World({ clock, streams, trace, mix, log, server: this.server, spoilTransport });
    const process = this.#world.newProcess({ name: 'test', life: 1, canCrash: false, onCrash: () => undefined });
    this.#client = this.#world.clientOf(process, ADMIN);
    for (const name of [SOURCE, TARGET]) this.#addNode(name, streams, traits);
    for (const [name, program] of Object.entries(options.others ?? {})) this.#add(name, program);
  }

  /** Speaks as an admin. */
  get client(): Client {
    return this.#client;
  }

  async start(): Promise<void> {
    await this.during(this.server.start());
    const { signal } = new AbortController();
    await this.during(
      install(this.#client, this.clock, installation({ ours: [webhookRegistration(false)], initial: [] }), signal),
    );
    await this.create(namespaces, { metadata: { name: NAMESPACE } });
    for (const agent of this.#agents.values()) agent.start();
    await this.pass(5000);
  }

  stop(): void {
    for (const agent of this.#agents.values()) agent.stop();
    this.server.stop();
  }

  /** Nodes that are to be heard since the data was restored, by what is on disk. */
  unheard(): readonly string[] {
    const { items } = this.server.store?.list(CONFIGURATIONS) ?? { items: [] };
    return items.flatMap(({ text }) => (JSON.parse(text) as KubeVirt).status?.restoration?.unheard ?? []);
  }

  backUp(): Promise<readonly LogEntry[]> {
    return this.during(this.server.backUp());
  }

  /** The server goes on from a backup, of which both nodes are to be heard. */
  async restore(backup: readonly LogEntry[]): Promise<void> {
    const restoration = { id: `at ${this.clock.elapsedMs}`, unheard: [SOURCE, TARGET] };
    const amend: Amend = (objects) =>
      objects
        .filter(({ bucket }) => bucket === CONFIGURATIONS)
        .map(({ object, ...rest }) => {
          const status = { ...(object['status'] as JsonObject | undefined), restoration };
          return { ...rest, object: { ...object, status } };
        });
    await this.during(this.server.restore(backup, amend));
  }

  /** The UIDs of pods in whose machines a guest is executed. */
  executing(): readonly string[] {
    return [...this.#models].filter(([, model]) => model.isExecuting).map(([podUID]) => podUID);
  }

  /** Lets time pass until a promise is kept. */
  async during<T>(promise: Promise<T>): Promise<T> {
    const over = new AbortController();
    const settled = promise.finally(() => over.abort());
    // Whoever awaits it below hears of the failure.
    settled.catch(() => undefined);
    await turn();
    while (!over.signal.aborted && this.clock.fireNext(Number.POSITIVE_INFINITY)) await turn();
    return settled;
  }

  async pass(durationMs: number): Promise<void> {
    const endMs = this.clock.elapsedMs + durationMs;
    await turn();
    while (this.clock.fireNext(endMs)) await turn();
  }

  /** Lets time pass until the check holds, timer by timer. */
  async until(what: string, check: () => boolean, withinMs = 60_000): Promise<void> {
    const endMs = this.clock.elapsedMs + withinMs;
    await turn();
    while (!check()) {
      if (!this.clock.fireNext(endMs))
        throw new Error(`within ${withinMs} ms: not ${what}\n${this.trace.last(60).join('\n')}`);
      await turn();
    }
  }

  /** Waits until the guest on the server is like that. */
  async guestIs(what: string, check: (guest: VirtualMachineInstance) => boolean, withinMs = 60_000): Promise<void> {
    const endMs = this.clock.elapsedMs + withinMs;
    while (!check(await this.guest())) {
      if (this.clock.elapsedMs > endMs) {
        const status = JSON.stringify((await this.guest()).status, undefined, 1);
        throw new Error(`within ${withinMs} ms: not ${what}\n${this.trace.last(60).join('\n')}\n${status}`);
      }
      await this.pass(50);
    }
  }

  guest(): Promise<VirtualMachineInstance> {
    return this.during(this.#client.get(guests, NAMESPACE, 'web', unending()));
  }

  /** The guest, where there is one. */
  foundGuest(): Promise<VirtualMachineInstance | undefined> {
    return this.during(this.#client.find(guests, NAMESPACE, 'web', unending()));
  }

  async migrationState(): Promise<MigrationState> {
    return (await this.guest()).status?.migrationState ?? {};
  }

  pod(name: string): Promise<LauncherPod> {
    return this.during(this.#client.get(pods, NAMESPACE, name, unending()));
  }

  create<T extends KubeObject>(resource: Resource<T>, object: Partial<T>): Promise<T> {
    const { metadata = {} } = object;
    const namespace = resource.namespaced ? { namespace: NAMESPACE } : {};
    const whole = { ...object, metadata: { ...namespace, ...metadata } } as T;
    return this.during(this.#client.create(resource, whole, unending()));
  }

  async patchGuest(body: JsonObject, subresource?: string): Promise<void> {
    const options = subresource === undefined ? {} : { subresource };
    await this.during(this.#client.patch(guests, NAMESPACE, 'web', { type: 'merge', body }, unending(), options));
  }

  /** The model in which a pod's guest is, or was. */
  model(podName: string): HostedModel | undefined {
    return this.#models.get(this.#podUIDs.get(podName) ?? '');
  }

  readonly #podUIDs = new Map<string, string>();

  /** From now on the model of a pod is found by the pod's name. */
  notePod(name: string, uid: string): void {
    this.#podUIDs.set(name, uid);
  }

  /** A guest that runs on the source. */
  async runGuest(spec: Partial<VirtualMachineInstance['spec']> = {}): Promise<void> {
    const domain = { devices: {}, memory: { guest: '128Mi' } };
    await this.create(guests, { metadata: { name: 'web' }, spec: { domain, ...spec } });
    const uid = await this.addPod('web-1', SOURCE);
    await this.patchGuest({ metadata: { labels: { [NODE_NAME_LABEL]: SOURCE } } });
    await this.patchGuest(
      { status: { phase: 'Scheduled', nodeName: SOURCE, activePods: { [uid]: SOURCE } } },
      'status',
    );
    await this.guestIs('running', ({ status }) => status?.phase === 'Running');
    await this.pass(5000);
  }

  /** A launcher pod of the guest, bound to a node. */
  async addPod(name: string, node: string): Promise<string> {
    const { uid = '' } = (await this.guest()).metadata;
    const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', name: 'web', uid, controller: true };
    const pod = await this.create(pods, {
      metadata: { name, ownerReferences: [owner] },
      spec: {
        nodeName: node,
        containers: [{ name: 'compute', image: 'launcher:1' }],
        terminationGracePeriodSeconds: this.#podGraceSeconds,
      },
    });
    this.#podUIDs.set(name, pod.metadata.uid ?? '');
    return pod.metadata.uid ?? '';
  }

  /** Deletes a pod, as anybody does. */
  async deletePod(name: string, gracePeriodSeconds?: number): Promise<void> {
    const options = gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds };
    await this.during(this.#client.delete(pods, NAMESPACE, name, unending(), options));
  }

  /** Deletes a pod as schedulers do that need its room, or for another reason. */
  async preempt(name: string, reason = 'PreemptionByScheduler'): Promise<void> {
    const condition = { type: 'DisruptionTarget', status: 'True', reason };
    const body: JsonObject = { status: { conditions: [condition] } };
    const patch = { type: 'strategic', body } as const;
    await this.during(this.#client.patch(pods, NAMESPACE, name, patch, unending(), { subresource: 'status' }));
    await this.deletePod(name);
  }

  /** Asks for the eviction of a pod, where no webhook is there to say no. */
  async evict(name: string): Promise<void> {
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { namespace: NAMESPACE, name } };
    await this.during(this.#client.post(pods, NAMESPACE, name, 'eviction', eviction, unending()));
  }

  async patchNode(name: string, body: JsonObject, subresource?: string): Promise<void> {
    const options = subresource === undefined ? {} : { subresource };
    const patch = { type: 'strategic', body } as const;
    await this.during(this.#client.patch(nodeResource, '', name, patch, unending(), options));
  }

  /** Changes the cluster's configuration; null takes all of it away. */
  async configure(configuration: JsonObject | null): Promise<void> {
    const patch = { type: 'merge', body: { spec: { configuration } } } as const;
    await this.during(this.#client.patch(kubeVirts, SYSTEM_NAMESPACE, 'kubevirt', patch, unending()));
  }

  /** Deletes the guest, as its owner does. */
  async deleteGuest(): Promise<void> {
    await this.during(this.#client.delete(guests, NAMESPACE, 'web', unending()));
  }

  /** Whether the pod is gone. */
  async isPodGone(name: string): Promise<boolean> {
    return (await this.during(this.#client.find(pods, NAMESPACE, name, unending()))) === undefined;
  }

  /** Says that a pod has ended, as controllers do. */
  async forgetPod(name: string): Promise<void> {
    await this.patchGuest({ status: { activePods: { [this.#podUIDs.get(name) ?? '']: null } } }, 'status');
  }

  /** Makes a target pod, and hands the guest off to the agents. */
  async handOff(
    migrationConfiguration: JsonObject = {},
    migrationUid = MIGRATION,
    targetPod = 'web-2',
    targetNode = TARGET,
    halves: JsonObject = {},
  ): Promise<void> {
    const uid = await this.addPod(targetPod, targetNode);
    await this.until('a target pod that runs', () => true);
    const route = { migrationUid, sourceNode: SOURCE, sourcePod: 'web-1', targetNode, targetPod };
    const migrationState = { ...route, migrationConfiguration, ...halves };
    await this.patchGuest({ status: { migrationState: null } }, 'status');
    await this.patchGuest({ status: { migrationState, activePods: { [uid]: targetNode } } }, 'status');
    await this.patchGuest({ metadata: { labels: { [TARGET_NODE_LABEL]: targetNode } } });
  }

  /** Kills an agent where it stands. */
  kill(node: string): void {
    this.#agents.get(node)?.stop();
  }

  /** Starts the agent of a node anew. */
  restart(node: string): void {
    this.#agents.get(node)?.start();
  }

  #addNode(name: string, streams: Streams, traits: Partial<ModelTraits>): void {
    const { clock, network, trace } = this;
    const random = streams.of(`host/${name}`);
    const host = new ModelHost({
      env: { clock, random },
      traits,
      network,
      latencyMs: () => 0.5,
      onChange: (model) => {
        this.#models.set(model.run.instance, model);
        trace.add(name, `the model for ${model.run.instance} is ${model.end ? 'gone' : model.status}`);
        const executing = [...this.#models.values()].filter((each) => each.isExecuting);
        if (executing.length > 1) this.violations.push(`the guest is executed ${executing.length} times`);
      },
    });
    const disk = new ModelDisk({ clock, random, delayMs: () => 1, fault: () => undefined });
    const node: ModelNode = { name, host, disk, keys: [nearKey(name)] };
    const program = agentProgram(node, () => ({
      peers: this.peers.of(name),
      serve: (service) => void this.peers.services.set(name, service),
    }));
    this.#add(name, program);
  }

  #add(name: string, program: Program): void {
    const component = new Component({
      world: this.#world,
      name,
      program,
      canCrash: false,
      onFailure: (error) => this.violations.push(String(error)),
    });
    this.#agents.set(name, component);
  }
}
