import { unreachable } from '../../api/unreachable.ts';
import type { Clock, Timer } from '../../env/ports.ts';
import { SyncError, type SyncErrorCode } from '../channel.ts';
import type { Frame, Introduction, Resume, VersionRange } from './frame.ts';
import type { Link } from './link.ts';
import { violation } from './codec.ts';
import { commonVersion } from './versions.ts';

/**
 * One stream from its first frame to its last: who begins, that both speak a version, that the peer is who its certificate
 * says, that it is heard of, and that it hears of us. What is said in between is for the conversation.
 */

/** A side that has nothing to say pings this often. */
export const HEARTBEAT_MS = 5_000;
/** So many intervals without a word, and the peer is taken for dead. */
const SILENT_HEARTBEATS_MAX = 3;
/** How long an introduction may take. */
export const HANDSHAKE_MS = 10_000;
/** The longest timer that there is. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** What is said once the two know each other. */
export type TalkFrame = Exclude<Frame, { kind: 'hello' | 'welcome' | 'goodbye' | 'ping' }>;

/** A peer that has introduced itself. */
export type Stranger = Omit<Introduction, 'clusterId'>;

export interface SessionOptions {
  readonly link: Link;
  readonly clock: Clock;
  readonly versions: VersionRange;
  /** Whether this side has dialed. */
  readonly isDialer: boolean;
  /** How this side introduces itself; asked when it does, with what the peer said before, if it did. */
  introduce(peer: Stranger | undefined): Introduction;
  /** Whether a peer that has dialed is welcome. Throws a SyncError where it is not. */
  admit(): void;
  /** The introductions are over. */
  opened(session: Session, peer: Stranger): void;
  /** Something was said; throws a SyncError where the protocol does not allow it. */
  heard(frame: TalkFrame): void;
  /** The stream is no more, whether it was open or not. Called once. */
  closed(session: Session, error: SyncError): void;
}

type State = 'greeting' | 'open' | 'closed';

