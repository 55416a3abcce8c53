import { reclaim } from './seize.ts';
import { type Happening, happenings, mishaps } from './model-actions.fixture.ts';
import { farRestlessness, RECLAIM, reclaimedAcross } from './model-far.fixture.ts';
import { accepted, judgeRest, judgeStamps } from './model-images.fixture.ts';
import {
  isEqual,
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

/** Explores every order of everything that can happen, breadth first, so that what it finds is the shortest way there. */

export interface Finding {
  readonly problem: string;
  /** How it came about, one happening after the other. */
  readonly trail: readonly string[];
}

export interface Report {
  readonly statesCount: number;
  readonly finding?: Finding;
}

interface Node {
  readonly world: World;
  readonly parent: Node | undefined;
  readonly name: string;
}

/** How long a world may take to come to rest when nothing fails any more. */
const STEPS_TO_REST_MAX = 300;

/** `isTwiceAlone` asks for nothing but whether the guest is ever executed twice. */
export function explore(first: World, protocol: Protocol, isTwiceAlone = false): Report {
  const seen = new Set([keyOf(first)]);
  const restful = new Set<string>();
  let layer: Node[] = [{ world: first, parent: undefined, name: 'the beginning' }];
  while (layer.length > 0) {
    const next: Node[] = [];
    for (const node of layer) {
      const problem =
        executedTwice(node.world) ??
        (isTwiceAlone ? undefined : (judge(node.world) ?? unrest(node.world, protocol, restful)));
      if (problem !== undefined) {
        return { statesCount: seen.size, finding: { problem, trail: trailOf(node) } };
      }
      for (const happening of [...happenings(node.world, protocol), ...mishaps(node.world, protocol)]) {
        const key = keyOf(happening.world);
        if (seen.has(key) && happening.world.crime === undefined) continue;
        seen.add(key);
        next.push({ world: happening.world, parent: node, name: happening.name });
      }
    }
    layer = next;
  }
  return { statesCount: seen.size };
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
  // What a machine that is off has in its journal nobody hears: after a restore its epoch can be given out again.
  const isRestorable = world.faults.includes('restore');
  const epochs = sidesOf(world).flatMap((name) => {
    const { machine, standing } = world.sides[name];
    const isClaim = standing.kind === 'holding' && !(isRestorable && machine.state === 'dead');
    return isClaim ? [`${standing.epoch} ${neighboursOf(world, name)[0]}`] : [];
  });
  return new Set(epochs).size < epochs.length ? 'two journals claim the same epoch' : judgeStamps(world);
}

/** Why the world does not come to rest with one holder when nothing fails any more; undefined when it does. */
function unrest(first: World, protocol: Protocol, restful: Set<string>): string | undefined {
  for (const isSeizing of [false, true]) {
    if (isSeizing && sidesOf(first).every((name) => first.sides[name].isNodeUp)) continue;
    const path: string[] = [];
    const names: string[] = [];
    let world = { ...first, faultsLeft: 0 };
    for (;;) {
      const key = `${isSeizing}:${keyOf(world)}`;
      if (restful.has(key)) break;
      path.push(key);
      const problem = judge(world);
      if (problem !== undefined) return `when nothing fails any more, ${problem}: ${names.slice(0, 40).join('; ')}`;
      if (path.length > STEPS_TO_REST_MAX) return `it never comes to rest: ${names.slice(0, 40).join('; ')}`;
      const next = calmNext(world, protocol, isSeizing);
      if (next === undefined) {
        const wrong = restlessness(world);
        if (wrong !== undefined) return `it comes to rest, but ${wrong}: ${names.slice(0, 40).join('; ')}`;
        break;
      }
      names.push(next.name);
      ({ world } = next);
    }
    for (const key of path) restful.add(key);
  }
  return undefined;
}

/** One fair order of things: first what is known gets around, then everybody acts, then the admin. */
function calmNext(world: World, protocol: Protocol, isSeizing: boolean): Happening | undefined {
  const all = happenings(world, protocol);
  const rank = ({ name }: Happening): number => {
    if (name === RECLAIM) return 9;
    if (name.endsWith('reads') || name.endsWith('arrives') || name.endsWith('told')) return 0;
    if (name.endsWith('heard')) return 1;
    if (name.startsWith('agent a')) return 2;
    if (name.startsWith('agent b')) return 3;
    if (name.endsWith('comes back')) return isSeizing ? 9 : 4;
    if (name.endsWith('out of service')) return isSeizing ? 4 : 9;
    if (name.endsWith('serve again')) return 5;
    if (name.startsWith('agent c') || name.startsWith('agent d')) return 6;
    return 3;
  };
  const best = all.filter((it) => rank(it) < 9).toSorted((one, other) => rank(one) - rank(other))[0];
  if (best !== undefined) return best;
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

function trailOf(node: Node): string[] {
  const trail: string[] = [];
  for (let it: Node | undefined = node; it !== undefined; it = it.parent) trail.push(it.name);
  return trail.toReversed();
}
