import type { RightToRun } from '../../api/kubevirt/right-to-run.ts';
import { unreachable } from '../../api/unreachable.ts';
import type { Entry } from './entry.ts';
import type { MachineCommand, Message, Step } from './plan.ts';
import { recordObjection } from './objection.ts';
import { advance, type Standing } from './standing.ts';
import { discarded, filled, fillingBegun, stamped, written as withWrites } from './model-images.fixture.ts';
import { farHappenings, letterTo, takenAndSeized, withoutLetter } from './model-far.fixture.ts';
import { idOf, isEqual, NONE, once } from './model-identity.fixture.ts';
import {
  isBystander,
  messagesOf,
  neighboursOf,
  type Protocol,
  recordAt,
  runnerOf,
  type SideName,
  sidesOf,
  viewOf,
  type World,
  withMachine,
  withRecord,
  withSide,
} from './model-world.fixture.ts';

/** All that can happen next in the model: agents' steps, QEMU's own doing, messages, the admin, and faults. */

export interface Happening {
  readonly name: string;
  readonly world: World;
}

/** What happens when nothing fails, in no particular order. */
export function happenings(world: World, protocol: Protocol): Happening[] {
  const result: Happening[] = [];
  const add = (name: string, next: World | undefined): void => {
    if (next !== undefined) result.push({ name, world: withWrites(next) });
  };
  for (const name of sidesOf(world)) {
    const side = world.sides[name];
    if (!side.isNodeUp) {
      if (name !== 'b' || world.far?.isFenced !== true)
        add(`node ${name} comes back`, restarted(withSide(world, name, { isNodeUp: true }), name));
      add(`the admin declares ${name} out of service`, declared(world, name));
      continue;
    }
    add(`agent ${name}`, agentActs(world, name, protocol));
    const record = recordAt(world, name);
    if (!isBystander(world, name) && !isEqual(side.record, record))
      add(`agent ${name} reads`, withSide(world, name, { record }));
    if (world.isCancelled && !side.isTold && (name === 'a' || name === 'b'))
      add(`agent ${name} is told`, withSide(world, name, { isTold: true }));
    if (world.outOfService.includes(name)) add(`the admin lets ${name} serve again`, served(world, name));
    add(`node ${name} is heard`, heard(world, name, protocol));
  }
  add('agent a notes the completion', completionNoted(world));
  add('agent a begins to copy', copyBegun(world));
  for (const [name, next] of copying(world)) add(name, next);
  for (const message of world.network) add(`${message.kind} arrives`, delivered(world, message, false));
  for (const [name, next] of farHappenings(world)) add(name, next);
  add('the right is seized', seized(world, 'a', protocol));
  if (world.far) add('the right is seized there', seized(world, 'b', protocol));
  return result;
}

/** What happens when something fails; each costs one of the faults that are left. */
export function mishaps(world: World, protocol: Protocol): Happening[] {
  if (world.faultsLeft === 0) return [];
  const result: Happening[] = [];
  const costly = { ...world, faultsLeft: world.faultsLeft - 1 };
  const add = (kind: string, detail: string, next: World | undefined): void => {
    if (next !== undefined && world.faults.includes(kind))
      result.push({ name: `${kind}: ${detail}`, world: withWrites(next) });
  };
  for (const name of sidesOf(world)) {
    const side = world.sides[name];
    if (!side.isNodeUp || isBystander(world, name)) continue;
    if (side.steps.length > 0 || side.inbox.length > 0) add('crash', `agent ${name}`, restarted(costly, name));
    if (side.machine.state !== 'dead') add('death', `QEMU ${name}`, died(costly, name));
    add(
      'node',
      `node ${name} is gone`,
      withSide(died(costly, name), name, { isNodeUp: false, steps: NONE, inbox: NONE }),
    );
    add('answer', `agent ${name} is not told that its write was done`, answerLost(costly, name, protocol));
  }
  for (const message of world.network) {
    add('loss', message.kind, { ...costly, network: without(world.network, message) });
    add('repeat', message.kind, delivered(costly, message, true));
  }
  if (!world.isCancelled && world.mode !== 'start') add('cancel', 'the user', { ...costly, isCancelled: true });
  for (const [detail, next] of linkCuts(costly)) add('link', detail, next);
  for (const [index, record] of world.history.entries()) {
    if (!isEqual(record, world.record)) add('restore', `of record ${index}`, restored(costly, 'a', record));
  }
  for (const [index, record] of (world.far?.history ?? []).entries()) {
    if (!isEqual(record, world.far?.record)) add('restore', `of far record ${index}`, restored(costly, 'b', record));
  }
  return result;
}

