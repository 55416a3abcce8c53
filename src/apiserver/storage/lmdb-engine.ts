import { statfsSync, statSync } from 'node:fs';
import { chmod, mkdir, open as openFile } from 'node:fs/promises';
import { constants } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { open, type RootDatabase } from 'lmdb';
import { decodeEntry, encodeEntry } from './entry-codec.ts';
import { type Engine, type LogEntry, StorageError } from './port.ts';

/** The record at key 0, below every revision, says what the rest is. */
const FORMAT_KEY = 0;
const FORMAT_NAME = 'godwit-log';
const FORMAT_VERSION = 1;
/** Below that, who has served the log last, if they said so. */
const SERVED_KEY = -1;

/** What is in a log may be secret. */
export const FILE_MODE = 0o600;
export const DIRECTORY_MODE = 0o700;

/** With LMDB's usual 4 KiB, two objects of 1 KiB fill a page; large pages waste less and measured faster. */
export const PAGE_BYTES = 16 * 1024;

/** Address space, not memory or disk. LMDB grows the map by itself past this, leaving the old one behind. */
const MAP_BYTES = 8 * 1024 ** 3;

/** The way down the tree, and the list of pages that are free. */
const PAGES_ASIDE = 32;

/** From there on it is worth while to ask how many pages there are. */
const MANY_DROPPED = 1000;

/** LMDB's file in the directory of a log. */
export const DATA_FILE = 'data.mdb';
/** How LMDB's file begins, behind the header of its first page: a magic number, then the version of the format. */
const MAGIC_OFFSET = 24;
const MAGIC = Buffer.from([0xde, 0xc0, 0xef, 0xbe, 0x02, 0x00, 0x00, 0x00]);

/** LMDB's own error for a map that cannot grow. */
const MDB_MAP_FULL = -30792;

/** A log in a file. */
export interface LogFile extends Engine {
  /** The word of whoever served it last, which `serve` has left. Copies have that of their time. */
  readonly served: string | undefined;
  serve(word: string): Promise<void>;
}

/**
 * A log in LMDB. The directory is created if need be, private to this user; one process at a time may use it.
 * Refuses a directory of another format.
 */
export async function openLmdbEngine(directory: string): Promise<LogFile> {
  const path = resolve(directory);
  const created = await mkdir(path, { recursive: true, mode: DIRECTORY_MODE });
  await chmod(path, DIRECTORY_MODE);
  await refuseDamaged(join(path, DATA_FILE));
  const engine = new LmdbEngine(path);
  try {
    await engine.checkFormat();
    await syncDirectories(path, created === undefined ? path : dirname(created));
  } catch (error) {
    await engine.close();
    throw error;
  }
  return engine;
}

class LmdbEngine implements LogFile {
  readonly #path: string;
  #database: RootDatabase<Buffer, number>;

  constructor(path: string) {
    this.#path = path;
    try {
      this.#database = this.#open();
    } catch (error) {
      throw new StorageError(`${path} cannot be opened: ${(error as Error).message}`, { fatal: true, cause: error });
    }
  }

  /** Writes the format record into an empty database, and checks that of any other. */
  async checkFormat(): Promise<void> {
    const record = this.#database.get(FORMAT_KEY)?.toString('utf8');
    const format = `${FORMAT_NAME} ${FORMAT_VERSION}`;
    if (record === format) return;
    const isEmpty = this.#database.getKeysCount({ limit: 1 }) === 0;
    if (record !== undefined || !isEmpty) {
      const found = record === undefined ? 'of an unknown format' : `of format "${record}"`;
      throw new StorageError(`${this.#path} is ${found}, this version reads "${format}"`, { fatal: true });
    }
    await this.#database.put(FORMAT_KEY, Buffer.from(format, 'utf8'));
  }

  get served(): string | undefined {
    return this.#database.get(SERVED_KEY)?.toString('utf8');
  }

