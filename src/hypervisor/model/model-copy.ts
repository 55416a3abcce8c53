import type { CopyState } from '../../api/copy-state.ts';
import type { Clock, Timer } from '../../env/ports.ts';
import type { MemoryProgress, MigrationLimits } from '../migration.ts';
import type { ModelGuest } from './model-guest.ts';
import { dirtiedBytes } from './model-memory.ts';
import type { LinkUser, ModelLink } from './model-network.ts';

/** Passes that are shorter than this cost more than they bring. */
const PASS_MS_MIN = 10;
/** How a guest is slowed down, as QEMU does it: so much at first, more by so much each time, and never more than this. */
const THROTTLE_PERCENT = { first: 20, step: 10, max: 99 };

export interface ModelCopyOptions {
  readonly clock: Clock;
  readonly guest: ModelGuest;
  readonly link: ModelLink;
  readonly limits: MigrationLimits;
  readonly allowsAutoConverge: boolean;
  /** A pass over memory begins. */
  readonly onPass: (pass: number) => void;
  /** So little is left that the guest can be stopped for it. */
  readonly onCaughtUp: () => void;
  /** All that was to be sent has been sent. */
  readonly onSent: () => void;
  /** The link broke, and both sides know. */
  readonly onCut: () => void;
}

/**
 * Memory that goes over a link: first in passes while its guest writes to it, then what is left. Nothing is copied; how
 * much would have been follows from the time, so that a thousand of them cost nothing between their passes.
 */
export class ModelCopy implements LinkUser {
  readonly #options: ModelCopyOptions;
  readonly #startedAtMs: number;
  #limits: MigrationLimits;
  #isLastLeg = false;
  #pass = 0;
  #passBytes = 0;
  #passExecutedMs = 0;
  /** What is left of this leg, as of then, and how fast it has gone since. */
  #left = { bytes: 0, atMs: 0, bytesPerSecond: 0 };
  #sentBytes = 0;
  #dirtyBytesPerSecond = 0;
  #throttlePercent = 0;
  #timer: Timer | undefined;
  #isHeld = false;
  #isOver = false;

  constructor(options: ModelCopyOptions) {
    this.#options = options;
    this.#limits = options.limits;
    this.#startedAtMs = options.clock.now();
  }

  get throttlePercent(): number {
    return this.#throttlePercent;
  }

  /** Begins with all of the memory. */
  start(): void {
    this.#options.link.use(this);
    this.#nextPass(this.#options.guest.memory.bytes);
  }

  setLimits(limits: Partial<MigrationLimits>): void {
    this.#limits = { ...this.#limits, ...limits };
    this.linkChanged();
  }

