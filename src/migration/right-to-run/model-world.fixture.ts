import type { RightToRun, Runner } from '../../api/kubevirt/right-to-run.ts';
import type { Attempt } from './attempt.ts';
import type { Message, Plan, Step } from './plan.ts';
import type { Standing } from './standing.ts';
import type { StartWish, View } from './view.ts';
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
  readonly crime?: string;
  /** Where the guest has a volume, which goes from one claim to another. */
  readonly images?: ModelImages;
  /** Where the guest goes to another object. */
  readonly far?: Far;
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
    return { ...world, record, history: isKept ? [...world.history, world.record] : world.history };
  }
  const { far } = world;
  return { ...world, far: { ...far, record, history: isKept ? [...far.history, far.record] : far.history } };
}

/** The code under test, so that a planted bug can stand in its place. */
export interface Protocol {
  readonly decide: (view: View) => Plan;
  readonly isHeard: (view: View) => boolean;
  readonly seize: (record: RightToRun, outOfService: readonly string[], answer?: 'taken' | 'refused') => Plan;
}

export const runnerOf = (name: SideName): Runner => ({ node: name, nodeUID: `node-${name}`, podUID: `pod-${name}` });

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

const IDLE_SIDE: Side = {
  isNodeUp: true,
  machine: { state: 'dead', migration: 'none', isCurrent: false },
  standing: { kind: 'none' },
  steps: [],
  record: undefined,
  inbox: [],
  isTold: false,
};

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
  const idle = { ...IDLE_SIDE, record };
  const source: Side = {
    ...idle,
    machine: { state: mode === 'paused' ? 'paused' : 'running', migration: 'none', isCurrent: true },
    standing: { kind: 'holding', epoch: 1, mustContinue: false, isCompleted: false },
  };
  return {
    mode,
    record,
    sides: { a: mode === 'start' ? idle : source, b: idle, c: idle, d: IDLE_SIDE },
    network: [],
    outOfService: [],
    unheard: [],
    isCancelled: false,
    history: [],
    faultsLeft: faultsMax,
    faults,
    isLossExcused: false,
    ...(startsOn === undefined ? {} : { images: firstImages(startsOn) }),
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
  const isCancelled = side.isTold ? { isCancelled: true } : {};
  const attempt = attemptOf(world, name);
  const wish =
    name === 'd' || name === 'c' || world.mode === 'start'
      ? startWish(world, name)
      : name === 'b'
        ? { receive: { ...attempt, ...imagesOfAttempt(world, 'b') }, ...isCancelled }
        : side.isTold
          ? { ...isCancelled, ...peerDone(world) }
          : { ...peerDone(world), migrate: { ...attempt, ...imagesOfAttempt(world, 'a') } };
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
    wish,
  };
}

/** That another has the guest by the target's record is what its API server tells that of the source. */
function peerDone({ far }: World): { readonly isPeerDone?: true } {
  const isDone = far?.record !== undefined && !isEqual(far.record.holder, runnerOf('b'));
  return isDone ? { isPeerDone: true } : {};
}

/** Nobody starts what waits for its guest to come, nor what an admin made sure of. */
function startWish(world: World, name: SideName): { readonly start?: StartWish } {
  if (name === 'd') return world.far?.record === undefined || world.far.isFenced ? {} : { start: {} };
  const image = seenImage(world, name);
  return { start: image ? { disks: { vm: MACHINE_UID, namespace: '', images: [image] } } : {} };
}

/** Where a guest only starts cold, old reads are left out to keep the model small: the mode `start` has them. */
export const isBystander = (world: World, name: SideName): boolean =>
  (name === 'c' || name === 'd') && world.mode !== 'start';

/** The same world with one side changed. */
export function withSide(world: World, name: SideName, change: Partial<Side>): World {
  return { ...world, sides: { ...world.sides, [name]: { ...world.sides[name], ...change } } };
}

export function withMachine(world: World, name: SideName, change: Partial<ModelMachine>): World {
  return withSide(world, name, { machine: { ...world.sides[name].machine, ...change } });
}

const ids = new Map<string, number>();
const idsOfObjects = new WeakMap<object, number>();

function idOf(value: object | undefined): number {
  if (value === undefined) return 0;
  const known = idsOfObjects.get(value);
  if (known !== undefined) return known;
  const text = JSON.stringify(value);
  const id = ids.get(text) ?? ids.size + 1;
  ids.set(text, id);
  idsOfObjects.set(value, id);
  return id;
}

/** Whether two values are the same in what they say. */
export function isEqual(one: object | undefined, other: object | undefined): boolean {
  return idOf(one) === idOf(other);
}

/** A short text that two worlds share exactly when they are the same. */
export function keyOf(world: World): string {
  const parts: (string | number)[] = [
    idOf(world.record),
    idOf(sorted(world.network)),
    world.outOfService.join(''),
    world.unheard.join(''),
    world.isCancelled ? 1 : 0,
    world.faultsLeft,
    world.isLossExcused ? 1 : 0,
    world.faults.includes('restore') ? idOf(world.history) : 0,
    idOf(world.images),
  ];
  if (world.far) {
    const { record, history, letter = '', isFenced } = world.far;
    parts.push(idOf(record), world.faults.includes('restore') ? idOf(history) : 0, letter, isFenced ? 1 : 0);
  }
  for (const name of sidesOf(world)) {
    const side = world.sides[name];
    parts.push(
      idOf(side.machine),
      idOf(side.standing),
      idOf(side.steps),
      isBystander(world, name) ? 0 : idOf(side.record),
      idOf(sorted(side.inbox)),
      (side.isNodeUp ? 2 : 0) + (side.isTold ? 1 : 0),
    );
  }
  return parts.join();
}

const sortedMessages = new WeakMap<readonly Message[], readonly Message[]>();

function sorted(messages: readonly Message[]): readonly Message[] {
  const known = sortedMessages.get(messages);
  if (known !== undefined) return known;
  const result = messages.toSorted((one, other) => (one.kind < other.kind ? -1 : 1));
  sortedMessages.set(messages, result);
  return result;
}
