import { clusterLoops } from '../cluster/cluster.ts';
import { schedulerLoop } from '../cluster/scheduler/loop.ts';
import { install, installation } from '../control/installation/install.ts';
import type { Logger } from '../env/ports.ts';
import { extensionRights } from '../extension/rights.ts';
import type { Client } from '../kube/client.ts';
import { errorText } from '../kube/error-text.ts';
import { LeadershipLostError } from '../kube/leader-election.ts';
import { synchronizationRights } from '../sync/rights.ts';
import { changeTrust } from '../sync/trust/store.ts';
import { FAR_NAMESPACE } from './actions/clusters.ts';
import { type ClusterStrike, ClusterStrikes } from './cluster-strikes.ts';
import { Component, type Program } from './component.ts';
import { controlProgram } from './control-program.ts';
import { EvictionWebhooks } from './eviction-webhooks.ts';
import { calmed, drawCommitFault, drawSyncMs, type FaultMix, mixOf } from './fault-mix.ts';
import type { Load, ObservedCache, ObservedMachine, Scene } from './invariant.ts';
import { kubelet, type Machine } from './kubelet.ts';
import { loopProgram } from './loops.ts';
import { machinesOf } from './machines.ts';
import { agentProgram, type ModelNode } from './model-node.ts';
import type { ModelNodes } from './model-nodes.ts';
import { NodeWebhook } from './node-webhook.ts';
import { isObserved, type Observation, Observer, type State } from './observer.ts';
import { placeOf } from './places.ts';
import type { PlantedBug } from './planted-bug.ts';
import type { Plan } from './plan.ts';
import { RequestsUnderWay } from './requests-under-way.ts';
import type { Scenario } from './scenario.ts';
import { SimulatedServer } from './server.ts';
import type { Streams } from './streams.ts';
import { addressOf, syncProgram } from './sync-program.ts';
import type { SyncNetwork } from './sync-network.ts';
import { trusting } from './sync-trust.ts';
import type { Trace, Tracer } from './trace.ts';
import { tracingLogger } from './tracing-logger.ts';
import { prepare } from './user.ts';
import type { VirtualClock } from './virtual-clock.ts';
import { webhookRegistration } from './webhook-registration.ts';
import { ADMIN, unending, World } from './world.ts';

export interface SimulatedClusterOptions {
  /** Empty where there is only one. */
  readonly name: string;
  readonly plan: Plan;
  readonly scenario: Scenario;
  readonly clock: VirtualClock;
  /** Of the whole run. */
  readonly streams: Streams;
  readonly trace: Trace;
  readonly bug: PlantedBug | undefined;
  /** The nodes of all clusters, and what lies between them. */
  readonly modelNodes: ModelNodes;
  /** The way to other clusters, where there are any. */
  readonly network: SyncNetwork | undefined;
  /** Their names: all are trusted in the beginning. */
  readonly peers: readonly string[];
  /** Whether nothing fails any more, and has not for a while. */
  readonly isCalm: () => boolean;
  readonly onObservation: (observation: Observation, state: State) => void;
  readonly onLoad: (load: Load) => void;
  /** Told of what belongs to no invariant of a scenario. */
  readonly fail: (check: string, message: string) => void;
}

const SERVER_DOWN_MS_MAX = 20_000;
/** The process of the webhooks for evictions. */
const WEBHOOKS = 'webhooks';

/** One cluster of a run: a server, all that works for it, its nodes, and who watches. */
export class SimulatedCluster {
  readonly name: string;
  /** What is durable in it. */
  readonly state: Observer;
  readonly #options: SimulatedClusterOptions;
  readonly #streams: Streams;
  readonly #trace: Tracer;
  readonly #underWay = new RequestsUnderWay();
  readonly #webhooks: EvictionWebhooks | undefined;
  readonly #server: SimulatedServer;
  readonly #world: World;
  readonly #components: Component[] = [];
  readonly #caches = new Map<string, readonly ObservedCache[]>();
  readonly #strikes: ClusterStrikes;
  #mix: FaultMix;
  #client: Client | undefined;