/** What is under way names a version of before, and the versions of restored data begin above all of them. */
function restored(world: World, where: 'a' | 'b', record: World['record']): World {
  const sides = neighboursOf(world, where);
  const unheard = [...new Set([...world.unheard, ...sides])].toSorted();
  let next: World = { ...withRecord(world, where, record), unheard, history: [] };
  if (next.far) next = { ...next, far: withoutLetter({ ...next.far, history: [] }, where) };
  for (const name of sides) {
    const { steps } = next.sides[name];
    const firstWrite = steps.findIndex((step) => step.kind === 'record');
    if (firstWrite >= 0) next = withSide(next, name, { steps: steps.slice(0, firstWrite) });
  }
  return next;
}

function agentActs(world: World, name: SideName, protocol: Protocol): World | undefined {
  const side = world.sides[name];
  const steps = side.steps.length > 0 ? side.steps : protocol.decide(viewOf(world, name)).steps;
  let next = world;
  for (const [index, step] of steps.entries()) {
    const rest = stepsAfter(steps, index);
    const after = done(withSide(next, name, { steps: rest }), name, step);
    if (after === undefined) continue;
    return after;
  }
  next = withSide(next, name, { steps: NONE });
  return side.steps.length > 0 ? next : undefined;
}

const tails = new WeakMap<readonly Step[], (readonly Step[])[]>();

function stepsAfter(steps: readonly Step[], index: number): readonly Step[] {
  const known = tails.get(steps) ?? steps.map((_, at) => steps.slice(at + 1));
  tails.set(steps, known);
  return known[index] ?? NONE;
}

/** Undefined when the step changes nothing that the model knows of. */
function done(world: World, name: SideName, step: Step): World | undefined {
  switch (step.kind) {
    case 'journal':
      return journaled(world, name, step.entry);
    case 'record':
      return isEqual(recordAt(world, name), step.from)
        ? withSide(written(world, name, step.to), name, { record: step.to })
        : withSide(world, name, { record: recordAt(world, name), steps: NONE });
    case 'machine':
      return commanded(world, name, step.command);
    case 'send':
      return sent(world, step.message);
    case 'stamp':
      return stamped(world, step);
    case 'discard-images':
      return discarded(world);
    default:
      return unreachable(step);
  }
}

/** What an agent writes is judged as the webhook does. */
function written(world: World, name: SideName, record: RightToRun): World {
  const objection = recordObjection(name, recordAt(world, name), record, { isAcross: world.far !== undefined });
  const next = withRecord(world, name, record);
  return objection === undefined ? next : { ...next, crime: `the webhook objects: ${name} ${objection}` };
}

function journaled(world: World, name: SideName, entry: Entry): World {
  try {
    return withSide(migrationOver(world, entry), name, { standing: advanced(world.sides[name].standing, entry) });
  } catch (error) {
    return { ...world, crime: String(error) };
  }
}

const advanced = (standing: Standing, entry: Entry): Standing =>
  once(`standing ${idOf(standing)} and ${idOf(entry)}`, () => advance(standing, entry));

/** A migration that was aborted or refused has failed, and is not tried again. */
function migrationOver(world: World, entry: Entry): World {
  if (entry.kind !== 'aborted' && entry.kind !== 'regained') return world;
  return withSide({ ...world, isCancelled: true }, 'a', { isTold: true });
}

