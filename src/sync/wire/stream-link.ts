import { Code, ConnectError } from '@connectrpc/connect';
import { errorMessage } from '../../api/error-message.ts';
import type { Clock } from '../../env/ports.ts';
import { SyncError } from '../channel.ts';
import { frameOf, messageOf } from './codec.ts';
import type { Frame } from './frame.ts';
import type { Link, LinkHandlers } from './link.ts';
import type { FrameMessage } from './schema.ts';

/** What a peer's certificate says. */
export interface ProvenPeer {
  readonly clusterId: string;
  readonly validUntilMs: number;
}

export interface StreamLinkOptions {
  readonly clock: Clock;
  readonly peer: ProvenPeer;
  /** Throws a SyncError where the peer would not be believed any more. */
  readonly check: () => void;
  /** What the peer says. Asked for once, when somebody listens. */
  readonly incoming: (outgoing: AsyncIterable<FrameMessage>) => AsyncIterable<FrameMessage>;
  /** Lets go of the connection at once. */
  readonly destroy: () => void;
}

/** A peer that does not read has not taken all of two windows of updates and their answers. */
const QUEUE_BYTES_MAX = 4 * 1024 * 1024;
/** What a frame weighs besides what it carries. */
const FRAME_BYTES = 256;
/** How long the last words may take to be heard. */
export const FAREWELL_MS = 2_000;

/** A gRPC stream, on whichever side of it, as a link. */
export class StreamLink implements Link {
  readonly #options: StreamLinkOptions;
  readonly #queue: { readonly message: FrameMessage; readonly bytes: number }[] = [];
  #queuedBytes = 0;
  #handlers: LinkHandlers | undefined;
  #isClosed = false;
  #wake: () => void = () => undefined;
  /** Resolves when the stream is over in both directions. */
  readonly ended: Promise<void>;
  #noteEnd: () => void = () => undefined;
  /** The directions in which something may still be said. */
  #directions = 2;

  constructor(options: StreamLinkOptions) {
    this.#options = options;
    this.ended = new Promise((resolve) => (this.#noteEnd = resolve));
  }

  get peer(): string {
    return this.#options.peer.clusterId;
  }

  get validUntilMs(): number {
    return this.#options.peer.validUntilMs;
  }

  check(): void {
    this.#options.check();
  }

  listen(handlers: LinkHandlers): void {
    this.#handlers = handlers;
    // It settles every failure itself.
    void this.#read();
  }

  send(frame: Frame): void {
    if (this.#isClosed) return;
    const bytes = FRAME_BYTES + (frame.kind === 'update' ? frame.content.json.length : 0);
    this.#queuedBytes += bytes;
    this.#queue.push({ message: messageOf(frame), bytes });
    this.#wake();
    if (this.#queuedBytes > QUEUE_BYTES_MAX)
      this.#end(new SyncError('Silent', 'the peer does not read what it is told'));
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#handlers = undefined;
    this.#wake();
    const timer = this.#options.clock.setTimer(() => this.#options.destroy(), FAREWELL_MS);
    void this.ended.then(() => timer.cancel());
  }

  /** What this side says, as long as the stream is read. */
  async *outgoing(): AsyncIterable<FrameMessage> {
    try {
      for (;;) {
        const next = this.#queue.shift();
        if (next) {
          this.#queuedBytes -= next.bytes;
          yield next.message;
        } else if (this.#isClosed) {
          return;
        } else {
          await new Promise<void>((resolve) => (this.#wake = resolve));
        }
      }
    } finally {
      this.#endDirection();
    }
  }

  async #read(): Promise<void> {
    try {
      // What comes after the last word is not listened to, but to stop reading would break off what this side still says.
      for await (const message of this.#options.incoming(this.outgoing())) if (this.#handlers) this.#take(message);
      this.#end(new SyncError('Disconnected', 'the peer closed the stream'));
    } catch (error) {
      this.#end(syncErrorOf(error));
    } finally {
      this.#endDirection();
    }
  }

  #take(message: FrameMessage): void {
    let frame: Frame;
    try {
      frame = frameOf(message);
    } catch (error) {
      return this.#end(syncErrorOf(error));
    }
    this.#handlers?.frame(frame);
  }

  #endDirection(): void {
    if (--this.#directions === 0) this.#noteEnd();
  }

  #end(error: SyncError): void {
    this.#handlers?.ended(error);
    this.close();
  }
}

const UNTRUSTED: ReadonlySet<Code> = new Set([Code.Unauthenticated, Code.PermissionDenied]);
const UNKNOWN: ReadonlySet<Code> = new Set([Code.NotFound, Code.Unimplemented]);
const VIOLATION: ReadonlySet<Code> = new Set([Code.InvalidArgument, Code.ResourceExhausted, Code.Internal]);

/** What the failure of a call means. */
function syncErrorOf(error: unknown): SyncError {
  if (error instanceof SyncError) return error;
  const { code, rawMessage, cause } = ConnectError.from(error);
  if (UNTRUSTED.has(code)) return new SyncError('NotTrusted', rawMessage, error);
  if (UNKNOWN.has(code))
    return new SyncError('VersionMismatch', 'whoever is there does not speak this synchronization protocol', error);
  // What Node has an error of its own for was not said by the peer.
  if (VIOLATION.has(code) && !(cause instanceof Error && 'code' in cause))
    return new SyncError('ProtocolViolation', `the peer does not keep to the protocol: ${rawMessage}`, error);
  return new SyncError('Disconnected', `the connection broke: ${errorMessage(error)}`, error);
}