  async serve(word: string): Promise<void> {
    if (!this.#hasRoom(PAGES_ASIDE * PAGE_BYTES))
      throw new StorageError(`no space left in ${this.#path}`, { fatal: false });
    await this.#database.put(SERVED_KEY, Buffer.from(word, 'utf8'));
  }

  async load(visit: (entry: LogEntry) => void): Promise<void> {
    for (const { key, value } of this.#database.getRange({ start: FORMAT_KEY + 1 })) visit(decodeEntry(key, value));
    // Reading has mapped the whole file into memory; a new map begins empty.
    await this.#reopen();
  }

  read(revision: number): LogEntry | undefined {
    const bytes = this.#database.get(revision);
    return bytes === undefined ? undefined : decodeEntry(revision, bytes);
  }

  async commit(append: readonly LogEntry[], drop: readonly number[]): Promise<void> {
    // Everything that can throw comes before the transaction: LMDB would commit a half-filled one.
    const values = append.map((entry) => encodeEntry(entry));
    const neededBytes = roomFor(values, drop.length, () => statSync(join(this.#path, DATA_FILE)).size);
    if (!this.#hasRoom(neededBytes)) throw new StorageError(`no space left in ${this.#path}`, { fatal: false });
    const database = this.#database;
    try {
      await database.batch(() => {
        for (const revision of drop) void database.remove(revision);
        for (let index = 0; index < append.length; index++) {
          void database.put((append[index] as LogEntry).revision, values[index] as Buffer);
        }
      });
    } catch (error) {
      const cause = await commitError(error);
      if (!this.#isOutOfSpace(cause, neededBytes)) {
        throw new StorageError(`cannot write to ${this.#path}`, { fatal: true, cause });
      }
      await this.#recover(append, cause);
      throw new StorageError(`no space left in ${this.#path}`, { fatal: false, cause });
    }
  }

  async close(): Promise<void> {
    await this.#database.close();
  }

  #open(): RootDatabase<Buffer, number> {
    // The type lacks permissionsMode, which the native side reads.
    const options = {
      noSubdir: false,
      encoding: 'binary' as const,
      pageSize: PAGE_BYTES,
      mapSize: MAP_BYTES,
      permissionsMode: FILE_MODE,
      // A commit that fails before its one decisive write has failed whole. Overlapping the sync measured no faster
      // (there is one commit in flight anyway) and makes a commit visible before anyone knows whether it is on disk.
      overlappingSync: false,
      // Our transactions are explicit: there is nothing to gather, so nothing to wait for.
      eventTurnBatching: false,
    };
    return open<Buffer, number>(this.#path, options);
  }

  async #reopen(): Promise<void> {
    await this.#database.close();
    this.#database = this.#open();
  }

  /** After a failed transaction, begins again from what is on disk, and makes sure that it does not contain any of it. */
  async #recover(append: readonly LogEntry[], cause: unknown): Promise<void> {
    try {
      await this.#reopen();
      if (append.every((entry) => this.#database.get(entry.revision) === undefined)) return;
    } catch (error) {
      throw new StorageError(`cannot reopen ${this.#path}`, { fatal: true, cause: error });
    }
    throw new StorageError(`a commit to ${this.#path} failed by half`, { fatal: true, cause });
  }

  /**
   * Asked before every commit, which costs a few microseconds: LMDB sometimes takes the process down with it when a write
   * to a full disk fails.
   */
  #hasRoom(bytes: number): boolean {
    const { bavail, bsize } = statfsSync(this.#path);
    return bavail * bsize >= bytes;
  }

  #isOutOfSpace(cause: unknown, neededBytes: number): boolean {
    const code = typeof cause === 'object' && cause !== null && 'code' in cause ? cause.code : undefined;
    const { ENOSPC, EDQUOT, EFBIG, EIO } = constants.errno;
    if (code === MDB_MAP_FULL || code === ENOSPC || code === EDQUOT || code === EFBIG) return true;
    if (code !== EIO) return false;
    // LMDB calls a short write an I/O error, and that is how most full disks show themselves first.
    return !this.#hasRoom(2 * neededBytes);
  }
}

/** What a commit may write at most: its values, and every page on the way to what it adds and drops, each of them once. */
function roomFor(values: readonly Buffer[], dropped: number, fileBytes: () => number): number {
  const bytes = values.reduce((sum, value) => sum + value.length, 0);
  const dropBytes = dropped * PAGE_BYTES;
  const touched = dropped > MANY_DROPPED ? Math.min(dropBytes, fileBytes()) : dropBytes;
  return 2 * bytes + PAGES_ASIDE * PAGE_BYTES + touched;
}

/** LMDB trusts its file: it would take anything else for pages, and the process with it. An empty one is new. */
async function refuseDamaged(path: string): Promise<void> {
  const file = await openFile(path, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (file === undefined) return;
  try {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(MAGIC_OFFSET + MAGIC.length), 0, undefined, 0);
    if (bytesRead === 0 || buffer.subarray(MAGIC_OFFSET).equals(MAGIC)) return;
  } catch (error) {
    throw new StorageError(`${path} cannot be read: ${(error as Error).message}`, { fatal: true, cause: error });
  } finally {
    await file.close();
  }
  throw new StorageError(`${path} is damaged or not a database; restore it from a backup`, { fatal: true });
}

/** LMDB rejects with an error that only promises the reason. */
async function commitError(error: unknown): Promise<unknown> {
  if (typeof error !== 'object' || error === null || !('commitError' in error)) return error;
  try {
    await error.commitError;
  } catch (reason) {
    return reason;
  }
  return error;
}

/** A new file is only safe once its directory is, and so on up to the first that was there before. */
async function syncDirectories(path: string, last: string): Promise<void> {
  const handle = await openFile(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
  if (path !== last) await syncDirectories(dirname(path), last);
}
