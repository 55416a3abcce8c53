import type { Role } from '../channel.ts';

/**
 * What two clusters say to each other on a stream, and how much of it. The dialing side begins with `hello`; the other
 * one answers `welcome`, or `goodbye`. From then on both say the same kinds of things, independently of each other.
 *
 * Updates are numbered by the side that sends them, from 1, anew whenever its process starts (its **incarnation**). Each is
 * answered once, by `ack` or `refused`. After a cut each side says up to which number it has heard the other, and which of
 * those it has still to answer; what was not heard is said again under new numbers, with what is newest by then.
 */

/** Where a side stands with what it has heard of the other. */
export interface Resume {
  /** The incarnation of the other side that it has heard. */
  readonly incarnation: string;
  /** The last number that it has heard. */
  readonly seq: number;
  /** All numbers up to that are acknowledged except for these, whose answers are still to come, or come again. */
  readonly unanswered: readonly number[];
}

/** How a side introduces itself. */
export interface Introduction {
  readonly clusterId: string;
  readonly incarnation: string;
  /** Absent where nothing of the other side is known. */
  readonly resume: Resume | undefined;
  /** PEM of the certificate authorities by which this side is known from now on. */
  readonly bundle: string;
}

export interface VersionRange {
  readonly min: number;
  readonly max: number;
}

/** The newest half of a key: whole, or what has changed since the last one that was sent. */
export interface Update {
  readonly seq: number;
  readonly key: string;
  readonly role: Role;
  /** JSON; a `delta` is a merge patch. */
  readonly content: { readonly kind: 'snapshot' | 'delta'; readonly json: Uint8Array };
}

export type Frame =
  | ({ readonly kind: 'hello'; readonly versions: VersionRange } & Introduction)
  | ({ readonly kind: 'welcome'; readonly version: number } & Introduction)
  /** The last word of a side, which then closes the stream. */
  | { readonly kind: 'goodbye'; readonly code: string; readonly message: string }
  | ({ readonly kind: 'update' } & Update)
  /** The migration is no more. */
  | { readonly kind: 'gone'; readonly seq: number; readonly key: string; readonly role: Role }
  | { readonly kind: 'ack'; readonly seqs: readonly number[] }
  | { readonly kind: 'refused'; readonly seq: number; readonly reason: string; readonly message: string }
  /** Said by a side that had nothing else to say for a while: the other one, and what is between them, shall know that it is there. */
  | { readonly kind: 'ping' }
  /** Other authorities than the introduction said. */
  | { readonly kind: 'bundle'; readonly bundle: string };

/** The versions of the protocol that this program speaks. */
export const VERSIONS: VersionRange = { min: 1, max: 1 };

/** Whatever a user may put into `spec.receive.migrationID` is a label value or less; this leaves room. */
export const KEY_LENGTH_MAX = 512;
/** A half with progress, decisions and a dozen volumes is below 10 KiB. */
export const CONTENT_BYTES_MAX = 64 * 1024;
/** Four certificates are below 4 KiB. */
export const BUNDLE_LENGTH_MAX = 16 * 1024;
export const REASON_LENGTH_MAX = 64;
export const MESSAGE_LENGTH_MAX = 1024;
/** Cluster ids and incarnations are UUIDs. */
export const ID_LENGTH_MAX = 64;
/** How many updates a side may send before they are answered: enough for 1 000 pairs over a slow link. */
export const WINDOW = 64;
/** Those that are not answered, and the refusals of as many before them, which may have been lost. */
export const UNANSWERED_MAX = 2 * WINDOW;
/** No frame is longer: the largest content or bundle, and what is around it. */
export const FRAME_BYTES_MAX = 96 * 1024;
