import { createHash, type Hash } from 'node:crypto';
import { createGunzip } from 'node:zlib';
import { drained } from '../../kube/drained.ts';

/** What goes by in pieces, and is never whole in memory. */
export type Bytes = AsyncIterable<Uint8Array>;

/** What came in is not what it has to be. */
export class DamagedInput extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'DamagedInput';
  }
}

/** Takes pieces of the size that is wanted from pieces of any size. */
export class ByteReader {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #rest: Uint8Array = new Uint8Array();

  constructor(bytes: Bytes) {
    this.#chunks = bytes[Symbol.asyncIterator]();
  }

  /** Up to so many bytes, and none only at the end. */
  async some(countMax: number): Promise<Uint8Array> {
    while (this.#rest.length === 0) {
      const { value, done } = await this.#chunks.next();
      if (done) return new Uint8Array();
      this.#rest = value;
    }
    const taken = this.#rest.subarray(0, countMax);
    this.#rest = this.#rest.subarray(taken.length);
    return taken;
  }

  /** So many bytes; fewer only at the end. */
  async take(count: number): Promise<Uint8Array> {
    const parts: Uint8Array[] = [];
    let left = count;
    while (left > 0) {
      const part = await this.some(left);
      if (part.length === 0) break;
      parts.push(part);
      left -= part.length;
    }
    return parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts);
  }

  /** Puts bytes back that were taken. */
  unread(bytes: Uint8Array): void {
    this.#rest = Buffer.concat([bytes, this.#rest]);
  }

  /** All that is left. Who stops in between closes the source. */
  async *remaining(): AsyncGenerator<Uint8Array> {
    try {
      for (;;) {
        const part = await this.some(Number.MAX_SAFE_INTEGER);
        if (part.length === 0) return;
        yield part;
      }
    } finally {
      await this.close();
    }
  }

  /** Lets go of the source, of which nothing more is wanted. */
  async close(): Promise<void> {
    await this.#chunks.return?.();
  }
}

/** The first bytes; fewer where there are not so many. */
export async function headOf(source: Bytes, count: number): Promise<Uint8Array> {
  const reader = new ByteReader(source);
  try {
    return await reader.take(count);
  } finally {
    await reader.close();
  }
}

/** Passes bytes on, and shows them to a digest. */
export class Digest {
  readonly #hash: Hash = createHash('sha256');
  bytes = 0;

  async *of(source: Bytes): AsyncGenerator<Uint8Array> {
    for await (const chunk of source) {
      this.#hash.update(chunk);
      this.bytes += chunk.length;
      yield chunk;
    }
  }

  /** `sha256:…` of what went by; to be asked once. */
  value(): string {
    return `sha256:${this.#hash.digest('hex')}`;
  }
}

/** Passes so many bytes on and no more. */
export async function* limited(source: Bytes, bytesMax: number, complaint: string): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const chunk of source) {
    bytes += chunk.length;
    if (bytes > bytesMax) throw new DamagedInput(complaint);
    yield chunk;
  }
}

export async function drain(source: Bytes): Promise<void> {
  for await (const _ of source);
}

const GZIP_MAGIC = [0x1f, 0x8b] as const;

/** Unpacks what is compressed with gzip, and passes on what is not. */
export async function unpacked(source: Bytes): Promise<Bytes> {
  const reader = new ByteReader(source);
  const head = await reader.take(GZIP_MAGIC.length);
  reader.unread(head);
  const isGzip = GZIP_MAGIC.every((byte, index) => head[index] === byte);
  return isGzip ? gunzipped(reader.remaining()) : reader.remaining();
}

async function* gunzipped(source: Bytes): AsyncGenerator<Uint8Array> {
  const gunzip = createGunzip();
  // Errors of the source end the unpacking, and so reach whoever reads it.
  const feeding = feed(source, gunzip).catch((error: Error) => gunzip.destroy(error));
  try {
    for await (const chunk of gunzip) yield chunk as Uint8Array;
  } catch (error) {
    if (error instanceof Error && 'code' in error && String(error.code).startsWith('Z_'))
      throw new DamagedInput(`what is compressed with gzip is damaged: ${error.message}`, error);
    throw error;
  } finally {
    gunzip.destroy();
    await feeding;
  }
}

async function feed(source: Bytes, gunzip: ReturnType<typeof createGunzip>): Promise<void> {
  for await (const chunk of source) {
    if (gunzip.destroyed) return;
    if (!gunzip.write(chunk)) await drained(gunzip);
  }
  gunzip.end();
}
