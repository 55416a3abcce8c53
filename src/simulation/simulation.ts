import { clusterLoops } from '../cluster/cluster.ts';
import { install, installation } from '../control/installation/install.ts';
import { schedulerLoop } from '../cluster/scheduler/loop.ts';
import type { Logger } from '../env/ports.ts';
import { turn } from '../env/turn.ts';
import { onUnhandled } from '../env/unhandled.ts';
import type { Client } from '../kube/client.ts';
import { errorText } from '../kube/error-text.ts';
import { LeadershipLostError } from '../kube/leader-election.ts';
import { Component, type Program } from './component.ts';
import { controlProgram } from './control-program.ts';
import { EvictionWebhooks, evictionRegistration } from './eviction-webhooks.ts';
import { extensionRights } from '../extension/rights.ts';
import { calmed, drawCommitFault, drawSyncMs, type FaultMix, mixOf } from './fault-mix.ts';
import type { Invariant, ObservedCache, Unsettled } from './invariant.ts';
import { kubelet, type Machine } from './kubelet.ts';
import { machinesOf } from './machines.ts';
import { loopProgram } from './loops.ts';
import { agentProgram, type ModelNode } from './model-node.ts';
import { ModelNodes } from './model-nodes.ts';
import { isObserved, type Observation, Observer, type State } from './observer.ts';
import { Operator } from './operator.ts';
import type { Plan, PlannedAction, Strike } from './plan.ts';
import type { PlantedBug } from './planted-bug.ts';
import type { SimulatedProcess } from './process.ts';
import { describeUnsettled } from './report.ts';
import { RequestsUnderWay } from './requests-under-way.ts';
import type { Scenario } from './scenario.ts';
import { SimulatedServer } from './server.ts';
import { Streams } from './streams.ts';
import { Trace } from './trace.ts';
import { tracingLogger } from './tracing-logger.ts';
import { synchronizationRights } from '../sync/rights.ts';
import { syncProgram } from './sync-program.ts';
import { ACTIONS, type ActionName, prepare } from './user.ts';
import { VirtualClock } from './virtual-clock.ts';
import { ADMIN, unending, World } from './world.ts';

/**
 * One run: a whole cluster in one thread, in virtual time, from one plan. First anything may fail, and no invariant may
 * break at any commit (safety); then nothing fails any more, and everything must come to rest where it belongs within
 * a bounded time (liveness).
 */

/** Longer than anything waits for anything: five minutes of tolerating a lost node, and of not trying a pod again. */
const SETTLE_MS_MAX = 15 * 60_000;
const SETTLE_LOOK_MS = 20_000;
const SERVER_DOWN_MS_MAX = 20_000;
/** By then all have heard of all that there is. */
const CALMING_MS = 2 * 60_000;
/** By then there is a server again. */
const LAST_ACTIONS_MS = 60_000;
const LAST_ACTIONS_EVERY_MS = 30_000;
const CLOCK_STEP_MS_MAX = 30_000;
/** Nodes that are given up are seen to sooner than others come back, so that all is settled in time. */
const NOTICED_SHARE = 0.2;
/** The process of the webhooks for evictions. */
const WEBHOOKS = 'webhooks';

export interface Failure {
  readonly invariant: string;
  readonly message: string;
  readonly atMs: number;
}

export interface Outcome {
  readonly failure: Failure | undefined;
  readonly digest: string;
  readonly lines: readonly string[];
  /** How much time passed in it. */
  readonly elapsedMs: number;
}

export interface SimulationOptions {
  readonly bug?: PlantedBug | undefined;
  /** Told every line of the trace. */
  readonly onLine?: ((line: string) => void) | undefined;
  /** Whether to end when nothing fails any more, and not look at what becomes of it. */
  readonly isSafetyOnly?: boolean;
}

/** Runs a plan to its end, or to the first invariant that breaks. */
export function simulate(plan: Plan, scenario: Scenario, options: SimulationOptions = {}): Promise<Outcome> {
  return new Simulation(plan, scenario, options).run();
}