export class Session {
  readonly #options: SessionOptions;
  readonly #link: Link;
  readonly #timers: Timer[] = [];
  #state: State = 'greeting';
  #silentHeartbeats = 0;
  #hasSpoken = false;
  #introduced: Introduction | undefined;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#link = options.link;
  }

  get peer(): string {
    return this.#link.peer;
  }

  get isDialer(): boolean {
    return this.#options.isDialer;
  }

  /** How this side has introduced itself on this stream. */
  get introduced(): Introduction | undefined {
    return this.#introduced;
  }

  get isOpen(): boolean {
    return this.#state === 'open';
  }

  /** Begins the introductions. */
  start(): void {
    const { clock, isDialer, versions } = this.#options;
    const greeting = clock.setTimer(() => {
      if (this.#state === 'greeting')
        this.close(new SyncError('Silent', `the peer did not introduce itself within ${HANDSHAKE_MS / 1000} seconds`));
    }, HANDSHAKE_MS);
    const leftMs = Math.min(TIMER_MS_MAX, Math.max(0, this.#link.validUntilMs - clock.now()));
    const certificate = clock.setTimer(
      () => this.close(new SyncError('Closed', "the peer's certificate has ended; the next stream has a new one")),
      leftMs,
    );
    this.#timers.push(greeting, certificate);
    this.#link.listen({
      frame: (frame) => this.#hear(frame),
      // Whoever cannot be understood is told so, if it still listens.
      ended: (error) => (error.code === 'ProtocolViolation' ? this.close(error) : this.#end(error)),
    });
    if (!isDialer) return;
    this.#introduced = this.#options.introduce(undefined);
    this.#say({ kind: 'hello', versions, ...this.#introduced });
  }

  /** Ends it where the peer's certificate is not trusted any more. */
  check(): void {
    try {
      this.#link.check();
    } catch (error) {
      if (!(error instanceof SyncError)) throw error;
      this.close(error);
    }
  }

  /** Says something on an open stream. */
  send(frame: TalkFrame): void {
    if (this.#state === 'open') this.#say(frame);
  }

  /** Ends it, and tells the peer why. */
  close(error: SyncError): void {
    if (this.#state === 'closed') return;
    this.#say({ kind: 'goodbye', code: error.code, message: error.message });
    this.#end(error);
  }

  #say(frame: Frame): void {
    this.#hasSpoken = true;
    this.#link.send(frame);
  }

  #hear(frame: Frame): void {
    if (this.#state === 'closed') return;
    this.#silentHeartbeats = 0;
    try {
      this.#take(frame);
    } catch (error) {
      if (!(error instanceof SyncError)) throw error;
      this.close(error);
    }
  }

  #take(frame: Frame): void {
    switch (frame.kind) {
      case 'ping':
        return;
      case 'goodbye':
        return this.#end(farewell(frame.code, frame.message));
      case 'hello':
        return this.#greet(frame);
      case 'welcome':
        return this.#welcomed(frame);
      case 'update':
      case 'gone':
      case 'ack':
      case 'refused':
      case 'bundle':
        if (this.#state !== 'open') throw violation(`${frame.kind} before the introductions were over`);
        return this.#options.heard(frame);
      default:
        unreachable(frame);
    }
  }

  #greet(frame: Extract<Frame, { kind: 'hello' }>): void {
    if (this.#options.isDialer || this.#state !== 'greeting') throw violation('an unexpected hello');
    const version = commonVersion(this.#options.versions, frame.versions);
    this.#checkIdentity(frame);
    this.#options.admit();
    this.#introduced = this.#options.introduce(frame);
    this.#say({ kind: 'welcome', version, ...this.#introduced });
    this.#open(frame);
  }

  #welcomed(frame: Extract<Frame, { kind: 'welcome' }>): void {
    if (!this.#options.isDialer || this.#state !== 'greeting') throw violation('an unexpected welcome');
    const { min, max } = this.#options.versions;
    if (frame.version < min || frame.version > max) throw violation(`it chose version ${frame.version}`);
    this.#checkIdentity(frame);
    this.#open(frame);
  }

  #checkIdentity({ clusterId }: Introduction): void {
    if (clusterId === this.#link.peer) return;
    throw new SyncError(
      'NotTrusted',
      `the peer says that it is cluster ${clusterId}, but its certificate is that of ${this.#link.peer}`,
    );
  }

  #open({ incarnation, resume, bundle }: { incarnation: string; resume: Resume | undefined; bundle: string }): void {
    this.#state = 'open';
    this.#beat();
    this.#options.opened(this, { incarnation, resume, bundle });
  }

  #beat(): void {
    if (this.#state !== 'open') return;
    if (this.#silentHeartbeats >= SILENT_HEARTBEATS_MAX) {
      const seconds = (SILENT_HEARTBEATS_MAX * HEARTBEAT_MS) / 1000;
      return this.close(new SyncError('Silent', `nothing was heard of the peer for ${seconds} seconds`));
    }
    this.#silentHeartbeats++;
    if (!this.#hasSpoken) this.#link.send({ kind: 'ping' });
    this.#hasSpoken = false;
    this.#timers[2] = this.#options.clock.setTimer(() => this.#beat(), HEARTBEAT_MS);
  }

  #end(error: SyncError): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    for (const timer of this.#timers) timer.cancel();
    this.#link.close();
    this.#options.closed(this, error);
  }
}

const TOLD: ReadonlySet<string> = new Set<SyncErrorCode>([
  'NotTrusted',
  'VersionMismatch',
  'ProtocolViolation',
  'Silent',
  'Superseded',
  'Closed',
]);

/** What a peer's last word means on this side. */
function farewell(code: string, message: string): SyncError {
  const known = TOLD.has(code) ? (code as SyncErrorCode) : 'Disconnected';
  return new SyncError(known, `the peer ended the stream: ${printable(message)}`);
}

/** A peer's words reach logs and terminals. */
function printable(text: string): string {
  return text.replace(/\p{C}/gu, '?');
}
