import type { Plan } from './plan.ts';

/**
 * Finds a smaller plan that fails in the same way: a shorter run with fewer faults, strikes and actions. What is left is
 * not the smallest there is, but nothing more of it can be left out alone.
 */

export interface ShrinkOptions {
  /** Runs a plan; whether it fails in the same way, and if so, when. */
  readonly fails: (plan: Plan) => Promise<number | undefined>;
  /** How many plans may be tried. */
  readonly runsMax: number;
}

/** When the plan fails is known: what comes later has no part in it. */
export async function shrink(plan: Plan, failedMs: number, options: ShrinkOptions): Promise<Plan> {
  const attempt = new Shrinking(plan, failedMs, options);
  await attempt.run();
  return attempt.best;
}

class Shrinking {
  best: Plan;
  readonly #options: ShrinkOptions;
  #failedMs: number;
  #runs = 0;

  constructor(plan: Plan, failedMs: number, options: ShrinkOptions) {
    this.best = plan;
    this.#failedMs = failedMs;
    this.#options = options;
  }

  async run(): Promise<void> {
    for (let before: Plan | undefined; before !== this.best && !this.#isOver; ) {
      before = this.best;
      await this.#shorten();
      await this.#reduce('strikes');
      await this.#reduce('actions');
      await this.#reduce('faults');
    }
  }

  get #isOver(): boolean {
    return this.#runs >= this.#options.runsMax;
  }

  /** Whether the plan still fails; if so, it is the best so far. */
  async #try(plan: Plan): Promise<boolean> {
    if (this.#isOver) return false;
    this.#runs++;
    const failedMs = await this.#options.fails(plan);
    if (failedMs === undefined) return false;
    this.best = plan;
    this.#failedMs = failedMs;
    return true;
  }

  /** A run that fails while anything may fail ends there anyhow; one that does not settle may have begun to sooner. */
  async #shorten(): Promise<void> {
    if (this.#failedMs < this.best.horizonMs) {
      if (this.#failedMs + 1 < this.best.horizonMs) await this.#try(until(this.best, this.#failedMs + 1));
      return;
    }
    for (let share = 0.5; share < 0.95; share = (1 + share) / 2)
      while (this.best.horizonMs > 1 && (await this.#try(until(this.best, this.best.horizonMs * share))));
  }

  /** Leaves out halves, quarters, and so on down to single ones. */
  async #reduce(what: 'strikes' | 'actions' | 'faults'): Promise<void> {
    for (let size = this.best[what].length; size >= 1 && !this.#isOver; size = Math.floor(size / 2)) {
      for (let from = 0; from < this.best[what].length && !this.#isOver; ) {
        const rest = this.best[what].filter((_, index) => index < from || index >= from + size);
        if (!(await this.#try({ ...this.best, [what]: rest }))) from += size;
      }
    }
  }
}

/** The plan, ended sooner. */
function until(plan: Plan, endMs: number): Plan {
  const horizonMs = Math.ceil(endMs);
  return {
    ...plan,
    horizonMs,
    strikes: plan.strikes.filter(({ atMs }) => atMs <= horizonMs),
    actions: plan.actions.filter(({ atMs }) => atMs <= horizonMs),
  };
}