class Simulation {
  readonly #plan: Plan;
  readonly #bug: PlantedBug | undefined;
  readonly #isSafetyOnly: boolean;
  readonly #clock = new VirtualClock();
  readonly #streams: Streams;
  readonly #trace: Trace;
  readonly #observer: Observer;
  readonly #underWay = new RequestsUnderWay();
  readonly #server: SimulatedServer;
  readonly #world: World;
  readonly #invariants: readonly Invariant[];
  readonly #components: Component[] = [];
  readonly #nodes: readonly Component[];
  readonly #hasMachines: boolean;
  readonly #hasPairs: boolean;
  readonly #webhooks: EvictionWebhooks | undefined;
  readonly #modelNodes: ModelNodes;
  /** What nodes with agents have besides them, by name. */
  readonly #hosts = new Map<string, ModelNode>();
  /** Nodes that stay off until somebody has seen to them. */
  readonly #givenUp = new Set<string>();
  readonly #caches = new Map<string, readonly ObservedCache[]>();
  readonly #forever = unending();
  readonly #lastActions: readonly ActionName[];
  /** The user's. */
  #client: Client | undefined;
  #mix: FaultMix;
  /** When the last of what failed has been dealt with. */
  #calmAtMs = Number.POSITIVE_INFINITY;
  #failure: Failure | undefined;

