import { ApiError } from '../../api/status.ts';
import { type Env, sleep } from '../../env/ports.ts';
import { cancelled } from '../../kube/abort.ts';
import type { Client } from '../../kube/client.ts';
import {
  virtualMachineInstanceMigrations,
  virtualMachineInstances,
  virtualMachines,
} from '../../kube/kubevirt-resources.ts';
import { TransportError } from '../../kube/transport.ts';
import { lookAtMove } from './look.ts';
import {
  type Halves,
  halvesOf,
  makeObjects,
  makeReceivingHalf,
  makeSendingHalf,
  newKey,
  removeMade,
} from './making.ts';
import type { MoveView } from './move-view.ts';
import { type MovePlan, planOf } from './plan.ts';
import type { Obstacle } from './planned-objects.ts';
import type { Place } from './receiving-machine.ts';
import { missingRights, rightsOf } from './rights.ts';
import { launcherOf, roomFor } from './room.ts';
import type { MoveRequest, SeenMove } from './seen.ts';
import { tryOut } from './trial.ts';
import { type MoveNow, rowOf, type SideNow, type Verdict, verdictOf } from './verdict.ts';

/** How often both sides are looked at. */
const LOOK_AGAIN_MS = 500;
/** What a server says that has trouble of its own, and may be well again soon. */
const BUSY = 429;
const TROUBLE = 500;

export interface MoveOptions {
  readonly request: MoveRequest;
  readonly source: Client;
  /** The very same one for another namespace of the same cluster. */
  readonly target: Client;
  readonly env: Env;
  readonly view: MoveView;
  /** Told what was made and removed. */
  readonly print: (line: string) => void;
}

/** What was found before anything was done. */
export interface Prospect {
  readonly seen: SeenMove;
  readonly plan: MovePlan;
  readonly obstacles: readonly Obstacle[];
  readonly notes: readonly string[];
}

/** How a move ended. `left` is what could not be removed. */
export type MoveResult =
  | { readonly kind: 'moved'; readonly prospect: Prospect }
  | { readonly kind: 'blocked'; readonly prospect: Prospect }
  | (Extract<Verdict, { kind: 'failed' }> & { readonly prospect: Prospect; readonly left: readonly string[] });

/** `moving`: both halves may be there. `removing`: it has failed. */
export type MoveStage =
  | { readonly kind: 'looking' }
  | { readonly kind: 'making' | 'removing'; readonly id: string }
  | { readonly kind: 'moving'; readonly halves: Halves };

/**
 * Moves a guest into another namespace or cluster: looks at both sides, makes what is missing, then both halves of the
 * migration, follows them, and removes what it made where they fail. Everything can be found again by its label: whoever
 * asks for the same move once more goes on with it.
 */
export class Move {
  readonly #options: MoveOptions;
  /** How far it is, for whoever stops it. */
  stage: MoveStage = { kind: 'looking' };

  constructor(options: MoveOptions) {
    this.#options = options;
  }

  /** Looks at both sides, and changes nothing. */
  async prospect(signal: AbortSignal): Promise<Prospect> {
    const { request, source, target } = this.#options;
    const { seen, plan } = await this.#look(signal);
    if (plan.progress !== 'new') return { seen, plan, obstacles: [], notes: plan.notes };
    const rights = rightsOf(plan, request);
    const missing = [
      ...(await missingRights(source, rights.source, 'where the guest is', signal)),
      ...(await missingRights(target, rights.target, 'at the target', signal)),
    ];
    const pod = await launcherOf(seen, plan, source, signal);
    const room = await roomFor(pod, seen, plan, this.#options, signal);
    const found = [
      ...plan.obstacles,
      ...missing,
      ...(room.kind === 'none'
        ? [{ what: `no node of the target can take the guest: ${room.why}`, fix: 'make room there, or add a node' }]
        : []),
    ];
    // What is in the way already would be so again.
    const trial = found.length > 0 ? { obstacles: [], notes: [] } : await tryOut(plan, pod, request.to, target, signal);
    const unseen = room.kind === 'unknown' ? [`whether there is room was not seen: ${room.why}`] : [];
    return {
      seen,
      plan,
      obstacles: [...found, ...trial.obstacles],
      notes: [...plan.notes, ...unseen, ...trial.notes],
    };
  }

  async #look(signal: AbortSignal): Promise<Pick<Prospect, 'seen' | 'plan'>> {
    const { request, source, target, env } = this.#options;
    const seen = await lookAtMove(request, { source, target, nowMs: env.clock.now() }, signal);
    return { seen, plan: planOf(seen) };
  }

