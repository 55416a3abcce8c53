/**
 * What the synchronization controller knows of the way to other clusters. One **channel** per peer cluster carries the
 * halves of all pairs with it, in both directions, over whichever stream exists; streams come and go below it. What has
 * been offered stays offered through cuts and through restarts of the peer, until it is acknowledged, refused or replaced.
 */

export type Role = 'source' | 'target';

/** The newest half of a pair, as its own cluster tells it to the other one. */
export interface OfferedHalf {
  readonly key: string;
  /** Whose half it is: the sender's part in the pair. */
  readonly role: Role;
  /** A plain JSON object without nulls; it is never changed after it was offered. Undefined: the migration is gone. */
  readonly half: object | undefined;
}

/** What a peer says its half is. Only its being JSON of bearable size has been checked. */
export interface ReceivedHalf {
  readonly key: string;
  readonly role: Role;
  /** Undefined: the peer's migration is gone. */
  readonly half: unknown;
}

/** The way to one peer cluster. It is the same object for as long as this process leads. */
export interface Channel {
  /** The peer's cluster id, as its certificate proves. */
  readonly peer: string;
  /** Whether a stream to the peer stands right now. What is offered while none does is sent once one does. */
  readonly isOpen: boolean;
  /**
   * Makes this the newest half of its key and role. Older ones that have not been sent never will be. Offering what has
   * been offered last does nothing, unless the peer has refused it: then it is sent again.
   */
  offer(update: OfferedHalf): void;
  /** Keeps quiet about a key: nothing of it is sent (again), not even that it is gone. */
  withdraw(key: string, role: Role): void;
}

/** Throw it from `received` to tell the peer that its half is not wanted, and why. */
export class Refusal extends Error {
  /** A word in CamelCase that programs can tell apart. */
  readonly reason: string;

  constructor(reason: string, message: string) {
    super(message);
    this.name = 'Refusal';
    this.reason = reason;
  }
}

/** What the controller hears. No method but `received` may throw. */
export interface ChannelListener {
  /**
   * A peer's half arrived. Resolves once this cluster may say that it knows it for good; until then it comes again
   * whenever either side starts anew. It is called for one half of a key at a time, in the order of offering; of halves
   * that arrive meanwhile only the newest counts. A `Refusal` is passed on to the peer, which does not send that half again
   * unless it is offered again. Any other error refuses it as well, as an `InternalError` of which the peer learns no more.
   */
  received(peer: string, update: ReceivedHalf): Promise<void>;
  /** The peer knows this half, which was offered before, for good. */
  acknowledged(peer: string, update: OfferedHalf): void;
  /** The peer does not want this half. */
  refused(peer: string, update: OfferedHalf, refusal: Refusal): void;
  /** A stream to the peer stands, for the first time or again. */
  opened(channel: Channel): void;
  /** There is none any more. */
  closed(peer: string, error: SyncError): void;
  /** The peer behind an address that is dialed is known, and its channel is open. Said again whenever it opens again. */
  reached(connectURL: string, channel: Channel): void;
  /** An address that is dialed was tried in vain; it is tried again. */
  unreachable(connectURL: string, error: SyncError): void;
}

/** Why a stream could not be, or is not any more. */
export type SyncErrorCode =
  /** Nobody answers at the address. */
  | 'Unreachable'
  /** What should be an address is none. */
  | 'InvalidAddress'
  /** Administrators have said which addresses are dialed, and this one is not among them. */
  | 'NotAllowed'
  /** One side's certificate is not one that the other trusts. */
  | 'NotTrusted'
  /** The two have no version of the protocol in common. */
  | 'VersionMismatch'
  /** The peer said what the protocol does not allow. */
  | 'ProtocolViolation'
  /** Nothing was heard for too long. */
  | 'Silent'
  /** The connection broke, or the peer closed it. */
  | 'Disconnected'
  /** Another stream to the same peer took its place. */
  | 'Superseded'
  /** The address that was dialed leads back to this cluster. */
  | 'OwnCluster'
  /** This side does not want it any more. */
  | 'Closed';

/** Why a stream could not be, or is not any more; the message is for people. */
export class SyncError extends Error {
  readonly code: SyncErrorCode;

  constructor(code: SyncErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'SyncError';
    this.code = code;
  }
}

/**
 * What was found at an address at which no cluster that is trusted has proven itself. Whoever may make a migration chooses
 * the address, and must not learn from us what there is in networks that we reach and they do not: this is for logs alone.
 */
export class UnprovenError extends SyncError {
  constructor(code: SyncErrorCode, message: string, cause?: unknown) {
    super(code, message, cause);
    this.name = 'UnprovenError';
  }
}

/** Keeps addresses dialed for as long as somebody wants them. */
export interface Dialer {
  /**
   * Keeps a stream to whoever is behind the address, as a user gave it: `host:port`, or a URL with the scheme https.
   * Where a stream to that peer stands already, in either direction, it is shared. Doing it twice does nothing.
   */
  dial(connectURL: string): void;
  /** The address is not wanted any more. The stream goes once nothing is left to say on it. */
  hangUp(connectURL: string): void;
  /** The channel to a peer of which a stream stood at some time since this process leads. */
  channel(peer: string): Channel | undefined;
}
