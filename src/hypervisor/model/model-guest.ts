import type { ModelMemory } from './model-memory.ts';

/** What a model guest is like. */
export interface ModelTraits {
  /** How long it is executed before it says its first line. */
  readonly bootMs: number;
  readonly lineEveryMs: number;
  /** Whether it turns itself off when its power button is pressed, once it has booted. */
  readonly obeysPowerButton: boolean;
  /** How long that takes it. */
  readonly shutDownMs: number;
  /** The share of its memory that it writes over and over. */
  readonly workingSetShare: number;
  readonly dirtyBytesPerSecond: number;
  /** The size of each of its disks. */
  readonly diskBytes: number;
}

export const MODEL_TRAITS: ModelTraits = {
  bootMs: 2000,
  lineEveryMs: 250,
  obeysPowerButton: true,
  shutDownMs: 3000,
  workingSetShare: 0.1,
  dirtyBytesPerSecond: 10_000_000,
  diskBytes: 10_000_000_000,
};

/** Lines that were said in one boot, by their counts: from the first to the last, both included. */
export interface SaidLines {
  readonly bootId: string;
  readonly firstCount: number;
  readonly lastCount: number;
}

/**
 * A guest that is nothing but the time for which it was executed: all that it has said follows from that, so that ten
 * thousand of them cost nothing while nobody listens. Each boot has an id that no other has, and counts its lines.
 */
export class ModelGuest {
  readonly #newBootId: () => string;
  readonly #past: SaidLines[] = [];
  #bootId: string;
  #traits: ModelTraits;
  #memory: ModelMemory;
  /** Lines before this one were said where it came from. */
  #firstCount = 1;
  #executedMs = 0;
  #sinceMs: number | undefined;

  constructor(options: {
    readonly traits: ModelTraits;
    readonly memoryBytes: number;
    readonly newBootId: () => string;
  }) {
    const { traits, memoryBytes } = options;
    this.#traits = traits;
    this.#memory = {
      bytes: memoryBytes,
      workingSetBytes: memoryBytes * traits.workingSetShare,
      dirtyBytesPerSecond: traits.dirtyBytesPerSecond,
    };
    this.#newBootId = options.newBootId;
    this.#bootId = options.newBootId();
  }

  get traits(): ModelTraits {
    return this.#traits;
  }

  get memory(): ModelMemory {
    return this.#memory;
  }

  get bootId(): string {
    return this.#bootId;
  }

  get isExecuted(): boolean {
    return this.#sinceMs !== undefined;
  }

  /** It is executed from now on. */
  run(nowMs: number): void {
    this.#sinceMs ??= nowMs;
  }

  /** It is not executed any more. */
  hold(nowMs: number): void {
    this.#executedMs = this.executedMs(nowMs);
    this.#sinceMs = undefined;
  }

  /** It goes on where another one stood. */
  restore(other: ModelGuest, nowMs: number): void {
    this.#traits = other.#traits;
    this.#memory = other.#memory;
    this.#bootId = other.#bootId;
    this.#executedMs = other.executedMs(nowMs);
    this.#sinceMs = undefined;
    this.#firstCount = other.count(nowMs) + 1;
  }

  /** It boots anew. */
  reset(nowMs: number): void {
    const said = this.#saidSinceBoot(nowMs);
    if (said) this.#past.push(said);
    this.#bootId = this.#newBootId();
    this.#firstCount = 1;
    this.#executedMs = 0;
    if (this.#sinceMs !== undefined) this.#sinceMs = nowMs;
  }

  /** For how long it was executed since it booted. */
  executedMs(nowMs: number): number {
    return this.#executedMs + (this.#sinceMs === undefined ? 0 : nowMs - this.#sinceMs);
  }

  hasBooted(nowMs: number): boolean {
    return this.executedMs(nowMs) >= this.traits.bootMs;
  }

  /** How many lines it has said since it booted. */
  count(nowMs: number): number {
    const { bootMs, lineEveryMs } = this.traits;
    return this.hasBooted(nowMs) ? 1 + Math.floor((this.executedMs(nowMs) - bootMs) / lineEveryMs) : 0;
  }

  /** All lines that it has ever said. */
  said(nowMs: number): readonly SaidLines[] {
    const now = this.#saidSinceBoot(nowMs);
    return now ? [...this.#past, now] : this.#past;
  }

  /** One of the lines of this boot. */
  line(count: number): string {
    const { bootMs, lineEveryMs } = this.traits;
    const uptime = ((bootMs + (count - 1) * lineEveryMs) / 1000).toFixed(1);
    return `model guest boot=${this.#bootId} count=${count} uptime=${uptime} memory=ok disk=ok\n`;
  }

  #saidSinceBoot(nowMs: number): SaidLines | undefined {
    const lastCount = this.count(nowMs);
    const firstCount = this.#firstCount;
    return lastCount < firstCount ? undefined : { bootId: this.#bootId, firstCount, lastCount };
  }
}
