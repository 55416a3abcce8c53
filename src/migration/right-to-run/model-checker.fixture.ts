import type { Plan } from './plan.ts';
import { reclaim } from './seize.ts';
import type { View } from './view.ts';
import { type Happening, happenings, mishaps } from './model-actions.fixture.ts';
import { farRestlessness, RECLAIM, reclaimedAcross } from './model-far.fixture.ts';
import { accepted, judgeRest, judgeStamps } from './model-images.fixture.ts';
import { idOf, isEqual } from './model-identity.fixture.ts';
import {
  keyOf,
  neighboursOf,
  type Protocol,
  recordAt,
  runnerOf,
  type SideName,
  sidesOf,
  viewOf,
  type World,
  withRecord,
} from './model-world.fixture.ts';

/**
 * Explores every order of everything that can happen: first what is possible without any fault, then with one, and so on, each breadth
 * first. A world that was seen is not looked at again when fewer faults are left to it: all that could come of it is known. So what is
 * found took the fewest faults, and of those the shortest way.
 */
export function explore(first: World, protocol: Protocol, isTwiceAlone = false): Report {
  const exploration = new Exploration(first, remembering(protocol), isTwiceAlone);
  const finding = exploration.run();
  return { statesCount: exploration.statesCount, ...(finding ? { finding } : {}) };
}

export interface Finding {
  readonly problem: string;
  /** How it came about, one happening after the other. */
  readonly trail: readonly string[];
}

export interface Report {
  readonly statesCount: number;
  readonly finding?: Finding;
}

/** A world that was reached, with its number. */
interface Reached {
  readonly world: World;
  readonly number: number;
}

/** Worlds that one more fault leads to, by their keys. */
type Wave = Map<string, { readonly world: World; readonly parent: number }>;

/** How long a world may take to come to rest when nothing fails any more. */
const STEPS_TO_REST_MAX = 300;
const NEVER_RESTS = 'it never comes to rest';

/** What becomes of nodes that are gone, when nothing fails any more: they come back, or an admin gives them up. */
type Course = 'return' | 'seizure';

/** Of each world that was reached there is only its key, its number, and whence it came; `#trailTo` finds the rest again. */
class Exploration {
  readonly #first: World;
  readonly #protocol: Protocol;
  readonly #isTwiceAlone: boolean;
  readonly #numbers = new Map<string, number>();
  readonly #parents: number[] = [];
  /** The number of the world that each comes to next when nothing fails any more. */
  readonly #next: { readonly [course in Course]: number[] } = { return: [], seizure: [] };
  readonly #restful = new Set<string>();

  constructor(first: World, protocol: Protocol, isTwiceAlone: boolean) {
    this.#first = first;
    this.#protocol = protocol;
    this.#isTwiceAlone = isTwiceAlone;
  }

  get statesCount(): number {
    return this.#numbers.size;
  }