  constructor(options: SimulatedClusterOptions) {
    this.#options = options;
    const { name, plan, scenario, clock, bug } = options;
    this.name = name;
    this.#streams = options.streams.within(name);
    this.#trace = options.trace.within(name);
    const mix = mixOf(plan.faults, this.#streams);
    this.#mix = calmed(mix);
    this.state = new Observer({
      trace: this.#trace,
      onObservation: options.onObservation,
      elapsedMs: () => clock.elapsedMs,
      isCalm: options.isCalm,
      isEvicted: (key) => this.#underWay.isEvicted(key),
      deleters: (bucket, key) => this.#underWay.deleters(bucket, key),
      askedToGo: (key) => this.#underWay.wasEvicted(key),
      onLoad: options.onLoad,
    });
    this.#webhooks = scenario.hasEvictions === true ? this.#newWebhooks() : undefined;
    this.#server = this.#newServer();
    this.#world = new World({
      clock,
      streams: this.#streams,
      trace: this.#trace,
      mix,
      log: (component) => this.#log(component),
      server: this.#server,
      spoilTransport: (component, transport, random) =>
        bug?.spoilTransport && (bug.whose?.test(component) ?? true) ? bug.spoilTransport(transport, random) : transport,
    });
    const hosts = new Map<string, ModelNode>();
    const nodes = machinesOf(scenario).map((machine) => this.#newNode(machine, hosts));
    this.#components.push(...this.#newLoops(), ...nodes);
    if (this.#webhooks) this.#components.push(this.#newComponent(WEBHOOKS, this.#webhooks.program));
    this.#strikes = new ClusterStrikes({
      cluster: name,
      clock,
      trace: this.#trace,
      server: this.#server,
      world: this.#world,
      state: this.state,
      modelNodes: options.modelNodes,
      components: this.#components,
      nodes,
      hosts,
      webhooks: this.#components.find((component) => component.name === WEBHOOKS),
      client: () => this.#client,
      mayPause: (process) => this.#mayPause(process.name),
    });
  }

  /** As it is at any time. */
  get mix(): FaultMix {
    return this.#mix;
  }

  /** The user's, once the run has begun. */
  get client(): Client {
    if (!this.#client) throw new Error('there is no user yet');
    return this.#client;
  }

  /** Where its synchronization controller is reached. */
  get address(): string {
    return addressOf(this.name);
  }

  /** Before anything fails, there is a server, and what all scenarios take for granted. */
  async setUp(): Promise<void> {
    const { scenario, clock, peers } = this.#options;
    await this.#server.start();
    const process = this.#world.newProcess({ name: 'setup', life: 1, canCrash: false, onCrash: () => undefined });
    process.calm();
    const client = this.#world.clientOf(process, ADMIN);
    process.calm();
    await prepare(client, unending(), this.name === '' ? [] : [FAR_NAMESPACE]);
    const ours = [
      webhookRegistration(this.#webhooks !== undefined),
      ...(this.#webhooks ? extensionRights() : []),
      ...(scenario.hasPairs === true ? synchronizationRights() : []),
    ];
    if (scenario.hasMachines === true) await install(client, clock, installation({ ours, initial: [] }), unending());
    if (peers.length > 0) await changeTrust(client, (data) => trusting(data, peers), unending());
    process.kill();
  }

  /** From now on anything may fail. */
  begin(): void {
    this.#mix = this.#world.mix;
    for (const component of this.#components) component.start();
  }

  /** From now on there is a user. */
  admit(): void {
    const user = this.#world.newProcess({ name: 'user', life: 1, canCrash: false, onCrash: () => undefined });
    this.#client = this.#world.clientOf(user, ADMIN);
  }

  strike(strike: ClusterStrike): void {
    this.#strikes.strike(strike);
  }

  /** Nothing fails any more. */
  calm(): void {
    this.#mix = calmed(this.#mix);
    this.#world.calm();
    for (const component of this.#components) this.#strikes.turnOn(component);
  }

  /** What of it does not run. */
  missing(): readonly string[] {
    const missing = this.#components.filter(({ process }) => !process).map(({ name }) => name);
    if (!this.#server.current) missing.push('server');
    return missing;
  }

  /** What there is in it, given the machines on its nodes. */
  scene(machines: readonly ObservedMachine[]): Scene {
    return {
      state: this.state,
      buckets: [...this.state.buckets()],
      elapsedMs: this.#options.clock.elapsedMs,
      machines,
      caches: [...this.#caches.values()].flat().filter(({ bucket }) => isObserved(bucket)),
    };
  }

  stop(): void {
    for (const component of this.#components) component.stop();
    this.#server.stop();
  }

  /**
   * A scheduler that slept through the loss of its leadership may still bind a pod when it wakes, beside what another
   * one has placed meanwhile: no server can refuse that, and on real nodes it is the kubelet that does.
   */
  #mayPause(process: string): boolean {
    return !(this.#mix.hasReplicas && process.startsWith('scheduler'));
  }

  #log(component: string): Logger {
    return tracingLogger({
      component,
      trace: this.#trace,
      onBug: (message) => this.#options.fail('no-bugs', message),
    });
  }

  #newServer(): SimulatedServer {
    const { clock, bug, fail } = this.#options;
    const stream = (name: string) => this.#streams.of(`disk/${name}`);
    const [faults, delays, tears, downs] = [stream('faults'), stream('delays'), stream('tears'), stream('downs')];
    const delay = (): Promise<void> =>
      new Promise((resolve) => void clock.setTimer(resolve, drawSyncMs(this.#mix.disk, delays)));
    return new SimulatedServer({
      clock,
      streams: this.#streams,
      trace: this.#trace,
      log: (component) => this.#log(component),
      disk: { random: tears, delay, fault: () => drawCommitFault(this.#mix.disk, faults) },
      historyChangesMax: this.#mix.historyChangesMax,
      webhooks: new NodeWebhook({ unheard: () => [], others: this.#webhooks }),
      downMs: () => downs.number() ** 2 * SERVER_DOWN_MS_MAX,
      spoilDisk: bug?.spoilDisk,
      onRequest: ({ method, path, certificate }) => this.#underWay.begin(method, path, certificate.commonName),
      onLoaded: (store) => {
        this.#underWay.clear();
        this.state.loaded(store);
      },
      onUnusable: (message) => fail('durability', message),
      onCommit: (change) => this.state.committed(change),
    });
  }

  #newWebhooks(): EvictionWebhooks {
    const random = this.#streams.of('webhooks');
    const latencyMs = (): number => random.number() * this.#mix.latencyMsMax;
    return new EvictionWebhooks({ clock: this.#options.clock, latencyMs });
  }

  #newNode(machine: Machine, hosts: Map<string, ModelNode>): Component {
    const { scenario, modelNodes } = this.#options;
    const { name } = machine;
    if (scenario.hasMachines !== true) return this.#newComponent(name, kubelet(machine));
    const place = placeOf(this.name, name);
    const node = modelNodes.newNode(place, () => this.#mix);
    hosts.set(name, node);
    return this.#newComponent(
      name,
      agentProgram(node, (process) => modelNodes.channel.linkOf(place, process)),
    );
  }

  /** Each loop is a process of its own, or all of the controller manager are one. Replicas stand for a lease. */
  #newLoops(): Component[] {
    const { bug, scenario, network } = this.#options;
    const hasReplicas = this.#mix.hasReplicas || bug?.hasNoElection === true;
    const managed = clusterLoops.filter((loop) => loop !== schedulerLoop);
    const isTogether = this.#mix.isTogether || hasReplicas || this.name !== '';
    const groups = isTogether
      ? [{ name: 'manager', loops: managed }]
      : managed.map((loop) => ({ name: loop.name, loops: [loop] }));
    const replicated = (
      name: string,
      program: (replica: string, lease: string | undefined) => Program,
    ): Component[] => {
      const names = hasReplicas ? [`${name}-a`, `${name}-b`] : [name];
      const lease = hasReplicas && !bug?.hasNoElection ? name : undefined;
      return names.map((replica) => this.#newComponent(replica, program(replica, lease)));
    };
    const onCaches = (name: string) => (caches: readonly ObservedCache[]) => void this.#caches.set(name, caches);
    const cluster = this.name;
    return [
      ...[{ name: 'scheduler', loops: [schedulerLoop] }, ...groups].flatMap(({ name, loops }) =>
        replicated(name, (replica, lease) => loopProgram({ loops, lease, onCaches: onCaches(replica) })),
      ),
      ...(scenario.hasMachines === true
        ? replicated('controllers', (replica, lease) => controlProgram({ lease, onCaches: onCaches(replica) }))
        : []),
      ...(scenario.hasPairs === true
        ? replicated('synchronization', (replica, lease) =>
            syncProgram({ lease, cluster, network, onCaches: onCaches(replica) }),
          )
        : []),
    ];
  }

  #newComponent(name: string, program: Program): Component {
    return new Component({
      world: this.#world,
      name,
      program,
      canCrash: true,
      onFailure: (error) => {
        if (!(error instanceof LeadershipLostError)) this.#options.fail('no-bugs', `${name}: ${errorText(error)}`);
      },
    });
  }
}
