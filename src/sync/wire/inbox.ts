import type { Json, JsonObject } from '../../api/meta.ts';
import { errorMessage } from '../../api/error-message.ts';
import { decodeJson } from '../../machinery/decode.ts';
import { applyMergePatch } from '../../machinery/patch/merge-patch.ts';
import { type ReceivedHalf, Refusal } from '../channel.ts';
import { violation } from './codec.ts';
import { CONTENT_BYTES_MAX, type Frame, MESSAGE_LENGTH_MAX, REASON_LENGTH_MAX, type Resume, WINDOW } from './frame.ts';
import { idOf, SNAPSHOT_WANTED } from './outbox.ts';

/**
 * What one cluster has heard of a peer: the last half of each key as it was said, so that deltas can be applied, and
 * which updates have still to be answered. It knows neither streams nor time. Halves of one key are delivered one after
 * the other, and of those that wait only the newest is; all that it stands for are answered with it.
 */

/**
 * How many keys of one peer are remembered, and how much of them: of what is beyond, that is forgotten which has not been
 * heard of for longest. Most of that is over, since nobody says of a pair that is over that it is gone; of the rest the
 * peer is asked to say all.
 */
const ENTRIES_MAX = 4096;
const BYTES_MAX = 32 * 1024 * 1024;

/** An update of a peer, answered. */
export interface Answer {
  readonly seq: number;
  readonly refusal?: Refusal;
}

interface Waiting {
  readonly update: ReceivedHalf;
  /** Whose numbers these are: another incarnation of the peer has the same ones for other halves. */
  readonly heard: Heard;
  readonly seqs: readonly number[];
}

/** One key whose half is being delivered. */
interface Delivery {
  next: Waiting | undefined;
}

type HalfFrame = Extract<Frame, { kind: 'update' | 'gone' }>;

export interface InboxOptions {
  readonly deliver: (update: ReceivedHalf) => Promise<void>;
  /** Told of what `deliver` rejects with, other than refusals. */
  readonly failed: (error: unknown) => void;
  /** Told of every answer once; where it does not reach the peer, `resume` makes up for it. */
  readonly answer: (answer: Answer) => void;
  readonly limits?: { readonly entries: number; readonly bytes: number };
}

export class Inbox {
  readonly #options: InboxOptions;
  readonly #limits: { readonly entries: number; readonly bytes: number };
  readonly #deliveries = new Map<string, Delivery>();
  #incarnation: string | undefined;
  /** Everything of the incarnation that is being heard; another one starts with nothing. */
  #heard = nothingHeard();
  #isStreamNew = true;

  constructor(options: InboxOptions) {
    this.#options = options;
    this.#limits = options.limits ?? { entries: ENTRIES_MAX, bytes: BYTES_MAX };
  }

  /** True when every update has been answered. */
  get isIdle(): boolean {
    return this.#heard.unanswered.size === 0;
  }