  run(): Finding | undefined {
    for (let wave: Wave = new Map([[keyOf(this.#first), { world: this.#first, parent: -1 }]]); wave.size > 0; ) {
      const later: Wave = new Map();
      const finding = this.#explore(wave, later);
      if (finding !== undefined) return finding;
      wave = later;
    }
    const restless = this.#circling('return') ?? this.#circling('seizure');
    return restless === undefined ? undefined : { problem: NEVER_RESTS, trail: this.#trailTo(restless) };
  }

  /** All that comes of worlds without one more fault; what comes of one more is for later. */
  #explore(wave: Wave, later: Wave): Finding | undefined {
    let layer: Reached[] = [];
    for (const [key, { world, parent }] of wave) this.#reach(key, world, parent, layer);
    for (let depth = 0; layer.length > 0; depth += 1) {
      const next: Reached[] = [];
      for (const reached of layer) {
        const { world, number } = reached;
        const problem = depth > STEPS_TO_REST_MAX ? NEVER_RESTS : this.#look(reached, next);
        if (problem !== undefined) return { problem, trail: this.#trailTo(number) };
        for (const mishap of mishaps(world, this.#protocol)) {
          const key = keyOf(mishap.world);
          if (!this.#numbers.has(key) && !later.has(key)) later.set(key, { world: mishap.world, parent: number });
        }
      }
      layer = next;
    }
    return undefined;
  }

  #reach(key: string, world: World, parent: number, layer: Reached[]): number {
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    const number = this.#parents.push(parent) - 1;
    this.#numbers.set(key, number);
    layer.push({ world, number });
    return number;
  }

  /** What is wrong with a world; what comes next is reached. */
  #look({ world, number }: Reached, next: Reached[]): string | undefined {
    const problem = executedTwice(world) ?? (this.#isTwiceAlone ? undefined : judge(world));
    if (problem !== undefined) return problem;
    const all = happenings(world, this.#protocol);
    const numbers = all.map((it) => this.#reach(keyOf(it.world), it.world, number, next));
    if (this.#isTwiceAlone) return undefined;
    for (const course of coursesOf(world)) {
      const best = calmest(all, course);
      const unrest = best < 0 ? this.#unrest(world, course) : undefined;
      if (unrest !== undefined) return unrest;
      this.#next[course][number] = numbers[best] ?? -1;
    }
    return undefined;
  }

  /** Why a world where nothing happens by itself does not come to rest with one holder; undefined when it does. */
  #unrest(first: World, course: Course): string | undefined {
    const path: string[] = [];
    const names: string[] = [];
    const after = (problem: string): string => `${problem}: ${names.slice(0, 40).join('; ')}`;
    for (let world = first; ; ) {
      const key = `${course} ${keyOf(world)}`;
      if (this.#restful.has(key)) break;
      path.push(key);
      const problem = judge(world);
      if (problem !== undefined) return after(`when nothing fails any more, ${problem}`);
      if (path.length > STEPS_TO_REST_MAX) return after(NEVER_RESTS);
      const all = happenings(world, this.#protocol);
      const next = all[calmest(all, course)] ?? helped(world, this.#protocol);
      if (next === undefined) {
        const wrong = restlessness(world);
        if (wrong !== undefined) return after(`it comes to rest, but ${wrong}`);
        break;
      }
      names.push(next.name);
      ({ world } = next);
    }
    for (const key of path) this.#restful.add(key);
    return undefined;
  }

  /** A world from which, when nothing fails any more, the same comes again and again. */
  #circling(course: Course): number | undefined {
    const next = this.#next[course];
    const walkOf = new Map<number, number>();
    for (const first of next.keys()) {
      for (let at = first; at >= 0; at = next[at] ?? -1) {
        const walk = walkOf.get(at);
        if (walk === first) return first;
        if (walk !== undefined) break;
        walkOf.set(at, first);
      }
    }
    return undefined;
  }

  #trailTo(last: number): string[] {
    const numbers: number[] = [];
    for (let number = last; number > 0; number = this.#parents[number] ?? 0) numbers.push(number);
    let world = this.#first;
    const names = numbers.toReversed().map((number) => {
      const all = [...happenings(world, this.#protocol), ...mishaps(world, this.#protocol)];
      const taken = all.find((it) => this.#numbers.get(keyOf(it.world)) === number);
      if (taken === undefined) throw new Error('the way to a world is lost');
      ({ world } = taken);
      return taken.name;
    });
    return ['the beginning', ...names];
  }
}

/** The same protocol, which is not asked twice for the same. */
function remembering(protocol: Protocol): Protocol {
  const plans = new Map<string, Plan>();
  const decide = (view: View): Plan => {
    const { self, record, standing, machine, hasMigrationFailed, peerMachine, inbox, outOfService, unheard, wish } =
      view;
    let key = `${self.node},${idOf(record)},${idOf(standing)},${machine},${hasMigrationFailed},${peerMachine}`;
    key += `,${idOf(inbox)},${idOf(wish)},${[...outOfService].join()},${unheard.join()}`;
    const known = plans.get(key);
    if (known !== undefined) return known;
    const plan = protocol.decide(view);
    plans.set(key, plan);
    return plan;
  };
  return { ...protocol, decide };
}

function executedTwice(world: World): string | undefined {
  const running = sidesOf(world).filter((name) => world.sides[name].machine.state === 'running');
  return running.length > 1 ? `the guest is executed twice: on ${running.join(' and ')}` : undefined;
}

/** What must hold always. */
function judge(world: World): string | undefined {
  if (world.crime !== undefined) return world.crime;
  const twice = executedTwice(world);
  if (twice !== undefined) return twice;
  return isEpochClaimedTwice(world) ? 'two journals claim the same epoch' : judgeStamps(world);
}

function isEpochClaimedTwice(world: World): boolean {
  // What a machine that is off has in its journal nobody hears: after a restore its epoch can be given out again.
  const isRestorable = world.faults.includes('restore');
  const claims = sidesOf(world).filter((name) => {
    const { machine, standing } = world.sides[name];
    return standing.kind === 'holding' && !(isRestorable && machine.state === 'dead');
  });
  if (claims.length < 2) return false;
  const epochs = claims.map((name) => `${epochOf(world, name)} ${neighboursOf(world, name)[0]}`);
  return new Set(epochs).size < epochs.length;
}

function epochOf(world: World, name: SideName): number | undefined {
  const { standing } = world.sides[name];
  return standing.kind === 'holding' ? standing.epoch : undefined;
}

const coursesOf = (world: World): readonly Course[] =>
  sidesOf(world).every((name) => world.sides[name].isNodeUp) ? ['return'] : ['return', 'seizure'];

/** The index of what is next in one fair order of things: first what is known gets around, then everybody acts, then the admin. */
function calmest(all: readonly Happening[], course: Course): number {
  let best = -1;
  let bestRank = 9;
  for (const [index, { name }] of all.entries()) {
    const rank = rankOf(name, course);
    if (rank >= bestRank) continue;
    best = index;
    bestRank = rank;
  }
  return best;
}

function rankOf(name: string, course: Course): number {
  if (name === RECLAIM) return 9;
  if (name.endsWith('reads') || name.endsWith('arrives') || name.endsWith('told')) return 0;
  if (name.endsWith('heard')) return 1;
  if (name.startsWith('agent a')) return 2;
  if (name.startsWith('agent b')) return 3;
  if (name.endsWith('comes back')) return course === 'seizure' ? 9 : 4;
  if (name.endsWith('out of service')) return course === 'seizure' ? 4 : 9;
  if (name.endsWith('serve again')) return 5;
  if (name.startsWith('agent c') || name.startsWith('agent d')) return 6;
  return 3;
}

/** What people do, or a deadline, where nothing else happens any more. */
function helped(world: World, protocol: Protocol): Happening | undefined {
  const saved = reclaimed(world, 'a') ?? (world.far && reclaimed(world, 'b'));
  if (saved !== undefined) return { name: 'the admin reclaims', world: saved };
  const late = givenUp(world);
  if (late !== undefined) return { name: 'the deadline passes', world: late };
  const fenced = reclaimedAcross(world, true);
  if (fenced !== undefined) return { name: RECLAIM, world: fenced };
  const isRefused = protocol.decide(viewOf(world, 'c')).refusal?.code === 'StaleImage';
  const old = accepted(world, isRefused);
  return old && { name: 'the owner accepts the image', world: old };
}

/** Where only a person can tell: the admin looks at the hosts, and names the one that has the guest. */
function reclaimed(world: World, where: 'a' | 'b'): World | undefined {
  const sides = neighboursOf(world, where);
  const known = recordAt(world, where);
  if (!world.unheard.some((name) => sides.includes(name)) || known === undefined) return undefined;
  const keeper = sides.find((name) => {
    const { machine, standing } = world.sides[name];
    return machine.state !== 'dead' && standing.kind === 'holding';
  });
  if (keeper !== undefined && isHolder(world, keeper)) return undefined;
  let record = known;
  for (const step of reclaim(record, keeper === undefined ? undefined : runnerOf(keeper)).steps) {
    if (step.kind === 'record') record = step.to;
  }
  const heard = { ...world, unheard: world.unheard.filter((name) => !sides.includes(name)) };
  if (isEqual(record, known)) return heard;
  return { ...withRecord(keeper === undefined ? heard : world, where, record), history: world.history };
}

/** A migration that gets nowhere passes its deadline. */
function givenUp(world: World): World | undefined {
  return world.isCancelled || world.mode === 'start' ? undefined : { ...world, isCancelled: true };
}

function isHolder(world: World, name: SideName): boolean {
  const { standing } = world.sides[name];
  const record = recordAt(world, name);
  return isEqual(record?.holder, runnerOf(name)) && standing.kind === 'holding' && standing.epoch === record?.epoch;
}

function restlessness(world: World): string | undefined {
  const isHeld = world.mode === 'paused';
  const running = sidesOf(world).filter((name) => {
    const { state } = world.sides[name].machine;
    return state === 'running' || (isHeld && (state === 'paused' || state === 'postmigrate'));
  });
  const [holder] = running;
  if (holder === undefined) return 'the guest is executed nowhere';
  if (!isHolder(world, holder)) return `${holder} executes the guest, and the record does not say so`;
  if (world.record?.successor !== undefined) return 'a successor is still named';
  const left = sidesOf(world).filter((name) => name !== holder && world.sides[name].machine.state !== 'dead');
  if (left.length > 0) return `a machine is left over on ${left.join(', ')}`;
  return farRestlessness(world, holder) ?? (holder === 'd' ? undefined : judgeRest(world, holder));
}
