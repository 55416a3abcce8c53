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
import { type Halves, halvesOf, makeHalves, makeObjects, newKey, removeMade } from './making.ts';
import type { MoveView } from './move-view.ts';
import { type MovePlan, planOf } from './plan.ts';
import type { Obstacle } from './planned-objects.ts';
import type { Place } from './receiving-machine.ts';
import { missingRights, rightsOf } from './rights.ts';
import { roomFor } from './room.ts';
import type { MoveRequest, SeenMove } from './seen.ts';
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

/**
 * Moves a guest into another namespace or cluster: looks at both sides, makes what is missing, then both halves of the
 * migration, follows them, and removes what it made where they fail. Everything can be found again by its label: whoever
 * asks for the same move once more goes on with it.
 */
export class Move {
  readonly #options: MoveOptions;
  /** The halves, once they are made. */
  halves: Halves | undefined;

  constructor(options: MoveOptions) {
    this.#options = options;
  }

  /** Looks at both sides, and changes nothing. */
  async prospect(signal: AbortSignal): Promise<Prospect> {
    const { request, source, target, env } = this.#options;
    const seen = await lookAtMove(request, { source, target, nowMs: env.clock.now() }, signal);
    const plan = planOf(seen);
    if (plan.progress !== 'new') return { seen, plan, obstacles: [], notes: plan.notes };
    const rights = rightsOf(plan, request);
    const missing = [
      ...(await missingRights(source, rights.source, 'where the guest is', signal)),
      ...(await missingRights(target, rights.target, 'at the target', signal)),
    ];
    const room = await roomFor(seen, plan, { source, target, env });
    return {
      seen,
      plan,
      obstacles: [
        ...plan.obstacles,
        ...missing,
        ...(room.kind === 'none'
          ? [{ what: `no node of the target can take the guest: ${room.why}`, fix: 'make room there, or add a node' }]
          : []),
      ],
      notes: [...plan.notes, ...(room.kind === 'unknown' ? [`whether there is room was not seen: ${room.why}`] : [])],
    };
  }

  /** Does it, or goes on with it. Rejects where a server refuses; what was made is removed then. */
  async run(signal: AbortSignal): Promise<MoveResult> {
    const prospect = await this.prospect(signal);
    const { plan, seen, obstacles } = prospect;
    const { env, print } = this.#options;
    if (plan.progress === 'over') return { kind: 'moved', prospect };
    if (obstacles.length > 0) return { kind: 'blocked', prospect };
    const halves = halvesOf(plan.id, plan.key ?? newKey(plan.id, env));
    if (plan.progress === 'new') await this.#make(plan, seen, halves, signal);
    else print('the move is under way already, and is followed');
    this.halves = halves;
    const verdict = await this.#follow(halves, signal);
    if (verdict.kind === 'moved') return { kind: 'moved', prospect };
    return { ...verdict, prospect, left: await removeMade(plan, halves, seen, this.#options, signal) };
  }

  async #make(plan: MovePlan, seen: SeenMove, halves: Halves, signal: AbortSignal): Promise<void> {
    try {
      await makeObjects(plan, seen, this.#options, signal);
      await makeHalves(plan, halves, seen.request, this.#options, signal);
    } catch (error) {
      // Only who was refused knows that nothing has begun.
      if (error instanceof ApiError && error.code < TROUBLE && error.code !== BUSY)
        await removeMade(plan, halves, seen, this.#options, signal);
      throw error;
    }
  }

  /** Shows both sides until it is over. */
  async #follow(halves: Halves, signal: AbortSignal): Promise<Verdict> {
    const { request, env, view, source, target } = this.#options;
    const { from, to } = request;
    for (;;) {
      const now = await unlessTroubled(async (): Promise<MoveNow> => {
        const [left, right] = await Promise.all([
          sideNow(source, from, halves.send, signal),
          sideNow(target, to, halves.receive, signal),
        ]);
        return { source: left, target: right };
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
    const isTrouble = error instanceof ApiError && (error.code >= TROUBLE || error.code === BUSY);
    if (isTrouble || error instanceof TransportError) return undefined;
    throw error;
  }
}