  /** Sends what is left, the guest standing still, or elsewhere. */
  sendRest(): void {
    if (this.#isOver) return;
    this.#isLastLeg = true;
    this.#isHeld = false;
    this.linkChanged();
  }

  /** Stops where it is, to be gone on with: what the guest has written since the pass began is left too. */
  hold(): void {
    this.#isHeld = true;
    this.#account();
    const { memory } = this.#options.guest;
    const left = this.#left.bytes + (this.#isLastLeg ? 0 : this.#dirtied());
    this.#left = { bytes: Math.min(memory.bytes, left), atMs: this.#options.clock.now(), bytesPerSecond: 0 };
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** Nothing more is sent. */
  end(): void {
    this.#isOver = true;
    this.#account();
    this.#timer?.cancel();
    this.#options.link.leave(this);
  }

  /** Goes on after its link was mended. */
  resume(): void {
    this.#isHeld = false;
    this.#options.link.use(this);
    this.linkChanged();
  }

  linkChanged(): void {
    this.#account();
    this.#timer?.cancel();
    this.#timer = undefined;
    const { link, clock, onCut } = this.#options;
    this.#left = { ...this.#left, bytesPerSecond: 0 };
    if (this.#isOver) return;
    if (link.state === 'cut') {
      link.users.delete(this);
      return onCut();
    }
    if (link.state === 'silent' || this.#isHeld) return;
    const bytesPerSecond = this.#bytesPerSecond();
    this.#left = { ...this.#left, bytesPerSecond };
    const durationMs = (1000 * this.#left.bytes) / bytesPerSecond;
    this.#timer = clock.setTimer(() => this.#legEnds(), Math.max(this.#isLastLeg ? 0 : PASS_MS_MIN, durationMs));
  }

  progress(state: CopyState): MemoryProgress | undefined {
    this.#account();
    if (state === 'setup') return undefined;
    return {
      totalBytes: this.#options.guest.memory.bytes,
      // Mathematics has halves of bytes; whoever counts has not.
      remainingBytes: Math.ceil(this.#left.bytes),
      transferredBytes: Math.floor(this.#sentBytes),
      bytesPerSecond: Math.round(this.#left.bytesPerSecond),
      dirtyBytesPerSecond: Math.round(this.#dirtyBytesPerSecond),
      passes: this.#pass,
      requestedPages: 0,
    };
  }

  totalMs(): number {
    return this.#options.clock.now() - this.#startedAtMs;
  }

  /** How long the rest takes at this speed. */
  expectedDowntimeMs(): number {
    return (1000 * this.#left.bytes) / this.#bytesPerSecond();
  }

  #bytesPerSecond(): number {
    const { bandwidthBytesPerSecond } = this.#limits;
    const { bytesPerSecond } = this.#options.link;
    return bandwidthBytesPerSecond === 0 ? bytesPerSecond : Math.min(bytesPerSecond, bandwidthBytesPerSecond);
  }

  #account(): void {
    const { bytes, atMs, bytesPerSecond } = this.#left;
    const nowMs = this.#options.clock.now();
    const sent = Math.min(bytes, (bytesPerSecond * (nowMs - atMs)) / 1000);
    this.#sentBytes += sent;
    this.#left = { bytes: bytes - sent, atMs: nowMs, bytesPerSecond };
  }

  #nextPass(bytes: number): void {
    const { guest, clock, onPass } = this.#options;
    this.#pass++;
    this.#passBytes = bytes;
    this.#passExecutedMs = guest.executedMs(clock.now());
    this.#left = { bytes, atMs: clock.now(), bytesPerSecond: 0 };
    onPass(this.#pass);
    this.linkChanged();
  }

  #legEnds(): void {
    this.#timer = undefined;
    this.#account();
    if (this.#isLastLeg) return this.#options.onSent();
    const dirty = this.#dirtied();
    const executedMs = this.#options.guest.executedMs(this.#options.clock.now()) - this.#passExecutedMs;
    this.#dirtyBytesPerSecond = executedMs > 0 ? (1000 * dirty) / executedMs : 0;
    if (dirty <= (this.#bytesPerSecond() * this.#limits.downtimeMs) / 1000) {
      this.#left = { bytes: dirty, atMs: this.#options.clock.now(), bytesPerSecond: 0 };
      this.#isHeld = true;
      return this.#options.onCaughtUp();
    }
    if (this.#options.allowsAutoConverge && dirty > this.#passBytes / 2) this.#throttle();
    this.#nextPass(dirty);
  }

  #throttle(): void {
    const { first, step, max } = THROTTLE_PERCENT;
    this.#throttlePercent = this.#throttlePercent === 0 ? first : Math.min(max, this.#throttlePercent + step);
  }

  /** What the guest has written since the pass began. */
  #dirtied(): number {
    const { guest, clock } = this.#options;
    const executedMs = guest.executedMs(clock.now()) - this.#passExecutedMs;
    const { dirtyBytesPerSecond } = guest.memory;
    const slowed = { ...guest.memory, dirtyBytesPerSecond: dirtyBytesPerSecond * (1 - this.#throttlePercent / 100) };
    return dirtiedBytes(slowed, executedMs);
  }
}
