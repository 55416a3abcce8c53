import { pairKeyOf } from '../../api/kubevirt/validate-migration.ts';
import { isFinalMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
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
import { UserError } from '../failure.ts';
import { type Halves, halvesOf, newKey } from './halves.ts';
import { lookAtMove } from './look.ts';
import { claimObjects, type Making, makeObjects, makeReceivingHalf, makeSendingHalf, reachedAt } from './making.ts';
import { leftLines } from './move-report.ts';
import type { MoveView } from './move-view.ts';
import { News } from './news.ts';
import { type MovePlan, planOf } from './plan.ts';
import type { Obstacle } from './planned-objects.ts';
import type { Place } from './receiving-machine.ts';
import { type Left, removeLeftovers, removeMade, withdrawReceivingHalf } from './removing.ts';
import { missingRights, rightsOf } from './rights.ts';
import { launcherOf, roomFor } from './room.ts';
import type { MoveRequest, SeenMove } from './seen.ts';
import { Traces } from './traces.ts';
import { tryOut } from './trial.ts';
import { type MoveNow, rowOf, type SideNow, type Verdict, verdictOf } from './verdict.ts';

/** How soon both sides are looked at again where they are not as they should be. */
const LOOK_AGAIN_MS = 500;
/** For how long what is being deleted is waited for. */
const PASSING_MS_MAX = 120_000;
/** How often it is begun anew because somebody else makes, or removes, the same move meanwhile. */
const BEGINNINGS_MAX = 10;
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
  | (Extract<Verdict, { kind: 'failed' }> & { readonly prospect: Prospect; readonly left: Left });

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
  readonly #making: Making;
  /** How far it is, for whoever stops it. */
  stage: MoveStage = { kind: 'looking' };

  constructor(options: MoveOptions) {
    this.#options = options;
    this.#making = { ...options, traces: new Traces() };
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
    const trial =
      found.length > 0 ? { obstacles: [], notes: [] } : await tryOut(plan, pod, request.to, this.#options, signal);
    const unseen = room.kind === 'unknown' ? [`whether there is room was not seen: ${room.why}`] : [];
    return {
      seen,
      plan,
      obstacles: [...found, ...trial.obstacles],
      notes: [...plan.notes, ...unseen, ...trial.notes],
    };
  }

  /** The same, once what is going away is gone: who was killed while they removed what they had made left that. */
  async #passable(signal: AbortSignal): Promise<Prospect> {
    const { env, print } = this.#options;
    for (let waitedMs = 0; ; waitedMs += LOOK_AGAIN_MS) {
      const prospect = await this.prospect(signal);
      const { obstacles } = prospect;
      const isPassing = obstacles.length > 0 && obstacles.every((each) => each.isPassing === true);
      if (!isPassing || waitedMs >= PASSING_MS_MAX) return prospect;
      if (waitedMs === 0) for (const { what } of obstacles) print(`${what}: waiting until it is gone`);
      await sleep(env.clock, LOOK_AGAIN_MS, signal);
    }
  }

  async #look(signal: AbortSignal): Promise<Pick<Prospect, 'seen' | 'plan'>> {
    const { request, source, target, env } = this.#options;
    const seen = await lookAtMove(request, { source, target, nowMs: env.clock.now() }, signal);
    return { seen, plan: planOf(seen) };
  }

  /**
   * Does it, or goes on with it, also with what somebody else makes at the same time. Rejects where a server refuses; what
   * this very run made is removed then.
   */
  async run(signal: AbortSignal): Promise<MoveResult> {
    const { env, print } = this.#options;
    for (let beginnings = 0; beginnings < BEGINNINGS_MAX; beginnings++) {
      if (beginnings > 0) await sleep(env.clock, LOOK_AGAIN_MS, signal);
      const prospect = await this.#passable(signal);
      const { plan, seen, obstacles } = prospect;
      if (plan.progress === 'over') return { kind: 'moved', prospect };
      if (obstacles.length > 0) {
        // What another run of the same move makes meanwhile takes room, too.
        if ((await this.#look(signal)).plan.progress === 'new') return { kind: 'blocked', prospect };
        continue;
      }
      const own = halvesOf(plan.id, plan.key ?? newKey(plan.id, env));
      const halves = plan.progress === 'new' ? await this.#make(plan, seen, own, signal) : own;
      if (!halves) continue;
      if (plan.progress !== 'new' || halves.key !== own.key) print('the move is under way already, and is followed');
      this.stage = { kind: 'moving', halves };
      const verdict = await this.#follow(halves, signal);
      if (verdict.kind === 'moved') return { kind: 'moved', prospect };
      return { ...verdict, prospect, left: await this.#remove(plan, halves, seen, signal) };
    }
    throw new UserError('somebody else begins this move again and again, and ends it: see who that is, and try again');
  }

  /**
   * Makes what is missing, and answers the halves: those of somebody else where they were first. Undefined where things
   * are not as they were looked at.
   */
  async #make(plan: MovePlan, seen: SeenMove, own: Halves, signal: AbortSignal): Promise<Halves | undefined> {
    const { request } = seen;
    const { print } = this.#options;
    this.stage = { kind: 'making', id: plan.id };
    try {
      await removeLeftovers(plan, seen, this.#making, signal);
      if (!(await makeObjects(plan, seen, own, this.#making, signal))) return undefined;
      const halves = await makeReceivingHalf(plan, own, request, this.#making, signal);
      if (!halves) return undefined;
      if (!(await claimObjects(plan, halves, this.#making, signal)))
        return await this.#withdraw(plan, halves, own, signal);
      const connectURL = plan.connectURL || (await reachedAt(halves, request, this.#making, signal));
      if (connectURL === undefined) return await this.#unreached(own, signal);
      // Who is stopped from here on does not know whether the other half was made.
      this.stage = { kind: 'moving', halves };
      if (await makeSendingHalf(plan, connectURL, halves, request, this.#making, signal)) return halves;
      this.stage = { kind: 'making', id: plan.id };
      return await this.#withdraw(plan, halves, own, signal);
    } catch (error) {
      // Only who was refused knows that nothing has begun. What others have made, they may be about to use.
      const isRefused = error instanceof UserError || (error instanceof ApiError && !isTrouble(error));
      if (isRefused)
        for (const line of leftLines(await this.#remove(plan, own, seen, signal, { isOwnOnly: true }))) print(line);
      throw error;
    }
  }

  /**
   * Nothing comes of the half that receives: it is begun anew. One that somebody else has made meanwhile they may be about to
   * use; if they are not, it is there to be seen the next time.
   */
  async #withdraw(plan: MovePlan, halves: Halves, own: Halves, signal: AbortSignal): Promise<undefined> {
    if (halves.key === own.key) await withdrawReceivingHalf(plan, halves, this.#options.request, this.#making, signal);
    return undefined;
  }

  /**
   * The target does not say where it is reached: nothing can come of it, unless somebody else has ended it meanwhile. Where
   * our own half is over there already, it says why to whoever follows it.
   */
  async #unreached(own: Halves, signal: AbortSignal): Promise<Halves | undefined> {
    const { request, target } = this.#options;
    const half = await target.find(virtualMachineInstanceMigrations, request.to.namespace, own.receive, signal);
    if (!half || half.metadata.deletionTimestamp !== undefined) return undefined;
    if (isFinalMigration(half)) return pairKeyOf(half.spec) === own.key ? own : undefined;
    throw new UserError(
      `${request.toCluster ?? 'the cluster'} does not say where its synchronization controller is reached; see that it runs ('godwit up' starts it, or 'godwit sync'), or say where it is with --connect-url HOST:PORT`,
    );
  }

  #remove(
    plan: MovePlan,
    halves: Halves,
    seen: SeenMove,
    signal: AbortSignal,
    options?: { readonly isOwnOnly: boolean },
  ): Promise<Left> {
    this.stage = { kind: 'removing', id: plan.id };
    return removeMade(plan, halves, seen, this.#making, signal, options);
  }

  /** Shows both sides until it is over. */
  async #follow(halves: Halves, signal: AbortSignal): Promise<Verdict> {
    const news = new News(this.#options, this.#options.request, halves);
    try {
      return await this.#followBy(news, halves, signal);
    } finally {
      await news.end();
    }
  }

  async #followBy(news: News, halves: Halves, signal: AbortSignal): Promise<Verdict> {
    const { request, view, source, target } = this.#options;
    const { from, to } = request;
    let hasBegun = false;
    let last: NonNullable<MoveNow['last']> = [undefined, undefined];
    for (;;) {
      const now = await unlessTroubled(async (): Promise<MoveNow> => {
        const [left, right] = await Promise.all([
          sideNow(source, from, halves.send, halves.key, signal),
          sideNow(target, to, halves.receive, halves.key, signal),
        ]);
        hasBegun ||= left.migration !== undefined;
        // Who looks later than others may find removed already what says why it failed.
        last = [left.migration ?? last[0], right.migration ?? last[1]];
        return { source: left, target: right, hasBegun, last };
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
      await news.next(signal);
    }
  }
}

async function sideNow(
  client: Client,
  { namespace, name }: Place,
  half: string,
  key: string,
  signal: AbortSignal,
): Promise<SideNow> {
  // In this order: whoever has the guest by now had it already when its migration was looked at, or has it later.
  const migration = await client.find(virtualMachineInstanceMigrations, namespace, half, signal);
  return {
    // One of another key is of another attempt, which others are at.
    migration: migration && pairKeyOf(migration.spec) === key ? migration : undefined,
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