  /** Where this side stands, as it tells a peer that it dials. */
  get resume(): Resume | undefined {
    if (this.#incarnation === undefined) return undefined;
    const { seq, unanswered, refusals } = this.#heard;
    return { incarnation: this.#incarnation, seq, unanswered: [...unanswered, ...refusals.keys()] };
  }

  /**
   * A new stream of this incarnation of the peer begins, on which this side has said that it stands there. Answers what
   * the peer may not have heard: refusals, and what was acknowledged after it was said to be unanswered.
   */
  begin(incarnation: string, told: Resume | undefined): Answer[] {
    this.#isStreamNew = true;
    if (incarnation !== this.#incarnation) {
      this.#incarnation = incarnation;
      this.#heard = nothingHeard();
      return [];
    }
    const { unanswered, refusals } = this.#heard;
    const late = (told?.unanswered ?? []).filter((seq) => !unanswered.has(seq) && !refusals.has(seq));
    return [...[...refusals].map(([seq, refusal]) => ({ seq, refusal })), ...late.map((seq) => ({ seq }))];
  }

  /** Forgets what was heard: the peer does not keep to the protocol, and has to say everything again. */
  reset(): void {
    this.#incarnation = undefined;
    this.#heard = nothingHeard();
  }

  /** Takes an update. Throws a `ProtocolViolation` where it cannot be one. */
  hear(frame: HalfFrame): void {
    const heard = this.#heard;
    // After a cut the numbers go on behind those that were lost on the way.
    const isNext = this.#isStreamNew ? frame.seq > heard.seq : frame.seq === heard.seq + 1;
    if (!isNext) throw violation(`the number ${frame.seq} does not follow ${heard.seq}`);
    if (heard.unanswered.size >= WINDOW) throw violation(`more than ${WINDOW} updates before they were answered`);
    this.#isStreamNew = false;
    heard.seq = frame.seq;
    heard.unanswered.add(frame.seq);
    const { seq, key, role } = frame;
    if (frame.kind === 'gone') {
      forget(heard, idOf(key, role));
      this.#enqueue({ update: { key, role, half: undefined }, heard, seqs: [seq] });
      return;
    }
    const half = this.#halfOf(frame);
    if (half instanceof Refusal) this.#answer(heard, { seq, refusal: half });
    else this.#enqueue({ update: { key, role, half }, heard, seqs: [seq] });
  }

  /** The whole half, which is then what the next delta is applied to. */
  #halfOf({ key, role, content }: Extract<Frame, { kind: 'update' }>): JsonObject | Refusal {
    const heard = this.#heard;
    const id = idOf(key, role);
    const base = heard.halves.get(id);
    if (content.kind === 'delta' && !base) return new Refusal(SNAPSHOT_WANTED, 'there is nothing to apply it to');
    const said = jsonOf(content.json);
    const half = content.kind === 'delta' && base ? (applyMergePatch(base.value, said) as JsonObject) : said;
    // A delta may make a half longer than it is itself.
    const bytes = content.kind === 'delta' ? Buffer.byteLength(JSON.stringify(half)) : content.json.length;
    if (bytes > CONTENT_BYTES_MAX) throw violation(`a half of ${bytes} bytes is larger than ${CONTENT_BYTES_MAX}`);
    forget(heard, id);
    // Behind all others, which makes the first the oldest.
    heard.halves.set(id, { value: half, bytes });
    heard.bytes += bytes;
    for (const oldest of heard.halves.keys()) {
      if (heard.halves.size <= this.#limits.entries && heard.bytes <= this.#limits.bytes) break;
      forget(heard, oldest);
    }
    return half;
  }

  #enqueue(waiting: Waiting): void {
    const id = idOf(waiting.update.key, waiting.update.role);
    const delivery = this.#deliveries.get(id);
    if (delivery) {
      // Those of an incarnation that is no more are not answered: whoever came after it says everything again.
      const older = delivery.next?.heard === waiting.heard ? delivery.next.seqs : [];
      delivery.next = { ...waiting, seqs: [...older, ...waiting.seqs] };
      return;
    }
    const begun: Delivery = { next: waiting };
    this.#deliveries.set(id, begun);
    // It settles every failure itself.
    void this.#deliver(id, begun);
  }

  async #deliver(id: string, delivery: Delivery): Promise<void> {
    for (;;) {
      const now = delivery.next;
      if (!now) break;
      delivery.next = undefined;
      const refusal = await this.#refusalOf(now.update);
      for (const seq of now.seqs) this.#answer(now.heard, refusal ? { seq, refusal } : { seq });
      if (refusal && !delivery.next) forget(now.heard, id);
    }
    this.#deliveries.delete(id);
  }

  async #refusalOf(update: ReceivedHalf): Promise<Refusal | undefined> {
    try {
      await this.#options.deliver(update);
      return undefined;
    } catch (error) {
      if (error instanceof Refusal) return error;
      this.#options.failed(error);
      // Why is nothing that another cluster needs to know.
      return new Refusal('InternalError', 'the other cluster could not take it');
    }
  }

  #answer(heard: Heard, { seq, refusal }: Answer): void {
    if (heard !== this.#heard || !heard.unanswered.delete(seq)) return;
    if (refusal) {
      const said = new Refusal(
        refusal.reason.slice(0, REASON_LENGTH_MAX),
        refusal.message.slice(0, MESSAGE_LENGTH_MAX),
      );
      heard.refusals.set(seq, said);
      // Answers that were lost in a cut are among the last ones, and a peer waits for no more than these.
      for (const old of heard.refusals.keys()) {
        if (heard.refusals.size <= WINDOW) break;
        heard.refusals.delete(old);
      }
      this.#options.answer({ seq, refusal: said });
    } else {
      this.#options.answer({ seq });
    }
  }
}

interface Heard {
  /** The last number. */
  seq: number;
  readonly unanswered: Set<number>;
  readonly refusals: Map<number, Refusal>;
  /** The one that was heard of last is the last. */
  readonly halves: Map<string, { readonly value: JsonObject; readonly bytes: number }>;
  /** Of all halves. */
  bytes: number;
}

function nothingHeard(): Heard {
  return { seq: 0, unanswered: new Set(), refusals: new Map(), halves: new Map(), bytes: 0 };
}

function forget(heard: Heard, id: string): void {
  const known = heard.halves.get(id);
  if (!known) return;
  heard.halves.delete(id);
  heard.bytes -= known.bytes;
}

function jsonOf(bytes: Uint8Array): JsonObject {
  let value: Json;
  try {
    ({ value } = decodeJson(bytes, ''));
  } catch (error) {
    throw violation(`a half that is not readable: ${errorMessage(error)}`, error);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw violation('a half that is no object');
  return value;
}