function sent(world: World, message: Message): World | undefined {
  const name = recipientOf(message);
  const isUnderWay = world.network.some((it) => it.kind === message.kind);
  if (isUnderWay || world.sides[name].inbox.some((it) => it.kind === message.kind)) return undefined;
  return { ...world, network: messagesOf(...world.network, message) };
}

const recipientOf = (message: Message): SideName =>
  message.kind === 'taken' || message.kind === 'refused' || message.kind === 'is-it-over' ? 'a' : 'b';

const without = (messages: readonly Message[], message: Message): readonly Message[] =>
  messagesOf(...messages.filter((it) => it !== message));

function delivered(world: World, message: Message, stays: boolean): World | undefined {
  const name = recipientOf(message);
  const side = world.sides[name];
  if (!side.isNodeUp) return undefined;
  const network = stays ? world.network : without(world.network, message);
  return withSide({ ...world, network }, name, {
    inbox: side.inbox.some((it) => it.kind === message.kind) ? side.inbox : messagesOf(...side.inbox, message),
  });
}

function commanded(world: World, name: SideName, command: MachineCommand): World | undefined {
  const { machine } = world.sides[name];
  switch (command) {
    case 'start':
      return withMachine(onlyCurrent(world, name), name, { state: 'paused' });
    case 'start-incoming':
      return withMachine(world, name, { state: 'inmigrate' });
    case 'close-exports':
      return undefined;
    case 'cancel-migration':
      return copyCancelled(world, name);
    case 'continue':
      return continued(world, name);
    case 'hold':
      return held(world, name);
    case 'kill': {
      if (machine.state === 'dead') return undefined;
      const next = killed(world, name);
      const isLost = machine.isCurrent && !sidesOf(next).some((it) => next.sides[it].machine.isCurrent);
      const isNeeded = machine.state === 'postcopy' && world.sides.b.machine.state === 'running';
      return (isLost || (name === 'a' && isNeeded)) && !world.isLossExcused
        ? { ...next, crime: `the agent of ${name} ends the only machine that has the guest` }
        : next;
    }
    default:
      return unreachable(command);
  }
}

function continued(world: World, name: SideName): World | undefined {
  const { machine } = world.sides[name];
  if (machine.state === 'running') return undefined;
  if (machine.state === 'dead') return withSide(world, name, { steps: NONE });
  if (machine.state === 'inmigrate') return { ...world, crime: `${name} is continued before the guest has arrived` };
  if (machine.state === 'postcopy' && name === 'a') return { ...world, crime: 'a source in post-copy is continued' };
  if (name === 'a' && (machine.migration === 'stopped' || machine.migration === 'loaded')) {
    return { ...world, crime: 'the source is continued while its copy goes on' };
  }
  if (world.mode === 'paused' && !isBystander(world, name))
    return { ...world, crime: `a guest that its owner holds is continued on ${name}` };
  const next = withMachine(onlyCurrent(world, name), name, { state: 'running' });
  // Whoever reclaims a guest has what was left behind.
  const isOld = !machine.isCurrent && machine.state !== 'postcopy' && world.far?.isFenced !== true;
  return isOld ? { ...next, crime: `${name} continues an old state of the guest` } : next;
}

function held(world: World, name: SideName): World | undefined {
  const { machine } = world.sides[name];
  if (machine.state === 'dead') return withSide(world, name, { steps: NONE });
  if (machine.state !== 'postmigrate') return { ...world, crime: `${name} is held, and is ${machine.state}` };
  const next = withMachine(onlyCurrent(world, name), name, { state: 'paused' });
  return machine.isCurrent ? next : { ...next, crime: `${name} holds an old state of the guest` };
}

function copyCancelled(world: World, name: SideName): World | undefined {
  const { machine } = world.sides[name];
  if (machine.state === 'dead' || machine.state === 'postcopy') return withSide(world, name, { steps: NONE });
  if (machine.migration === 'none' || machine.migration === 'completed' || machine.migration === 'failed') {
    return undefined;
  }
  return targetGivenUp(withMachine(world, name, { migration: 'failed', state: resting(world) }));
}

