import { type LogEntry, StorageError } from './port.ts';

const NEWLINE = 0x0a;

/**
 * A log entry as bytes: a JSON header line, then the object's text as it is. The revision is the key and not
 * repeated. Parsing a header is cheap, and the text is copied out without being looked at.
 */
export function encodeEntry(entry: LogEntry): Buffer {
  const header = JSON.stringify([entry.type, entry.previous, entry.bucket, entry.key]);
  return Buffer.from(`${header}\n${entry.text}`, 'utf8');
}

/** The reverse. Throws a fatal StorageError for bytes that `encodeEntry` did not write. */
export function decodeEntry(revision: number, bytes: Buffer): LogEntry {
  const end = bytes.indexOf(NEWLINE);
  const header = end < 0 ? undefined : parseHeader(bytes.toString('utf8', 0, end));
  if (header === undefined || !Number.isSafeInteger(revision)) {
    throw new StorageError(`the log entry of revision ${revision} is damaged`, { fatal: true });
  }
  const [type, previous, bucket, key] = header;
  return { revision, type, bucket, key, text: bytes.toString('utf8', end + 1), previous };
}

type Header = [type: LogEntry['type'], previous: number, bucket: string, key: string];

function parseHeader(line: string): Header | undefined {
  let header: unknown;
  try {
    header = JSON.parse(line);
  } catch {
    // Not our header; the caller says which entry it was.
    return undefined;
  }
  if (!Array.isArray(header)) return undefined;
  const [type, previous, bucket, key] = header as unknown[];
  if (type !== 'put' && type !== 'delete') return undefined;
  if (!Number.isSafeInteger(previous) || typeof bucket !== 'string' || typeof key !== 'string') return undefined;
  return header as Header;
}
