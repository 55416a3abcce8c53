import { turn } from '../env/turn.ts';
import { onUnhandled } from '../env/unhandled.ts';
import { errorText } from '../kube/error-text.ts';
import type { UserContext } from './actions/context.ts';
import { SimulatedCluster } from './cluster.ts';
import type { Invariant, InvariantAcross, ObservedMachine, Unsettled } from './invariant.ts';
import { ModelNodes } from './model-nodes.ts';
import type { Observation, State } from './observer.ts';
import type { Plan, PlannedAction, Strike } from './plan.ts';
import type { PlantedBug } from './planted-bug.ts';
import { describeUnsettled } from './report.ts';
import { clustersOf, type Scenario } from './scenario.ts';
import { between, oneOf, Streams } from './streams.ts';
import { SyncNetwork } from './sync-network.ts';
import { Trace } from './trace.ts';
import { ACTIONS, type ActionName } from './user.ts';
import { NO_VERDICTS, type Verdicts, withVerdict } from './verdicts.ts';
import { VirtualClock } from './virtual-clock.ts';
import { unending } from './world.ts';

/**
 * One run: a whole cluster, or several, in one thread, in virtual time, from one plan. First anything may fail, and no
 * invariant may break at any commit (safety); then nothing fails any more, and everything must come to rest where it
 * belongs within a bounded time (liveness).
 */

/** Longer than anything waits for anything: five minutes of tolerating a lost node, and of not trying a pod again. */
const SETTLE_MS_MAX = 15 * 60_000;
const SETTLE_LOOK_MS = 20_000;
/** By then all have heard of all that there is. */
const CALMING_MS = 2 * 60_000;
/** By then there is a server again. */
const LAST_ACTIONS_MS = 60_000;
const LAST_ACTIONS_EVERY_MS = 30_000;
/** How long words are on their way between clusters, at most. */
const AWAY_MS_MAX = 200;

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
  /** How its migrations ended. */
  readonly verdicts: Verdicts;
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

/** A cluster, and what must hold in it. */
interface Watched {
  readonly cluster: SimulatedCluster;
  readonly invariants: readonly Invariant[];
}

class Simulation {
  readonly #plan: Plan;
  readonly #bug: PlantedBug | undefined;
  readonly #isSafetyOnly: boolean;
  readonly #clock = new VirtualClock();
  readonly #streams: Streams;
  readonly #trace: Trace;
  readonly #clusters: readonly Watched[];
  /** What must hold for all of them together. */
  readonly #across: readonly InvariantAcross[];
  readonly #modelNodes: ModelNodes;
  readonly #network: SyncNetwork | undefined;
  readonly #forever = unending();
  readonly #lastActions: readonly ActionName[];
  /** When the last of what failed has been dealt with. */
  #calmAtMs: number;
  #failure: Failure | undefined;
  #verdicts = NO_VERDICTS;

