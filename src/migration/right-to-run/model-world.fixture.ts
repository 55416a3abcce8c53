import type { RightToRun, Runner } from '../../api/kubevirt/right-to-run.ts';
import type { Attempt } from './attempt.ts';
import type { Message, Plan, Step } from './plan.ts';
import type { Standing } from './standing.ts';
import type { View, Wish } from './view.ts';
import { idOf, isEqual, keyOfNumbers, NONE, once } from './model-identity.fixture.ts';
import {
  firstImages,
  firstVolumes,
  imagesOfAttempt,
  MACHINE_UID,
  type ModelImages,
  seenImage,
  type StartsOn,
} from './model-images.fixture.ts';

/**
 * The world that the model checker explores: one guest, its source `a`, its target `b`, and `c`, where it starts cold. Where
 * the guest goes to another object, `a` and `c` are of one cluster, and `b` and `d` of another, with a record each.
 */

export type SideName = 'a' | 'b' | 'c' | 'd';
const NEAR_SIDES: readonly SideName[] = ['a', 'b', 'c'];
const ALL_SIDES: readonly SideName[] = ['a', 'b', 'c', 'd'];
/** All that there is in a world. */
export const sidesOf = ({ far }: Pick<World, 'far'>): readonly SideName[] => (far ? ALL_SIDES : NEAR_SIDES);

/** A QEMU, with what only an onlooker knows: whether it has the guest's newest state. */
export interface ModelMachine {
  readonly state: 'running' | 'paused' | 'postmigrate' | 'inmigrate' | 'postcopy' | 'dead';
  readonly migration: 'none' | 'active' | 'announced' | 'stopped' | 'loaded' | 'completed' | 'failed';
  readonly isCurrent: boolean;
}

export interface Side {
  /** The same for sides that are the same, whatever their names. */
  readonly id: number;
  readonly isNodeUp: boolean;
  readonly machine: ModelMachine;
  /** What the journal amounts to: it survives. */
  readonly standing: Standing;
  /** What the agent has in memory: it is lost in a crash. */
  readonly steps: readonly Step[];
  readonly record: RightToRun | undefined;
  readonly inbox: readonly Message[];
  /** Whether the agent knows that the migration was cancelled. */
  readonly isTold: boolean;
}

export interface World {
  /** In the mode `paused` the guest's owner holds it, and it is copied like any other. */
  readonly mode: 'pre-copy' | 'post-copy' | 'paused' | 'start';
  readonly record: RightToRun | undefined;
  readonly sides: { readonly [name in SideName]: Side };
  readonly network: readonly Message[];
  readonly outOfService: readonly SideName[];
  readonly unheard: readonly SideName[];
  readonly isCancelled: boolean;
  /** Earlier records, for a restore to come. */
  readonly history: readonly (RightToRun | undefined)[];
  readonly faultsLeft: number;
  readonly faults: readonly string[];
  /** The machine of who had the right died: the guest may be lost. */
  readonly isLossExcused: boolean;
  /** What an agent did that it must never do. */
  readonly crime: string | undefined;
  /** Where the guest has a volume, which goes from one claim to another. */
  readonly images: ModelImages | undefined;
  /** Where the guest goes to another object. */
  readonly far: Far | undefined;
}

/** The other object, and what its API server has. */
export interface Far {
  /** Undefined until somebody has taken the guest for it. */
  readonly record: RightToRun | undefined;
  readonly history: readonly (RightToRun | undefined)[];
  /** Whether both are of one cluster, where all see all nodes. */
  readonly isOneCluster: boolean;
  /** What `b` was heard to have done by the API server of `a`, which `a` cannot hear. */
  readonly letter?: 'taken' | 'refused';
  /** Whether an admin has made sure that nothing of the guest runs at `b` and `d`, nor ever will. */
  readonly isFenced: boolean;
}

/** Whether a side is of the other object. */
const isThere = ({ far }: World, name: SideName): boolean => far !== undefined && (name === 'b' || name === 'd');

/** The record that a side reads and writes. */
export const recordAt = (world: World, name: SideName): RightToRun | undefined =>
  isThere(world, name) ? world.far?.record : world.record;

/** Sides that have the same record, and see the same nodes and their taints. */
export const neighboursOf = (world: World, name: SideName): readonly SideName[] =>
  sidesOf(world).filter((it) => isThere(world, it) === isThere(world, name));

/** The same world with another record where a side is; with what it was before, for a restore to come. */
export function withRecord(world: World, name: SideName, record: RightToRun | undefined): World {
  const isKept = world.faults.includes('restore');
  if (!world.far || !isThere(world, name)) {
    return { ...world, record, history: isKept ? followedBy(world.history, world.record) : world.history };
  }
  const { far } = world;
  const history = isKept ? followedBy(far.history, far.record) : far.history;
  return { ...world, far: { ...far, record, history } };
}

function followedBy(history: World['history'], record: World['record']): World['history'] {
  return once(`history ${idOf(history)} ${idOf(record)}`, () => [...history, record]);
}

