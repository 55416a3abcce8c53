import type { Logger } from '../../env/ports.ts';
import { errorMessage } from '../../api/error-message.ts';
import {
  type Channel,
  type ChannelListener,
  type OfferedHalf,
  Refusal,
  type Role,
  type SyncError,
} from '../channel.ts';
import { type Answer, Inbox } from './inbox.ts';
import { violation } from './codec.ts';
import { type Resume, UNANSWERED_MAX } from './frame.ts';
import { type Outcome, Outbox } from './outbox.ts';
import type { Session, Stranger, TalkFrame } from './session.ts';

/**
 * All that two clusters have told each other while this process leads, whichever streams carried it: an outbox, an
 * inbox, and the stream of the moment. It is what the controller knows as a channel.
 */

/** Authorities change twice a year, and a stream lasts for days: whoever says more is after something else. */
const BUNDLES_MAX = 16;

export interface ConversationOptions {
  readonly peer: string;
  /** Of this process: what the peer has heard of any other does not count. */
  readonly incarnation: string;
  readonly listener: ChannelListener;
  readonly log: Logger;
  /** The peer says which authorities it has from now on. */
  readonly renewed: (bundle: string) => void;
  /** Nothing is left to say, or to answer. */
  readonly becameIdle: () => void;
}

export class Conversation implements Channel {
  readonly #options: ConversationOptions;
  readonly #outbox = new Outbox();
  readonly #inbox: Inbox;
  #session: Session | undefined;
  #acknowledged: number[] = [];
  /** On the stream of the moment. */
  #bundles = 0;

  constructor(options: ConversationOptions) {
    this.#options = options;
    const { listener, peer, log } = options;
    this.#inbox = new Inbox({
      deliver: (update) => listener.received(peer, update),
      answer: (answer) => this.#answer(answer),
      failed: (error) =>
        log.error('a half that another cluster told could not be taken', { peer, reason: errorMessage(error) }),
    });
  }

  get peer(): string {
    return this.#options.peer;
  }

  get isOpen(): boolean {
    return this.#session !== undefined;
  }

  /** The stream of the moment. */
  get session(): Session | undefined {
    return this.#session;
  }

  get isIdle(): boolean {
    return this.#outbox.isEmpty && this.#inbox.isIdle;
  }

  /** Where this side stands with what it has heard of the peer, of that incarnation if one is given. */
  resume(incarnation?: string): Resume | undefined {
    const { resume } = this.#inbox;
    return incarnation === undefined || resume?.incarnation === incarnation ? resume : undefined;
  }

  offer(update: OfferedHalf): void {
    const refusal = this.#outbox.offer(update);
    // Not in the caller's turn: what it has just offered may not be in its own books yet.
    if (refusal) void Promise.resolve().then(() => this.#tell({ update, refusal }));
    this.#pump();
  }

  withdraw(key: string, role: Role): void {
    this.#outbox.withdraw(key, role);
    this.#noteIdle();
  }

  /** Goes on over this stream, whose peer has introduced itself so. The one before it, if any, is the caller's to close. */
  attach(session: Session, { incarnation, resume, bundle }: Stranger): void {
    const heard = resume?.incarnation === this.#options.incarnation ? resume : undefined;
    const acknowledged = this.#outbox.resume(heard);
    this.#session = session;
    this.#acknowledged = [];
    this.#bundles = 0;
    for (const answer of this.#inbox.begin(incarnation, session.introduced?.resume)) this.#answer(answer);
    this.#options.renewed(bundle);
    this.#options.listener.opened(this);
    for (const update of acknowledged) this.#tell({ update });
    this.#pump();
    this.#noteIdle();
  }

  /** The stream is no more. */
  detach(session: Session, error: SyncError): void {
    if (session !== this.#session) return;
    if (error.code === 'ProtocolViolation') this.#inbox.reset();
    this.#session = undefined;
    this.#options.listener.closed(this.peer, error);
  }

  /** Tells the peer by which authorities this cluster is known from now on. */
  sendBundle(bundle: string): void {
    this.#session?.send({ kind: 'bundle', bundle });
  }

  /** Something was said on a stream. Throws a SyncError where it cannot be. */
  hear(session: Session, frame: TalkFrame): void {
    // What is still on its way on a stream that was replaced comes again on the one that replaced it.
    if (session !== this.#session) return;
    switch (frame.kind) {
      case 'update':
      case 'gone':
        return this.#inbox.hear(frame);
      case 'ack':
        for (const seq of frame.seqs) this.#answered(seq);
        break;
      case 'refused':
        this.#answered(frame.seq, new Refusal(frame.reason, frame.message));
        break;
      case 'bundle':
        if (++this.#bundles > BUNDLES_MAX) throw violation(`more than ${BUNDLES_MAX} bundles on one stream`);
        return this.#options.renewed(frame.bundle);
      default:
        frame satisfies never;
    }
    this.#pump();
    this.#noteIdle();
  }

  #answered(seq: number, refusal?: Refusal): void {
    const outcome = this.#outbox.answered(seq, refusal);
    if (outcome) this.#tell(outcome);
  }

  #tell({ update, refusal }: Outcome): void {
    const { listener } = this.#options;
    if (refusal) listener.refused(this.peer, update, refusal);
    else listener.acknowledged(this.peer, update);
  }

  #pump(): void {
    const session = this.#session;
    for (;;) {
      const frame = session?.isOpen ? this.#outbox.next() : undefined;
      if (!frame) return;
      session?.send(frame);
    }
  }

  #answer({ seq, refusal }: Answer): void {
    if (refusal) {
      this.#session?.send({ kind: 'refused', seq, reason: refusal.reason, message: refusal.message });
    } else if (this.#acknowledged.push(seq) === 1) {
      // One frame for all that are acknowledged in this turn.
      void Promise.resolve().then(() => this.#acknowledge());
    }
    this.#noteIdle();
  }

  #acknowledge(): void {
    const seqs = this.#acknowledged.splice(0);
    for (let at = 0; at < seqs.length; at += UNANSWERED_MAX)
      this.#session?.send({ kind: 'ack', seqs: seqs.slice(at, at + UNANSWERED_MAX) });
  }

  #noteIdle(): void {
    if (this.isIdle) this.#options.becameIdle();
  }
}
