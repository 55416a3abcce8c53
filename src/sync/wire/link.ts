import type { SyncError } from '../channel.ts';
import type { Frame } from './frame.ts';

/** What a link tells whoever holds it. */
export interface LinkHandlers {
  frame(frame: Frame): void;
  /** The last word: nothing more comes. A `ProtocolViolation` says that what came was no frame. */
  ended(error: SyncError): void;
}

/** An established stream to a peer whose certificate has been checked, whoever dialed it. Frames arrive in order or not at all. */
export interface Link {
  /** The cluster id that the peer's certificate proves. */
  readonly peer: string;
  /** When the peer's certificate ends; the stream must not outlive it. */
  readonly validUntilMs: number;
  /** Throws a SyncError `NotTrusted` where the peer's certificate, with which it came, is not trusted any more. */
  check(): void;
  /** Has the handlers hear what came and what comes. Called once, in the turn in which the link was given away. */
  listen(handlers: LinkHandlers): void;
  /** Takes a frame to send behind all others. What is sent after the end goes nowhere. */
  send(frame: Frame): void;
  /** Ends the stream once what was sent is on its way, or soon in any case. Handlers hear nothing any more. */
  close(): void;
}

/** Reaches other clusters. */
export interface Network {
  /** Rejects with a SyncError. */
  connect(connectURL: string, signal: AbortSignal): Promise<Link>;
}