/** The code under test, so that a planted bug can stand in its place. */
export interface Protocol {
  readonly decide: (view: View) => Plan;
  readonly isHeard: (view: View) => boolean;
  readonly seize: (record: RightToRun, outOfService: readonly string[], answer?: 'taken' | 'refused') => Plan;
}

const runner = (name: SideName): Runner => ({ node: name, nodeUID: `node-${name}`, podUID: `pod-${name}` });
const RUNNERS = { a: runner('a'), b: runner('b'), c: runner('c'), d: runner('d') };
export const runnerOf = (name: SideName): Runner => RUNNERS[name];

export const ATTEMPT: Attempt = {
  epoch: 1,
  source: runnerOf('a'),
  target: runnerOf('b'),
  sourceMigrationUID: 'm',
  targetMigrationUID: 'm',
};

/** What its target's machine remembers is more than what the source knows of. */
export const ATTEMPT_ACROSS: Attempt = { ...ATTEMPT, targetMigrationUID: 'n', across: { targetEpoch: 2 } };
const ATTEMPT_THERE: Attempt = { ...ATTEMPT_ACROSS, across: { targetEpoch: 7 } };

/** The attempt as a side knows it. */
export function attemptOf({ far }: Pick<World, 'far'>, name: SideName): Attempt {
  if (!far) return ATTEMPT;
  return name === 'b' ? ATTEMPT_THERE : ATTEMPT_ACROSS;
}

const allSides = new Map<string, Side>();
const IDLE_SIDE = sideOf({
  isNodeUp: true,
  machine: machineOf('dead', 'none', false),
  standing: { kind: 'none' },
  steps: NONE,
  record: undefined,
  inbox: NONE,
  isTold: false,
});

/** The guest runs on `a`; or, in the mode `start`, nowhere yet, and all three want it. */
export function firstWorld(
  mode: World['mode'],
  faultsMax: number,
  faults: readonly string[],
  startsOn?: StartsOn,
): World {
  const volumes = startsOn === undefined ? undefined : firstVolumes(1);
  const record: RightToRun | undefined =
    mode === 'start' ? undefined : { epoch: 1, holder: runnerOf('a'), ...(volumes ? { volumes } : {}) };
  const idle = sideOf({ ...IDLE_SIDE, record });
  const source = sideOf({
    ...idle,
    machine: machineOf(mode === 'paused' ? 'paused' : 'running', 'none', true),
    standing: { kind: 'holding', epoch: 1, mustContinue: false, isCompleted: false },
  });
  return {
    mode,
    record,
    sides: { a: mode === 'start' ? idle : source, b: idle, c: mode === 'start' ? idle : IDLE_SIDE, d: IDLE_SIDE },
    network: NONE,
    outOfService: [],
    unheard: [],
    isCancelled: false,
    history: [],
    faultsLeft: faultsMax,
    faults,
    isLossExcused: false,
    crime: undefined,
    images: startsOn === undefined ? undefined : firstImages(startsOn),
    far: undefined,
  };
}

/** The guest runs on `a`, and is to go to another object, which waits for it. */
export function firstFarWorld(
  mode: Exclude<World['mode'], 'start'>,
  faultsMax: number,
  faults: readonly string[],
  isOneCluster = false,
): World {
  const world = firstWorld(mode, faultsMax, faults);
  const { sides, record } = world;
  return {
    ...world,
    sides: { ...sides, b: IDLE_SIDE },
    // Backups may be from before the guest was started.
    history: [undefined, record],
    far: { record: undefined, history: [undefined], isOneCluster, isFenced: false },
  };
}

/** What the agent of a side sees. Only `record` can be old: the rest it looks at when it decides. */
export function viewOf(world: World, name: SideName): View {
  const side = world.sides[name];
  const peer = world.sides[name === 'a' ? 'b' : 'a'];
  const seen = world.far?.isOneCluster === false ? neighboursOf(world, name) : undefined;
  const isSeen = (it: SideName): boolean => seen === undefined || seen.includes(it);
  return {
    self: runnerOf(name),
    record: isBystander(world, name) ? recordAt(world, name) : side.record,
    standing: side.standing,
    machine: side.machine.state,
    hasMigrationFailed: side.machine.migration === 'failed',
    peerMachine: peer.isNodeUp ? peer.machine.state : 'unknown',
    inbox: side.inbox,
    outOfService: new Set(world.outOfService.filter(isSeen).map((it) => runnerOf(it).nodeUID)),
    unheard: world.unheard.filter((it) => isSeen(it) && !world.outOfService.includes(it)),
    wish: wishOf(world, name),
  };
}

function wishOf(world: World, name: SideName): Wish {
  const { far, images, mode, record } = world;
  if (name === 'd' || name === 'c' || mode === 'start') {
    const image = images ? `${idOf(images)} ${idOf(record)}` : '';
    return once(`start ${name} ${mayStart(world, name)} ${image}`, () => startWish(world, name));
  }
  const { isTold } = world.sides[name];
  const isCancelled = isTold ? { isCancelled: true } : {};
  // That another has the guest by the target's record is what its API server tells that of the source.
  const isDone = name === 'a' && far?.record !== undefined && !isEqual(far.record.holder, runnerOf('b'));
  return once(`wish ${name} ${isTold} ${isDone} ${far !== undefined} ${images !== undefined}`, () => {
    const attempt = { ...attemptOf(world, name), ...imagesOfAttempt(world, name) };
    if (name === 'b') return { receive: attempt, ...isCancelled };
    return { ...(isDone ? { isPeerDone: true } : {}), ...(isTold ? isCancelled : { migrate: attempt }) };
  });
}

