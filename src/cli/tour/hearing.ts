import { type Clock, sleep } from '../../env/ports.ts';
import { unlessAborted } from '../../kube/abort.ts';
import { withinTime } from '../../kube/time-limit.ts';
import { type Sign, signsIn } from './proof.ts';

/** How soon a guest is listened to again that is not there yet, or whose node could not be asked. */
const AGAIN_MS = 250;
/** How long one connection is listened to: one that has broken without a word would be listened to for ever. */
const CONNECTION_MS = 15_000;
/** What a line may have at most; a guest may say anything. */
const LINE_CHARACTERS_MAX = 4096;

/** What follows a guest's serial port from now on, wherever it goes, until it ends. */
export type Follow = (signal: AbortSignal) => Promise<AsyncIterable<string>>;

/** Hears the signs of life of the guest that has a name now, and lets others wait for them. */
export class Hearing {
  readonly #follow: Follow;
  readonly #clock: Clock;
  readonly #waiting = new Set<(sign: Sign) => void>();
  #last: Sign | undefined;

  constructor(follow: Follow, clock: Clock) {
    this.#follow = follow;
    this.#clock = clock;
  }

  /** What the guest said last; undefined where it is another than the one that was heard, and has said nothing yet. */
  get last(): Sign | undefined {
    return this.#last;
  }

  /** Listens until told to stop. What was said before does not count: it may be of a guest that was there before. */
  async listen(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#last = undefined;
      try {
        await withinTime(this.#clock, CONNECTION_MS, signal, (ending) => this.#listenOnce(ending));
      } catch {
        // Whoever waits loses patience if that does not change.
      }
      await sleep(this.#clock, AGAIN_MS, signal);
    }
  }

  /** Resolves once the guest has said so many signs more, all of them in one boot. Rejects where the signal aborts. */
  async speaks(signs: number, signal: AbortSignal): Promise<Sign> {
    let first = this.#last;
    let onSign = (_sign: Sign): void => undefined;
    const enough = new Promise<Sign>((resolve) => {
      onSign = (sign) => {
        if (sign.boot !== first?.boot) first = sign;
        if (sign.count >= first.count + signs) resolve(sign);
      };
    });
    this.#waiting.add(onSign);
    try {
      return await unlessAborted(enough, signal);
    } finally {
      this.#waiting.delete(onSign);
    }
  }

  async #listenOnce(signal: AbortSignal): Promise<void> {
    let begun = '';
    for await (const piece of await this.#follow(signal)) {
      if (signal.aborted) return;
      begun = this.#hear(begun + piece);
    }
  }

  /** Answers what was begun, and is not yet a line. */
  #hear(text: string): string {
    const end = text.lastIndexOf('\n') + 1;
    for (const sign of signsIn(text.slice(0, end))) {
      this.#last = sign;
      for (const wait of this.#waiting) wait(sign);
    }
    return text.slice(end).slice(-LINE_CHARACTERS_MAX);
  }
}
