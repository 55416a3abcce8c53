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

/** The world that the model checker explores: one guest, its source `a`, its target `b`, and `c`, where it starts cold. */

export type SideName = 'a' | 'b' | 'c';
export const SIDES: readonly SideName[] = ['a', 'b', 'c'];

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
}

/** The code under test, so that a planted bug can stand in its place. */
export interface Protocol {
  readonly decide: (view: View) => Plan;
  readonly isHeard: (view: View) => boolean;
  readonly seize: (record: RightToRun, outOfService: readonly string[]) => Plan;
}

export const runnerOf = (name: SideName): Runner => ({ node: name, nodeUID: `node-${name}`, podUID: `pod-${name}` });

export const ATTEMPT: Attempt = {
  epoch: 1,
  source: runnerOf('a'),
  target: runnerOf('b'),
  sourceMigrationUID: 'm',
  targetMigrationUID: 'm',
};

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
    sides: { a: mode === 'start' ? idle : source, b: idle, c: idle },
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

/** What the agent of a side sees. Only `record` can be old: the rest it looks at when it decides. */
export function viewOf(world: World, name: SideName): View {
  const side = world.sides[name];
  const peer = world.sides[name === 'a' ? 'b' : 'a'];
  const isCancelled = side.isTold ? { isCancelled: true } : {};
  const wish =
    name === 'c' || world.mode === 'start'
      ? { start: startOf(world, name) }
      : name === 'b'
        ? { receive: { ...ATTEMPT, ...imagesOfAttempt(world, 'b') }, ...isCancelled }
        : side.isTold
          ? isCancelled
          : { migrate: { ...ATTEMPT, ...imagesOfAttempt(world, 'a') } };
  return {
    self: runnerOf(name),
    record: isBystander(world, name) ? world.record : side.record,
    standing: side.standing,
    machine: side.machine.state,
    hasMigrationFailed: side.machine.migration === 'failed',
    peerMachine: peer.isNodeUp ? peer.machine.state : 'unknown',
    inbox: side.inbox,
    outOfService: new Set(world.outOfService.map((it) => runnerOf(it).nodeUID)),
    unheard: world.unheard.filter((it) => !world.outOfService.includes(it)),
    wish,
  };
}

function startOf(world: World, name: SideName): StartWish {
  const image = seenImage(world, name);
  return image ? { disks: { vm: MACHINE_UID, namespace: '', images: [image] } } : {};
}

/** Where a guest only starts cold, old reads are left out to keep the model small: the mode `start` has them. */
export const isBystander = (world: World, name: SideName): boolean => name === 'c' && world.mode !== 'start';

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
  for (const name of SIDES) {
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