/** Nobody starts what waits for its guest to come, nor what an admin made sure of. */
const mayStart = ({ far }: World, name: SideName): boolean =>
  name !== 'd' || (far?.record !== undefined && !far.isFenced);

function startWish(world: World, name: SideName): Wish {
  if (!mayStart(world, name)) return {};
  const image = name === 'd' ? undefined : seenImage(world, name);
  return { start: image ? { disks: { vm: MACHINE_UID, namespace: '', images: [image] } } : {} };
}

/** Where a guest only starts cold, it reads no old record, to keep the model small: the mode `start` has that. */
export const isBystander = (world: World, name: SideName): boolean =>
  (name === 'c' || name === 'd') && world.mode !== 'start';

/** The same world with one side changed. */
export function withSide(world: World, name: SideName, change: Partial<Side>): World {
  const { sides } = world;
  const before = sides[name];
  const record = 'record' in change ? change.record : before.record;
  const side = sideOf({
    isNodeUp: change.isNodeUp ?? before.isNodeUp,
    machine: change.machine ?? before.machine,
    standing: change.standing ?? before.standing,
    steps: change.steps ?? before.steps,
    record: isBystander(world, name) ? undefined : record,
    inbox: change.inbox ?? before.inbox,
    isTold: change.isTold ?? before.isTold,
  });
  if (side === before) return world;
  const { a, b, c, d } = sides;
  const after = {
    a: name === 'a' ? side : a,
    b: name === 'b' ? side : b,
    c: name === 'c' ? side : c,
    d: name === 'd' ? side : d,
  };
  return copyOf(world, after);
}

/** Field by field, since most of the time goes into copies of worlds, and this is the quickest. */
const copyOf = (world: World, sides: World['sides']): World => ({
  mode: world.mode,
  record: world.record,
  sides,
  network: world.network,
  outOfService: world.outOfService,
  unheard: world.unheard,
  isCancelled: world.isCancelled,
  history: world.history,
  faultsLeft: world.faultsLeft,
  faults: world.faults,
  isLossExcused: world.isLossExcused,
  crime: world.crime,
  images: world.images,
  far: world.far,
});

export function withMachine(world: World, name: SideName, change: Partial<ModelMachine>): World {
  const { state, migration, isCurrent } = { ...world.sides[name].machine, ...change };
  return withSide(world, name, { machine: machineOf(state, migration, isCurrent) });
}

function machineOf(
  ...[state, migration, isCurrent]: [ModelMachine['state'], ModelMachine['migration'], boolean]
): ModelMachine {
  return once(`machine ${state} ${migration} ${isCurrent}`, () => ({ state, migration, isCurrent }));
}

/** Messages in no order: of each kind there is one at most. */
export function messagesOf(...messages: readonly Message[]): readonly Message[] {
  const sorted = messages.toSorted((one, other) => (one.kind < other.kind ? -1 : 1));
  return once(`messages ${sorted.map(idOf).join()}`, () => sorted);
}

function sideOf(side: Omit<Side, 'id'>): Side {
  const { machine, standing, steps, record, inbox, isNodeUp, isTold } = side;
  const flags = (isNodeUp ? 2 : 0) + (isTold ? 1 : 0);
  const key = keyOfNumbers(idOf(machine), idOf(standing), idOf(steps), idOf(record), idOf(inbox), flags);
  const known = allSides.get(key);
  if (known !== undefined) return known;
  const fresh = { ...side, id: allSides.size };
  allSides.set(key, fresh);
  return fresh;
}

/** A short text that two worlds share exactly when they are the same, but for the faults that may yet happen. */
export function keyOf(world: World): string {
  const { crime, far, faults, images, sides } = world;
  const flags = (world.isCancelled ? 2 : 0) + (world.isLossExcused ? 1 : 0);
  const nodes = bitsOf(world.outOfService) * 16 + bitsOf(world.unheard);
  const near = [sides.a.id, sides.b.id, sides.c.id, idOf(world.record), idOf(world.network), nodes, flags] as const;
  const key = keyOfNumbers(...near);
  const isRestorable = faults.includes('restore');
  if (!far && !images && !isRestorable && crime === undefined) return key;
  const history = isRestorable ? idOf(world.history) : 0;
  const more = keyOfNumbers(idOf(images), history, far ? sides.d.id : 0, idOf(far?.record), idOf(far?.history), 0);
  return `${key}${more}${far?.isFenced}${far?.letter}${crime}`;
}

const BITS = { a: 1, b: 2, c: 4, d: 8 };

function bitsOf(names: readonly SideName[]): number {
  let bits = 0;
  for (const name of names) bits += BITS[name];
  return bits;
}