/** What a source does by itself whose copy failed: what it did before. */
function resting(world: World): 'running' | 'paused' {
  return world.mode === 'paused' ? 'paused' : 'running';
}

/** A target that was still loading ends by itself. */
function targetGivenUp(world: World): World {
  return world.sides.b.machine.state === 'inmigrate' ? killed(world, 'b') : world;
}

function onlyCurrent(world: World, name: SideName): World {
  let next = world;
  for (const it of sidesOf(world)) next = withMachine(next, it, { isCurrent: it === name });
  return next;
}

function killed(world: World, name: SideName): World {
  return withMachine(world, name, { state: 'dead', migration: 'none', isCurrent: false });
}

function died(world: World, name: SideName): World {
  const side = world.sides[name];
  let next = killed(world, name);
  // What still needs the memory of the source dies with it.
  if (side.machine.state === 'postcopy' && name === 'a') next = killed(next, 'b');
  const isOnlyOne = !sidesOf(next).some((it) => next.sides[it].machine.isCurrent);
  const isPostCopy = side.machine.state === 'postcopy';
  const isAskedBack =
    name === 'a' && [...world.network, ...world.sides.b.inbox].some((it) => it.kind === 'please-refuse');
  return isAskedBack || side.standing.kind === 'holding' || isOnlyOne || isPostCopy
    ? { ...next, isLossExcused: true }
    : next;
}

function restarted(world: World, name: SideName): World {
  return withSide(world, name, { steps: NONE, inbox: letterTo(world, name), record: recordAt(world, name) });
}

function answerLost(world: World, name: SideName, protocol: Protocol): World | undefined {
  const side = world.sides[name];
  const step = (side.steps.length > 0 ? side.steps : protocol.decide(viewOf(world, name)).steps)[0];
  if (step?.kind !== 'record' || !isEqual(recordAt(world, name), step.from)) return undefined;
  return withSide(written(world, name, step.to), name, { steps: NONE });
}

function declared(world: World, name: SideName): World | undefined {
  if (world.outOfService.includes(name)) return undefined;
  // Of a right that is under way nobody knows where it is when either end is given up.
  const isUnderWay = !isBystander(world, name) && world.sides.a.standing.kind === 'granted';
  return {
    ...world,
    outOfService: [...world.outOfService, name].toSorted(),
    isLossExcused: world.isLossExcused || isUnderWay,
  };
}

function served(world: World, name: SideName): World {
  return { ...world, outOfService: world.outOfService.filter((it) => it !== name) };
}

/** A node is heard once its agent has nothing more to set right. */
function heard(world: World, name: SideName, protocol: Protocol): World | undefined {
  const side = world.sides[name];
  if (!world.unheard.includes(name) || side.steps.length > 0) return undefined;
  if (!isBystander(world, name) && !isEqual(side.record, recordAt(world, name))) return undefined;
  return protocol.isHeard(viewOf(world, name))
    ? { ...world, unheard: world.unheard.filter((it) => it !== name) }
    : undefined;
}

function seized(world: World, where: 'a' | 'b', protocol: Protocol): World | undefined {
  const record = recordAt(world, where);
  if (world.outOfService.length === 0) return undefined;
  if (record === undefined) return where === 'b' ? takenAndSeized(world) : undefined;
  const seen = world.far?.isOneCluster === false ? neighboursOf(world, where) : sidesOf(world);
  const gone = world.outOfService.filter((it) => seen.includes(it)).map((it) => runnerOf(it).nodeUID);
  const step = protocol.seize(record, gone, where === 'a' ? world.far?.letter : undefined).steps[0];
  if (step?.kind !== 'record') return undefined;
  const next = withRecord(world, where, step.to);
  // Whoever waits for the guest elsewhere is told that it failed.
  return world.far && where === 'a' ? { ...next, isCancelled: true } : next;
}

const COMPLETED: Entry = { kind: 'machine', event: 'completed' };