  constructor(plan: Plan, scenario: Scenario, { bug, onLine, isSafetyOnly = false }: SimulationOptions) {
    this.#isSafetyOnly = isSafetyOnly;
    this.#plan = plan;
    this.#bug = bug;
    this.#streams = new Streams(plan.seed);
    this.#trace = new Trace({ elapsedMs: () => this.#clock.elapsedMs, onLine });
    this.#lastActions = scenario.lastActions ?? [];
    // A plan in which nothing fails is calm as soon as all is up.
    this.#calmAtMs = plan.faults.length + plan.strikes.length === 0 ? CALMING_MS : Number.POSITIVE_INFINITY;
    this.#across = this.#asked(scenario.across ?? []);
    this.#modelNodes = new ModelNodes({
      clock: this.#clock,
      streams: this.#streams,
      trace: this.#trace,
      mix: () => this.#any.mix,
      onChange: () => this.#judgeMachines(),
      hasPairs: scenario.hasPairs === true,
      bug,
    });
    const names = clustersOf(scenario, this.#streams);
    this.#network = names.length > 1 ? this.#newNetwork() : undefined;
    this.#clusters = names.map((name) => {
      const peers = names.filter((other) => other !== name);
      return this.#newCluster(name, peers, scenario);
    });
  }

  async run(): Promise<Outcome> {
    const stopListening = onUnhandled((error) => this.#fail('no-bugs', `nobody handled ${errorText(error)}`));
    await this.#begin();
    await this.#runUntil(this.#plan.horizonMs);
    if (!this.#failure && !this.#isSafetyOnly) await this.#settle();
    stopListening();
    if (this.#failure) this.#trace.add('failure', `${this.#failure.invariant}: ${this.#failure.message}`);
    const [digest, lines] = [this.#trace.digest(), this.#trace.last()];
    for (const { cluster } of this.#clusters) cluster.stop();
    return {
      failure: this.#failure,
      digest,
      lines,
      elapsedMs: this.#clock.elapsedMs,
      verdicts: this.#verdicts,
    };
  }

  /** The first one, which is the only one where there is one. */
  get #any(): SimulatedCluster {
    const [first] = this.#clusters;
    if (!first) throw new Error('there is no cluster');
    return first.cluster;
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
    Promise.all(this.#clusters.map(({ cluster }) => cluster.setUp())).then(
      () => ready.abort(),
      (error: unknown) => this.#fail('setup', errorText(error)),
    );
    await turn();
    while (!ready.signal.aborted && !this.#failure && this.#clock.fireNext(Number.POSITIVE_INFINITY)) await turn();
    for (const { cluster } of this.#clusters) cluster.begin();
    const fromMs = this.#clock.elapsedMs;
    for (const strike of this.#plan.strikes)
      this.#clock.setTimer(() => this.#strike(strike), Math.max(0, strike.atMs - fromMs));
    for (const { cluster } of this.#clusters) cluster.admit();
    for (const action of this.#plan.actions)
      this.#clock.setTimer(() => void this.#act(action), Math.max(0, action.atMs - fromMs));
  }

  async #act(action: Omit<PlannedAction, 'atMs'>): Promise<void> {
    const run = ACTIONS[action.what as ActionName];
    const { client, state, name } = this.#aimOf(action.stream);
    this.#trace.within(name).add('user', `does ${action.what}`);
    try {
      const random = this.#streams.of(action.stream);
      const nowMs = this.#clock.now();
      const clusters = this.#clusters.map(({ cluster }) => cluster);
      const context: UserContext = { client, state, clusters, random, nowMs, signal: this.#forever };
      await run(context);
    } catch (error) {
      this.#trace.add('user', `${action.what} failed: ${errorText(error)}`);
    }
  }

  /** The cluster in which something is done that is done in one. */
  #aimOf(stream: string): SimulatedCluster {
    if (this.#clusters.length === 1) return this.#any;
    return oneOf(this.#streams.of(`${stream}/cluster`), this.#clusters)?.cluster ?? this.#any;
  }

  #strike(strike: Strike): void {
    const { what, victim, durationMs } = strike;
    const struck = this.#clusters[Math.floor(((victim * 977) % 1) * this.#clusters.length)]?.cluster ?? this.#any;
    const back = (callback: () => void): void => void this.#clock.setTimer(callback, durationMs);
    switch (what) {
      case 'kill-machine':
      case 'silence-machine':
      case 'panic':
      case 'power-off':
      case 'cut-link':
      case 'silence-link':
      case 'cut-channel':
        return this.#modelNodes.strike(what, victim, back);
      case 'break-streams':
      case 'mute-streams':
        return this.#network?.breakStreams(struck.name, what === 'mute-streams');
      case 'cut-clusters': {
        const others = this.#clusters.filter(({ cluster }) => cluster !== struck);
        const other = others[Math.floor(victim * others.length)]?.cluster.name;
        const heal = other === undefined ? undefined : this.#network?.cut(struck.name, other);
        return heal && back(heal);
      }
      case 'crash-server':
      case 'kill':
      case 'partition':
      case 'pause':
      case 'step-clock':
      case 'node-down':
      case 'node-lost':
      case 'webhooks-down':
        return struck.strike({ ...strike, what });
    }
  }

  /** Nothing fails any more. Everything has to come to rest. */
  async #settle(): Promise<void> {
    this.#trace.add('simulation', 'nothing fails any more');
    this.#calmAtMs = this.#clock.elapsedMs + CALMING_MS;
    for (const { cluster } of this.#clusters) cluster.calm();
    this.#modelNodes.calm();
    this.#network?.heal();
    for (const [index, what] of this.#lastActions.entries()) {
      const act = (): void => void this.#act({ what, stream: `last/${what}` });
      this.#clock.setTimer(act, LAST_ACTIONS_MS + index * LAST_ACTIONS_EVERY_MS);
    }
    // Who looked before all of that was done would find everything at rest, and never see what becomes of it.
    if (this.#lastActions.length > 0)
      await this.#runUntil(this.#clock.elapsedMs + LAST_ACTIONS_MS + this.#lastActions.length * LAST_ACTIONS_EVERY_MS);
    if (this.#failure) return;
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
    const missing = this.#clusters.flatMap(({ cluster }) => cluster.missing());
    if (missing.length > 0)
      return { invariant: 'everything-runs', unsettled: missing.map((key) => ({ key, what: 'does not run' })) };
    const machines = this.#modelNodes.machines();
    const scenes = this.#clusters.map(({ cluster }) => cluster.scene(machinesIn(cluster, machines)));
    for (const [index, { invariants }] of this.#clusters.entries())
      for (const invariant of invariants) {
        const scene = scenes[index];
        const unsettled = (scene && invariant.unsettled?.(scene)) ?? [];
        if (unsettled.length > 0) return { invariant: invariant.name, unsettled };
      }
    for (const invariant of this.#across) {
      const unsettled = invariant.unsettledAcross?.(scenes) ?? [];
      if (unsettled.length > 0) return { invariant: invariant.name, unsettled };
    }
    return undefined;
  }

  #judge(cluster: string, invariants: readonly Invariant[], observation: Observation, state: State): void {
    this.#verdicts = withVerdict(this.#verdicts, observation);
    for (const invariant of invariants) this.#failIf(invariant, invariant.observe?.(observation, state));
    for (const invariant of this.#across)
      this.#failIf(invariant, invariant.observeAcross?.(observation, state, cluster));
  }

  #judgeMachines(): void {
    const machines = this.#modelNodes.machines();
    for (const { cluster, invariants } of this.#clusters) {
      const own = machinesIn(cluster, machines);
      for (const invariant of invariants)
        this.#failIf(invariant, invariant.executed?.(own, cluster.state, this.#clock.elapsedMs));
    }
    for (const invariant of this.#across) this.#failIf(invariant, invariant.executedAcross?.(machines));
  }

  #failIf({ name }: { readonly name: string }, wrong: string | undefined): void {
    if (wrong !== undefined) this.#fail(name, wrong);
  }

  #fail(invariant: string, message: string): void {
    // With a planted bug only its own invariant counts: others may see it, too, and sooner.
    if (this.#bug && this.#bug.invariant !== invariant) return;
    this.#failure ??= { invariant, message, atMs: this.#clock.elapsedMs };
  }

  /** What is asked: all of it, or where there is a planted bug, what has to find it. */
  #asked<T extends { readonly name: string }>(make: readonly (() => T)[]): readonly T[] {
    return make.map((each) => each()).filter(({ name }) => !this.#bug || this.#bug.invariant === name);
  }

  #newCluster(name: string, peers: readonly string[], scenario: Scenario): Watched {
    const invariants = this.#asked(scenario.invariants);
    const cluster = new SimulatedCluster({
      name,
      scenario,
      plan: this.#plan,
      clock: this.#clock,
      streams: this.#streams,
      trace: this.#trace,
      bug: this.#bug,
      modelNodes: this.#modelNodes,
      network: this.#network,
      peers,
      isCalm: () => this.#clock.elapsedMs > this.#calmAtMs,
      onObservation: (observation, state) => this.#judge(name, invariants, observation, state),
      onLoad: (load) => {
        for (const invariant of invariants) this.#failIf(invariant, invariant.reloaded?.(load));
      },
      fail: (check, message) => this.#fail(check, message),
    });
    return { cluster, invariants };
  }

  #newNetwork(): SyncNetwork {
    const random = this.#streams.of('between clusters');
    const delayMsMax = between(random, 1, AWAY_MS_MAX);
    return new SyncNetwork({ clock: this.#clock, random, trace: this.#trace, delayMsMax });
  }
}

/** The machines on the nodes of a cluster. */
function machinesIn({ name }: SimulatedCluster, machines: readonly ObservedMachine[]): readonly ObservedMachine[] {
  return machines.filter(({ cluster }) => cluster === name);
}
