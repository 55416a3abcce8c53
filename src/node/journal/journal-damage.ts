import {
  JournaledMachines,
  JournalDamagedError,
  type JournalContents,
  RECORD_BYTES_MAX,
} from '../../migration/right-to-run/journal.ts';
import { needsRoom } from './needs-room.ts';

/**
 * Tells what a crash leaves of a journal from what it cannot leave.
 *
 * An entry is written into zeros that were durable before. So a crash leaves of the last one some bytes as they should
 * be, and zeros in place of the others. Everything else is damage: a last entry without a hole whose checksum is wrong,
 * since it was whole once and may have been acted on; more than one entry could be; text that never was an entry; and a
 * file that is shorter than the room that it had set aside. To take such a file for one with a torn end would be to
 * forget what this node had said.
 */

const HEAD = /^[0-9a-f]{8} [0-9a-f]{8} $/;
const HEAD_BYTES = 18;
const HEX = /^[0-9a-f]$/;
const SPACES: ReadonlySet<number> = new Set([8, 17]);

/** Throws a JournalDamagedError when something other than a crash has changed the file. */
export function requireUndamaged(bytes: Uint8Array, contents: JournalContents): void {
  const { bytesCount, records } = contents;
  const wrong = wrongWithTail(bytes.subarray(bytesCount));
  if (wrong !== undefined) throw new JournalDamagedError(`the journal is damaged at byte ${bytesCount}: ${wrong}`);
  let neededBytes = bytesCount;
  for (const [, pods] of new JournaledMachines(records).machines()) {
    // Nobody knows what a later version sets aside.
    for (const standing of pods.values())
      if (standing.kind !== 'unknown' && needsRoom(standing)) neededBytes += RECORD_BYTES_MAX;
  }
  if (bytes.length < neededBytes)
    throw new JournalDamagedError(
      `the journal was cut off: it has ${bytes.length} bytes, and had at least ${neededBytes}`,
    );
}

function wrongWithTail(tail: Uint8Array): string | undefined {
  const length = tail.findLastIndex((byte) => byte !== 0) + 1;
  if (length === 0) return undefined;
  if (length > RECORD_BYTES_MAX) return `${length} bytes are more than one entry`;
  const head = Buffer.from(tail.subarray(0, HEAD_BYTES)).toString('latin1');
  if (!head.split('').every(canBeInHead)) return 'what is there never was an entry';
  if (!HEAD.test(head)) return undefined;
  const entryBytes = HEAD_BYTES + Number.parseInt(head.slice(9, 17), 16) + 1;
  if (tail.length < entryBytes) return 'the file ends in the midst of an entry';
  if (length > entryBytes) return 'something follows the last entry';
  return tail.subarray(0, entryBytes).includes(0) ? undefined : 'the last entry was whole, and has been changed';
}

function canBeInHead(character: string, index: number): boolean {
  return character === '\0' || (SPACES.has(index) ? character === ' ' : HEX.test(character));
}