function completionNoted(world: World): World | undefined {
  const { isNodeUp, machine, standing } = world.sides.a;
  const isNews = machine.state === 'postmigrate' && standing.kind === 'holding' && !standing.isCompleted;
  if (!isNodeUp || !isNews) return undefined;
  return withSide(world, 'a', { standing: advanced(standing, COMPLETED) });
}

function copyBegun(world: World): World | undefined {
  const { isNodeUp, machine, standing, record, steps } = world.sides.a;
  if (!isNodeUp || steps.length > 0 || standing.kind !== 'holding' || standing.reserved === undefined) return undefined;
  if (machine.state !== resting(world) || machine.migration !== 'none') return undefined;
  if (!isEqual(record?.successor, runnerOf('b')) || world.sides.b.machine.state !== 'inmigrate') return undefined;
  return fillingBegun(withMachine(world, 'a', { migration: 'active' }));
}

/** What QEMU does by itself once a copy has begun. */
function copying(world: World): [string, World][] {
  const a = world.sides.a.machine;
  const b = world.sides.b.machine;
  const failed = (): World => withMachine(world, 'a', { migration: 'failed', state: resting(world) });
  if (a.migration === 'active' || a.migration === 'stopped' || a.migration === 'announced') {
    if (a.state !== 'postcopy' && b.state !== 'inmigrate') return [['the copy fails', failed()]];
  }
  switch (a.migration) {
    case 'active':
      return world.mode === 'post-copy'
        ? [['post-copy is announced', withMachine(world, 'a', { migration: 'announced' })]]
        : [['the source stops', withMachine(world, 'a', { migration: 'stopped', state: 'paused' })]];
    case 'announced': {
      const stopped = withMachine(world, 'a', { migration: 'stopped', state: 'postcopy' });
      return [['post-copy runs', filled(withMachine(stopped, 'b', { state: 'postcopy' }))]];
    }
    case 'stopped': {
      if (world.mode === 'post-copy') break;
      const loaded = withMachine(world, 'a', { migration: 'loaded' });
      return [['the target has it all', filled(withMachine(loaded, 'b', { state: 'paused', isCurrent: true }))]];
    }
    case 'loaded': {
      const completed = withMachine(world, 'a', { migration: 'completed', state: 'postmigrate' });
      const both: [string, World][] = [['the source says completed', completed]];
      return b.state === 'dead' ? [...both, ['the copy fails late', failed()]] : both;
    }
    case 'none':
    case 'completed':
    case 'failed':
      break;
    default:
      return unreachable(a.migration);
  }
  return postCopyFinished(world);
}

function postCopyFinished(world: World): [string, World][] {
  const { state } = world.sides.b.machine;
  if (world.sides.a.machine.state !== 'postcopy' || (state !== 'running' && state !== 'postcopy')) return [];
  const finished = withMachine(world, 'a', { migration: 'completed', state: 'postmigrate' });
  if (state === 'running') return [['post-copy has finished', finished]];
  // Memory does not wait for whoever may run the guest.
  const whole = withMachine(finished, 'b', { state: 'paused', isCurrent: true });
  return [['post-copy has finished before the guest runs', whole]];
}

/** The link of the copy is cut: what QEMU makes of it depends on how far it was. */
function linkCuts(world: World): [string, World][] {
  const a = world.sides.a.machine;
  const failed = (state: 'running' | 'paused'): World =>
    withMachine(world, 'a', { migration: 'failed', state: state === 'running' ? resting(world) : state });
  switch (a.migration) {
    case 'active':
    case 'announced':
      return [['while copying', targetGivenUp(failed('running'))]];
    case 'stopped':
      if (a.state === 'postcopy') return [];
      return [
        ['at the switch', targetGivenUp(failed('running'))],
        ['at the switch, left stopped', targetGivenUp(failed('paused'))],
      ];
    case 'loaded':
      return [['late: the source resumes by itself', failed('running')]];
    case 'none':
    case 'completed':
    case 'failed':
      return [];
    default:
      return unreachable(a.migration);
  }
}