  constructor(plan: Plan, scenario: Scenario, { bug, onLine, isSafetyOnly = false }: SimulationOptions) {
    this.#isSafetyOnly = isSafetyOnly;
    this.#plan = plan;
    this.#bug = bug;
    this.#streams = new Streams(plan.seed);
    const mix = mixOf(plan.faults, this.#streams);
    this.#mix = calmed(mix);
    this.#trace = new Trace({ elapsedMs: () => this.#clock.elapsedMs, onLine });
    const invariants = scenario.invariants.map((make) => make());
    this.#invariants = invariants.filter(({ name }) => !bug || bug.invariant === name);
    this.#observer = new Observer({
      trace: this.#trace,
      onObservation: (observation, state) => this.#judge(observation, state),
      elapsedMs: () => this.#clock.elapsedMs,
      isCalm: () => this.#clock.elapsedMs > this.#calmAtMs,
      isEvicted: (key) => this.#underWay.isEvicted(key),
      deleters: (bucket, key) => this.#underWay.deleters(bucket, key),
      askedToGo: (key) => this.#underWay.wasEvicted(key),
      onLoad: (load) => {
        for (const invariant of this.#invariants) this.#failIf(invariant, invariant.reloaded?.(load));
      },
    });
    this.#webhooks = scenario.hasEvictions === true ? this.#newWebhooks() : undefined;
    this.#server = this.#newServer();
    this.#world = new World({
      clock: this.#clock,
      streams: this.#streams,
      trace: this.#trace,
      mix,
      log: (component) => this.#log(component),
      server: this.#server,
      spoilTransport: bug?.spoilTransport,
    });
    this.#lastActions = scenario.lastActions ?? [];
    this.#hasMachines = scenario.hasMachines === true;
    this.#hasPairs = scenario.hasPairs === true;
    this.#modelNodes = new ModelNodes({
      clock: this.#clock,
      streams: this.#streams,
      trace: this.#trace,
      mix: () => this.#mix,
      onChange: () => this.#judgeMachines(),
      hasPairs: this.#hasPairs,
      bug,
    });
    this.#nodes = machinesOf(scenario).map((machine) => this.#newNode(machine));
    this.#components.push(...this.#newLoops(), ...this.#nodes);
    if (this.#webhooks) this.#components.push(this.#newComponent(WEBHOOKS, this.#webhooks.program));
  }

  async run(): Promise<Outcome> {
    const stopListening = onUnhandled((error) => this.#fail('no-bugs', `nobody handled ${errorText(error)}`));
    await this.#begin();
    await this.#runUntil(this.#plan.horizonMs);
    if (!this.#failure && !this.#isSafetyOnly) await this.#settle();
    stopListening();
    if (this.#failure) this.#trace.add('failure', `${this.#failure.invariant}: ${this.#failure.message}`);
    const [digest, lines] = [this.#trace.digest(), this.#trace.last()];
    for (const component of this.#components) component.stop();
    this.#server.stop();
    return { failure: this.#failure, digest, lines, elapsedMs: this.#clock.elapsedMs };
  }

  /** Lets time pass until then, or until something is wrong. */
  async #runUntil(endMs: number): Promise<void> {
    await turn();
    try {
      while (!this.#failure && this.#clock.fireNext(endMs)) await turn();
    } catch (error) {
      // What a timer throws would have ended its process.
      this.#fail('no-bugs', errorText(error));
    }
  }

  async #begin(): Promise<void> {
    const ready = new AbortController();
    this.#setUp().then(
      () => ready.abort(),
      (error: unknown) => this.#fail('setup', errorText(error)),
    );
    await turn();
    while (!ready.signal.aborted && !this.#failure && this.#clock.fireNext(Number.POSITIVE_INFINITY)) await turn();
    this.#mix = this.#world.mix;
    for (const component of this.#components) component.start();
    const fromMs = this.#clock.elapsedMs;
    for (const strike of this.#plan.strikes)
      this.#clock.setTimer(() => this.#strike(strike), Math.max(0, strike.atMs - fromMs));
    const user = this.#world.newProcess({ name: 'user', life: 1, canCrash: false, onCrash: () => undefined });
    this.#client = this.#world.clientOf(user, ADMIN);
    for (const action of this.#plan.actions)
      this.#clock.setTimer(() => void this.#act(action), Math.max(0, action.atMs - fromMs));
  }

  /** Before anything fails, there is a server, and what all scenarios take for granted. */
  async #setUp(): Promise<void> {
    await this.#server.start();
    const process = this.#world.newProcess({ name: 'setup', life: 1, canCrash: false, onCrash: () => undefined });
    process.calm();
    const client = this.#world.clientOf(process, ADMIN);
    process.calm();
    await prepare(client, unending());
    const ours = [
      ...(this.#webhooks ? [...extensionRights(), evictionRegistration()] : []),
      ...(this.#hasPairs ? synchronizationRights() : []),
    ];
    if (this.#hasMachines) await install(client, this.#clock, installation({ ours, initial: [] }), unending());
    process.kill();
  }

  async #act(action: Omit<PlannedAction, 'atMs'>): Promise<void> {
    const client = this.#client;
    if (!client) throw new Error('there is no user yet');
    const run = ACTIONS[action.what as ActionName];
    this.#trace.add('user', `does ${action.what}`);
    try {
      const random = this.#streams.of(action.stream);
      const nowMs = this.#clock.now();
      await run({ client, state: this.#observer, random, nowMs, signal: this.#forever });
    } catch (error) {
      this.#trace.add('user', `${action.what} failed: ${errorText(error)}`);
    }
  }

  #strike({ what, victim, durationMs }: Strike): void {
    const pick = <T>(items: readonly T[]): T | undefined => items[Math.floor(victim * items.length)];
    const back = (callback: () => void): void => void this.#clock.setTimer(callback, durationMs);
    switch (what) {
      case 'crash-server':
        return this.#server.crash('struck');
      case 'kill':
        return pick(this.#components)?.kill('by a strike');
      case 'partition': {
        const process = pick(this.#world.processes);
        if (!process) return;
        this.#trace.add(process.name, `is cut off for ${Math.round(durationMs)} ms`);
        process.partition();
        return back(() => process.heal());
      }
      case 'pause': {
        const process = pick(this.#world.processes.filter((each) => this.#mayPause(each)));
        if (!process) return;
        this.#trace.add(process.name, `stands still for ${Math.round(durationMs)} ms`);
        return process.pause(durationMs);
      }
      case 'step-clock': {
        const process = pick(this.#world.processes);
        if (process) process.clock.offsetMs = (durationMs % CLOCK_STEP_MS_MAX) - CLOCK_STEP_MS_MAX / 2;
        return;
      }
      case 'node-down': {
        const node = pick(this.#nodes);
        if (!node) return;
        this.#turnOff(node);
        this.#trace.add(node.name, `is down for ${Math.round(durationMs / 1000)} s`);
        return back(() => this.#turnOn(node));
      }
      case 'node-lost': {
        const node = pick(this.#nodes.filter(({ name }) => !this.#givenUp.has(name)));
        return node && this.#loseNode(node, victim, durationMs);
      }
      case 'webhooks-down': {
        const webhooks = this.#components.find(({ name }) => name === WEBHOOKS);
        webhooks?.stop();
        return back(() => webhooks && this.#turnOn(webhooks));
      }
      case 'kill-machine':
      case 'silence-machine':
      case 'panic':
      case 'power-off':
      case 'cut-link':
      case 'silence-link':
      case 'cut-channel':
        return this.#modelNodes.strike(what, victim, back);
    }
  }

  /** The power fails, and everything on the node with it. */
  #turnOff(node: Component): void {
    node.stop();
    this.#modelNodes.struckDown(node.name);
    this.#hosts.get(node.name)?.host.crash();
    this.#hosts.get(node.name)?.disk.crash();
  }

  #turnOn(node: Component): void {
    if (!node.process && !this.#givenUp.has(node.name)) node.start();
  }

  /** A node that somebody gives up: it may come back with another disk. */
  #loseNode(node: Component, victim: number, offMs: number): void {
    const { name } = node;
    const client = this.#client;
    if (!client) return;
    this.#turnOff(node);
    const hasNewDisk = (victim * 1000) % 1 < 0.5;
    this.#trace.add(name, `is lost, and comes back with ${hasNewDisk ? 'an empty' : 'its old'} disk`);
    if (hasNewDisk) this.#hosts.get(name)?.disk.replace();
    this.#givenUp.add(name);
    const operator = new Operator({
      clock: this.#clock,
      client,
      state: this.#observer,
      trace: this.#trace,
      signal: this.#forever,
    });
    void operator.giveUp(name, offMs * NOTICED_SHARE, () => {
      this.#givenUp.delete(name);
      this.#turnOn(node);
    });
  }

  /**
   * A scheduler that slept through the loss of its leadership may still bind a pod when it wakes, beside what another
   * one has placed meanwhile: no server can refuse that, and on real nodes it is the kubelet that does.
   */
  #mayPause({ name }: SimulatedProcess): boolean {
    return !(this.#mix.hasReplicas && name.startsWith('scheduler'));
  }

  /** Nothing fails any more. Everything has to come to rest. */
  async #settle(): Promise<void> {
    this.#trace.add('simulation', 'nothing fails any more');
    this.#mix = calmed(this.#mix);
    this.#calmAtMs = this.#clock.elapsedMs + CALMING_MS;
    this.#world.calm();
    for (const component of this.#components) this.#turnOn(component);
    this.#modelNodes.calm();
    for (const [index, what] of this.#lastActions.entries()) {
      const act = (): void => void this.#act({ what, stream: `last/${what}` });
      this.#clock.setTimer(act, LAST_ACTIONS_MS + index * LAST_ACTIONS_EVERY_MS);
    }
    const endMs = this.#clock.elapsedMs + SETTLE_MS_MAX;
    let unsettled: readonly Unsettled[] = [];
    for (let calmLooks = 0; calmLooks < 2; ) {
      await this.#runUntil(this.#clock.elapsedMs + SETTLE_LOOK_MS);
      if (this.#failure) return;
      const found = this.#unsettled();
      calmLooks = found ? 0 : calmLooks + 1;
      unsettled = found?.unsettled ?? [];
      if (!found || (this.#clock.elapsedMs < endMs && !unsettled.some(({ isLate }) => isLate))) continue;
      return this.#fail(found.invariant, describeUnsettled(unsettled, this.#trace.last()));
    }
  }

  /** The first invariant by which something is not where it belongs, and what. */
  #unsettled(): { readonly invariant: string; readonly unsettled: readonly Unsettled[] } | undefined {
    const missing = this.#components.filter(({ process }) => !process).map(({ name }) => name);
    if (!this.#server.current) missing.push('server');
    if (missing.length > 0)
      return { invariant: 'everything-runs', unsettled: missing.map((key) => ({ key, what: 'does not run' })) };
    const scene = {
      state: this.#observer,
      buckets: [...this.#observer.buckets()],
      elapsedMs: this.#clock.elapsedMs,
      machines: this.#modelNodes.machines(),
      caches: [...this.#caches.values()].flat().filter(({ bucket }) => isObserved(bucket)),
    };
    for (const invariant of this.#invariants) {
      const unsettled = invariant.unsettled?.(scene) ?? [];
      if (unsettled.length > 0) return { invariant: invariant.name, unsettled };
    }
    return undefined;
  }

  #judge(observation: Observation, state: State): void {
    for (const invariant of this.#invariants) this.#failIf(invariant, invariant.observe?.(observation, state));
  }

  #judgeMachines(): void {
    const machines = this.#modelNodes.machines();
    for (const invariant of this.#invariants)
      this.#failIf(invariant, invariant.executed?.(machines, this.#observer, this.#clock.elapsedMs));
  }

  #failIf({ name }: Invariant, wrong: string | undefined): void {
    if (wrong !== undefined) this.#fail(name, wrong);
  }

  #fail(invariant: string, message: string): void {
    // With a planted bug only its own invariant counts: others may see it, too, and sooner.
    if (this.#bug && this.#bug.invariant !== invariant) return;
    this.#failure ??= { invariant, message, atMs: this.#clock.elapsedMs };
  }

  #log(component: string): Logger {
    return tracingLogger({ component, trace: this.#trace, onBug: (message) => this.#fail('no-bugs', message) });
  }

  #newServer(): SimulatedServer {
    const stream = (name: string) => this.#streams.of(`disk/${name}`);
    const [faults, delays, tears, downs] = [stream('faults'), stream('delays'), stream('tears'), stream('downs')];
    const delay = (): Promise<void> =>
      new Promise((resolve) => void this.#clock.setTimer(resolve, drawSyncMs(this.#mix.disk, delays)));
    return new SimulatedServer({
      clock: this.#clock,
      streams: this.#streams,
      trace: this.#trace,
      log: (component) => this.#log(component),
      disk: { random: tears, delay, fault: () => drawCommitFault(this.#mix.disk, faults) },
      historyChangesMax: this.#mix.historyChangesMax,
      webhooks: this.#webhooks,
      downMs: () => downs.number() ** 2 * SERVER_DOWN_MS_MAX,
      spoilDisk: this.#bug?.spoilDisk,
      onRequest: ({ method, path, certificate }) => this.#underWay.begin(method, path, certificate.commonName),
      onLoaded: (store) => {
        this.#underWay.clear();
        this.#observer.loaded(store);
      },
      onUnusable: (message) => this.#fail('durability', message),
      onCommit: (change) => this.#observer.committed(change),
    });
  }

  #newWebhooks(): EvictionWebhooks {
    const random = this.#streams.of('webhooks');
    const latencyMs = (): number => random.number() * this.#mix.latencyMsMax;
    return new EvictionWebhooks({ clock: this.#clock, latencyMs });
  }

  #newNode(machine: Machine): Component {
    const { name } = machine;
    if (!this.#hasMachines) return this.#newComponent(name, kubelet(machine));
    const node = this.#modelNodes.newNode(name);
    this.#hosts.set(name, node);
    return this.#newComponent(
      name,
      agentProgram(node, (process) => this.#modelNodes.channel.linkOf(name, process)),
    );
  }

  /** Each loop is a process of its own, or all of the controller manager are one. Replicas stand for a lease. */
  #newLoops(): Component[] {
    const hasReplicas = this.#mix.hasReplicas || this.#bug?.hasNoElection === true;
    const managed = clusterLoops.filter((loop) => loop !== schedulerLoop);
    const isTogether = this.#mix.isTogether || hasReplicas;
    const groups = isTogether
      ? [{ name: 'manager', loops: managed }]
      : managed.map((loop) => ({ name: loop.name, loops: [loop] }));
    const replicated = (
      name: string,
      program: (replica: string, lease: string | undefined) => Program,
    ): Component[] => {
      const names = hasReplicas ? [`${name}-a`, `${name}-b`] : [name];
      const lease = hasReplicas && !this.#bug?.hasNoElection ? name : undefined;
      return names.map((replica) => this.#newComponent(replica, program(replica, lease)));
    };
    const onCaches = (name: string) => (caches: readonly ObservedCache[]) => void this.#caches.set(name, caches);
    return [
      ...[{ name: 'scheduler', loops: [schedulerLoop] }, ...groups].flatMap(({ name, loops }) =>
        replicated(name, (replica, lease) => loopProgram({ loops, lease, onCaches: onCaches(replica) })),
      ),
      ...(this.#hasMachines
        ? replicated('controllers', (replica, lease) => controlProgram({ lease, onCaches: onCaches(replica) }))
        : []),
      ...(this.#hasPairs
        ? replicated('synchronization', (replica, lease) => syncProgram({ lease, onCaches: onCaches(replica) }))
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
        if (!(error instanceof LeadershipLostError)) this.#fail('no-bugs', `${name}: ${errorText(error)}`);
      },
    });
  }
}