  /** Does it, or goes on with it. Rejects where a server refuses; what was made is removed then. */
  async run(signal: AbortSignal): Promise<MoveResult> {
    const prospect = await this.prospect(signal);
    const { plan, seen, obstacles } = prospect;
    const { env, print } = this.#options;
    if (plan.progress === 'over') return { kind: 'moved', prospect };
    if (obstacles.length > 0) return { kind: 'blocked', prospect };
    const own = halvesOf(plan.id, plan.key ?? newKey(plan.id, env));
    const halves = plan.progress === 'new' ? await this.#make(plan, seen, own, signal) : own;
    if (plan.progress !== 'new' || halves !== own) print('the move is under way already, and is followed');
    this.stage = { kind: 'moving', halves };
    const verdict = await this.#follow(halves, signal);
    if (verdict.kind === 'moved') return { kind: 'moved', prospect };
    return { ...verdict, prospect, left: await this.#remove(plan, halves, seen, signal) };
  }

  /** Makes what is missing, and answers the halves: those of somebody else who makes the same move at the same time. */
  async #make(plan: MovePlan, seen: SeenMove, halves: Halves, signal: AbortSignal): Promise<Halves> {
    const { request } = seen;
    this.stage = { kind: 'making', id: plan.id };
    try {
      await makeObjects(plan, seen, this.#options, signal);
      await makeReceivingHalf(plan, halves, request, this.#options, signal);
      // Who is stopped from here on does not know whether the other half was made.
      this.stage = { kind: 'moving', halves };
      await makeSendingHalf(plan, halves, request, this.#options, signal);
      return halves;
    } catch (error) {
      // Only who was refused knows that nothing has begun.
      if (!(error instanceof ApiError) || isTrouble(error)) throw error;
      const { key } = (await this.#look(signal)).plan;
      if (key !== undefined && key !== halves.key) return halvesOf(plan.id, key);
      await this.#remove(plan, halves, seen, signal);
      throw error;
    }
  }

  #remove(plan: MovePlan, halves: Halves, seen: SeenMove, signal: AbortSignal): Promise<string[]> {
    this.stage = { kind: 'removing', id: plan.id };
    return removeMade(plan, halves, seen, this.#options, signal);
  }

  /** Shows both sides until it is over. */
  async #follow(halves: Halves, signal: AbortSignal): Promise<Verdict> {
    const { request, env, view, source, target } = this.#options;
    const { from, to } = request;
    let hasBegun = false;
    for (;;) {
      const now = await unlessTroubled(async (): Promise<MoveNow> => {
        const [left, right] = await Promise.all([
          sideNow(source, from, halves.send, signal),
          sideNow(target, to, halves.receive, signal),
        ]);
        hasBegun ||= left.migration !== undefined;
        return { source: left, target: right, hasBegun };
      });
      if (now) {
        view.show([
          rowOf('from', `${from.namespace}/${from.name}`, now.source),
          rowOf('to', `${to.namespace}/${to.name}`, now.target),
        ]);
        const verdict = verdictOf(now);
        if (verdict) return verdict;
      }
      // Requests that were given up look like any trouble.
      if (signal.aborted) throw cancelled(signal);
      await sleep(env.clock, LOOK_AGAIN_MS, signal);
    }
  }
}

async function sideNow(
  client: Client,
  { namespace, name }: Place,
  migration: string,
  signal: AbortSignal,
): Promise<SideNow> {
  // In this order: whoever has the guest by now had it already when its migration was looked at, or has it later.
  return {
    migration: await client.find(virtualMachineInstanceMigrations, namespace, migration, signal),
    guest: await client.find(virtualMachineInstances, namespace, name, signal),
    machine: await client.find(virtualMachines, namespace, name, signal),
  };
}

/** Servers come and go, and migrations go on without them: they are asked again. */
async function unlessTroubled<T>(look: () => Promise<T>): Promise<T | undefined> {
  try {
    return await look();
  } catch (error) {
    if (error instanceof TransportError || (error instanceof ApiError && isTrouble(error))) return undefined;
    throw error;
  }
}

function isTrouble({ code }: ApiError): boolean {
  return code >= TROUBLE || code === BUSY;
}
