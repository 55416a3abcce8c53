import { RECORD_BYTES_MAX } from './journal.ts';

/**
 * Where the records of a journal go, and room that is set aside for those that must not fail: whoever reserves the right
 * for a successor sets aside the room of the grant, so that a full disk cannot leave it half-written while the guest
 * stands still. Pure: it says what the file has to look like, and others make it so.
 */
export interface JournalSpace {
  /** Where the next record begins. */
  readonly writtenBytes: number;
  /** How long the file is, zeros included. */
  readonly fileBytes: number;
  /** By whom room is set aside, each for one record. */
  readonly reservedBy: readonly string[];
}

/** What has to be done to the file, and be durable, before the space counts. */
export interface SpaceChange {
  readonly space: JournalSpace;
  /** Zeros to add at the end; none when the file is long enough. */
  readonly zerosBytes: number;
  /** Bytes to write, and where. */
  readonly write?: { readonly at: number; readonly bytes: Uint8Array };
}

/** The space of a journal as it was read, with nothing set aside. */
export const spaceOf = (writtenBytes: number, fileBytes: number): JournalSpace => ({
  writtenBytes,
  fileBytes: Math.max(writtenBytes, fileBytes),
  reservedBy: [],
});

/** Sets room aside for one record of `owner`; once is enough. */
export function reserveSpace(space: JournalSpace, owner: string): SpaceChange {
  const reservedBy = space.reservedBy.includes(owner) ? space.reservedBy : [...space.reservedBy, owner];
  return grown({ ...space, reservedBy });
}

/** Gives room back that is not needed any more; the file stays as long as it is. */
export function releaseSpace(space: JournalSpace, owner: string): JournalSpace {
  return { ...space, reservedBy: space.reservedBy.filter((it) => it !== owner) };
}

/**
 * Writes a record, into the room of `owner` where some is set aside; then the file need not grow. Others' room is left
 * to them: the file grows first when the record would take of it.
 */
export function commitRecord(space: JournalSpace, owner: string, bytes: Uint8Array): SpaceChange {
  if (bytes.length > RECORD_BYTES_MAX) throw new Error(`a record of ${bytes.length} bytes does not fit the journal`);
  const at = space.writtenBytes;
  const left = releaseSpace(space, owner);
  const { space: next, zerosBytes } = grown({ ...left, writtenBytes: at + bytes.length });
  return { space: next, zerosBytes, write: { at, bytes } };
}

function grown(space: JournalSpace): SpaceChange {
  const neededBytes = space.writtenBytes + space.reservedBy.length * RECORD_BYTES_MAX;
  const zerosBytes = Math.max(0, neededBytes - space.fileBytes);
  return { space: { ...space, fileBytes: space.fileBytes + zerosBytes }, zerosBytes };
}
