import { ByteReader, type Bytes, DamagedInput } from './byte-stream.ts';

/**
 * Reads tar archives as they come by: the plain format, and what GNU and POSIX added to it for long names and large
 * files. Nothing is unpacked anywhere: names are data, and what they would do to a file system is of no concern here.
 */

export interface TarEntry {
  /** As it stands in the archive. */
  readonly path: string;
  readonly kind: 'file' | 'directory' | 'hard-link' | 'symbolic-link' | 'other';
  readonly linkPath: string;
  readonly sizeBytes: number;
  /** To be read before the next entry is asked for, or not at all. */
  readonly body: Bytes;
}

const BLOCK_BYTES = 512;
/** Headers of long names are no longer than this, in archives that mean well. */
const EXTENSION_BYTES_MAX = 1024 * 1024;
const KINDS: ReadonlyMap<string, TarEntry['kind']> = new Map([
  ['0', 'file'],
  ['\0', 'file'],
  ['7', 'file'],
  ['1', 'hard-link'],
  ['2', 'symbolic-link'],
  ['5', 'directory'],
]);

/** Whether these are the first bytes of a tar archive. */
export function isTar(head: Uint8Array): boolean {
  return head.length >= BLOCK_BYTES && textOf(head, 257, 5) === 'ustar' && hasRightSum(head);
}

/** The entries of an archive. Throws DamagedInput for what is none, or ends too early. */
export async function* tarEntries(bytes: Bytes): AsyncGenerator<TarEntry> {
  const reader = new ByteReader(bytes);
  try {
    yield* entriesOf(reader);
  } finally {
    await reader.close();
  }
}

async function* entriesOf(reader: ByteReader): AsyncGenerator<TarEntry> {
  let extension: Extension = {};
  for (;;) {
    const header = await reader.take(BLOCK_BYTES);
    // Two blocks of zeros are the end, or the end of the file is.
    if (header.every((byte) => byte === 0)) return;
    if (header.length < BLOCK_BYTES) throw new DamagedInput('the tar archive ends within a header');
    if (!hasRightSum(header)) throw new DamagedInput('the tar archive is damaged: a header has the wrong sum');
    const type = String.fromCharCode(header[156] ?? 0);
    const declaredBytes = numberOf(header, 124, 12);
    if ('LKxg'.includes(type)) {
      extension = { ...extension, ...(await readExtension(reader, type, declaredBytes)) };
      continue;
    }
    if (type === 'S' || extension.isSparse) throw new DamagedInput('sparse files in tar archives are not supported');
    const sizeBytes = extension.sizeBytes ?? declaredBytes;
    const body = new Body(reader, sizeBytes);
    yield {
      path: extension.path ?? pathOf(header),
      kind: KINDS.get(type) ?? 'other',
      linkPath: extension.linkPath ?? textOf(header, 157, 100),
      sizeBytes,
      body: body.read(),
    };
    await body.skip();
    extension = {};
  }
}

/** The contents of one entry, of which somebody may read a part. */
class Body {
  readonly #reader: ByteReader;
  #left: number;
  #padding: number;

  constructor(reader: ByteReader, bytes: number) {
    this.#reader = reader;
    this.#left = bytes;
    this.#padding = paddingOf(bytes);
  }

  async *read(): AsyncGenerator<Uint8Array> {
    while (this.#left > 0) {
      const part = await this.#reader.some(this.#left);
      if (part.length === 0) throw new DamagedInput('the tar archive ends within a file');
      this.#left -= part.length;
      yield part;
    }
  }

  async skip(): Promise<void> {
    for await (const _ of this.read());
    const padding = await this.#reader.take(this.#padding);
    if (padding.length < this.#padding) throw new DamagedInput('the tar archive ends within a file');
    this.#padding = 0;
  }
}

function paddingOf(bytes: number): number {
  return (BLOCK_BYTES - (bytes % BLOCK_BYTES)) % BLOCK_BYTES;
}

/** What a header before the header says of the next entry. */
interface Extension {
  readonly path?: string;
  readonly linkPath?: string;
  readonly sizeBytes?: number;
  readonly isSparse?: boolean;
}

async function readExtension(reader: ByteReader, type: string, bytes: number): Promise<Extension> {
  if (bytes > EXTENSION_BYTES_MAX) throw new DamagedInput('the tar archive has a header that is too long');
  const padded = await reader.take(bytes + paddingOf(bytes));
  if (padded.length < bytes) throw new DamagedInput('the tar archive ends within a header');
  const body = Buffer.from(padded.subarray(0, bytes));
  if (type === 'L') return { path: untilNul(body.toString()) };
  if (type === 'K') return { linkPath: untilNul(body.toString()) };
  // What is said of all entries, such as a comment, changes none of what is of interest.
  return type === 'x' ? paxExtension(body) : {};
}

/** Records are `length key=value\n`; the length counts itself. */
function paxExtension(body: Buffer): Extension {
  let extension: Extension = {};
  for (let at = 0; at < body.length; ) {
    const space = body.indexOf(' ', at);
    const length = Number(body.toString('latin1', at, Math.max(at, space)));
    if (space < 0 || !Number.isInteger(length) || length <= space - at || at + length > body.length)
      throw new DamagedInput('the tar archive is damaged: a header of long names makes no sense');
    const record = body.toString('utf8', space + 1, at + length - 1);
    at += length;
    const equals = record.indexOf('=');
    const [key, value] = [record.slice(0, equals), record.slice(equals + 1)];
    if (key === 'path') extension = { ...extension, path: value };
    else if (key === 'linkpath') extension = { ...extension, linkPath: value };
    else if (key === 'size') extension = { ...extension, sizeBytes: sizeOf(Number(value)) };
    else if (key.startsWith('GNU.sparse.')) extension = { ...extension, isSparse: true };
  }
  return extension;
}

function pathOf(header: Uint8Array): string {
  const name = textOf(header, 0, 100);
  // Only POSIX has a prefix there; GNU has other things.
  const prefix = textOf(header, 257, 6) === 'ustar' && header[262] === 0 ? textOf(header, 345, 155) : '';
  return prefix === '' ? name : `${prefix}/${name}`;
}

function textOf(header: Uint8Array, offset: number, length: number): string {
  return untilNul(Buffer.from(header.subarray(offset, offset + length)).toString());
}

function untilNul(text: string): string {
  const end = text.indexOf('\0');
  return end < 0 ? text : text.slice(0, end);
}

/** Octal digits, or a number of base 256 where they do not suffice. */
function numberOf(header: Uint8Array, offset: number, length: number): number {
  const field = header.subarray(offset, offset + length);
  if ((field[0] ?? 0) & 0x80)
    return sizeOf(field.slice(1).reduce((value, byte) => value * 256 + byte, (field[0] ?? 0) & 0x7f));
  const text = Buffer.from(field)
    .toString('latin1')
    .replaceAll(/[\0 ]+/g, '');
  if (!/^[0-7]*$/.test(text)) throw new DamagedInput('the tar archive is damaged: a number is none');
  return sizeOf(text === '' ? 0 : Number.parseInt(text, 8));
}

function sizeOf(value: number): number {
  if (!Number.isSafeInteger(value) || value < 0) throw new DamagedInput('the tar archive has a file of no size');
  return value;
}

function hasRightSum(header: Uint8Array): boolean {
  const text = Buffer.from(header.subarray(148, 156))
    .toString('latin1')
    .replaceAll(/[\0 ]+/g, '');
  const expected = /^[0-7]+$/.test(text) ? Number.parseInt(text, 8) : -1;
  let sum = 0;
  for (let index = 0; index < BLOCK_BYTES; index++) sum += index >= 148 && index < 156 ? 32 : (header[index] ?? 0);
  return sum === expected;
}
