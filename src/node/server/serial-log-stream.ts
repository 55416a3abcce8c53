import { constants, type FileHandle, lstat, open } from 'node:fs/promises';
import { expired } from '../../api/status.ts';
import { type Clock, sleep } from '../../env/ports.ts';
import type { SerialLog } from '../guests/guest-access.ts';

export interface LogOptions {
  /** Whether to wait for more, until none can come. */
  readonly follow: boolean;
  /** How many of the last lines to begin with; all where undefined. */
  readonly tailLines: number | undefined;
  /** After how many bytes to end. */
  readonly limitBytes: number | undefined;
  /** Whether to leave a last line as it is that has not ended; else it is ended, so that another can follow. */
  readonly isVerbatim: boolean;
  /** At which byte of the first file to begin; not together with lines from the end. */
  readonly offset?: number | undefined;
}

/** Which files there are, oldest first; asked again while following. */
export type LogSource = () => Promise<readonly SerialLog[]>;

/** What is read, and handed on, at once. */
const CHUNK_BYTES = 64 * 1024;
/** How soon a line is seen that somebody waits for. */
const POLL_MS = 200;
/** How often somebody who waits learns of new files, and that no more comes of one. */
const REFRESH_POLLS = 5;
const NEWLINE = 10;

/**
 * What serial ports have said, file by file, each run beginning on a line of its own. Reads no faster than it is asked to,
 * and no more than was there at the beginning unless it follows. While following, a file that was cut short is read
 * from its new beginning, one that was replaced gives way to its successor, and new files are taken up as they come.
 */
export async function* streamLogs(
  source: LogSource,
  options: LogOptions,
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  let left = options.limitBytes ?? Number.POSITIVE_INFINITY;
  let endsLine = true;
  for await (const piece of pieces(source, options, clock, signal)) {
    if (piece === 'end of run' && (endsLine || options.isVerbatim)) continue;
    const bytes: Uint8Array = piece === 'end of run' ? Uint8Array.of(NEWLINE) : piece;
    const allowed = bytes.subarray(0, Math.min(bytes.length, left));
    endsLine = bytes.at(-1) === NEWLINE;
    left -= allowed.length;
    if (allowed.length > 0) yield allowed;
    if (left <= 0 || signal.aborted) return;
  }
}

/**
 * The same options, with the byte to begin at where that says something: verbatim, of a log that is one file. Throws 410
 * where there is no such byte any more.
 */
export async function withOffset(logs: readonly SerialLog[], options: LogOptions): Promise<LogOptions> {
  const { isVerbatim, tailLines, offset } = options;
  const [log] = logs;
  const isOne = isVerbatim && logs.length === 1 && log !== undefined;
  if (offset !== undefined) {
    if (!isOne || offset > (await sizeOf(log.path))) throw expired('the log has begun anew');
    return options;
  }
  if (!isOne) return options;
  const start = tailLines === undefined ? 0 : (await tailStart(logs, tailLines)).offset;
  return { ...options, tailLines: undefined, offset: start };
}

/** The bytes, and where one run ends and the next begins. */
async function* pieces(
  source: LogSource,
  { follow, tailLines, offset: begin = 0 }: LogOptions,
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array | 'end of run'> {
  let logs = await source();
  const start = tailLines === undefined ? { index: 0, offset: begin } : await tailStart(logs, tailLines);
  const seen = new Set<string>();
  let offset = start.offset;
  for (let queue = logs.slice(start.index); queue.length > 0 && !signal.aborted; ) {
    const [log] = queue as [SerialLog];
    seen.add(log.path);
    const file = new FollowedFile(log.path, offset);
    offset = 0;
    try {
      yield* file.rest();
      if (follow) {
        for (let polls = 1, isLive = log.isLive; isLive && !signal.aborted; polls++) {
          await sleep(clock, POLL_MS, signal);
          if (polls % REFRESH_POLLS === 0) {
            logs = await source();
            isLive = isGrowing(logs, log.path);
          }
          // Also after the last of it is known to be there.
          yield* file.news();
        }
        logs = await source();
      }
    } finally {
      await file.close();
    }
    // What turns up before what was read is no news: the rest of a log that has begun anew.
    queue = follow ? logs.slice(logs.findLastIndex(({ path }) => seen.has(path)) + 1) : queue.slice(1);
    // The rest of a log that has begun anew goes on where it was cut.
    if (queue[0]?.podUID !== log.podUID) yield 'end of run';
  }
}

/** More may come of a file as long as it is live and the newest. */
function isGrowing(logs: readonly SerialLog[], path: string): boolean {
  const newest = logs.at(-1);
  return newest?.path === path && newest.isLive;
}

/** One file, read from somewhere on. */
class FollowedFile {
  readonly #path: string;
  #offset: number;
  #handle: FileHandle | undefined;

  constructor(path: string, offset: number) {
    this.#path = path;
    this.#offset = offset;
  }

  /** What is there now. */
  async *rest(): AsyncGenerator<Uint8Array> {
    this.#handle ??= await openIfThere(this.#path);
    if (!this.#handle) return;
    const { size } = await this.#handle.stat();
    while (this.#offset < size) {
      const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, size - this.#offset));
      const { bytesRead } = await this.#handle.read(buffer, 0, buffer.length, this.#offset);
      if (bytesRead === 0) return;
      this.#offset += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  }

  /** What has come since, whatever happened to the file meanwhile. */
  async *news(): AsyncGenerator<Uint8Array> {
    const handle = this.#handle;
    if (handle) {
      const { size, ino, dev } = await handle.stat();
      if (size < this.#offset) this.#offset = 0;
      // In this order: what was said before its successor came is read before it.
      const named = await statIfThere(this.#path);
      yield* this.rest();
      if (named && (named.ino !== ino || named.dev !== dev)) {
        await handle.close();
        this.#handle = undefined;
        this.#offset = 0;
      }
    }
    yield* this.rest();
  }

  async close(): Promise<void> {
    await this.#handle?.close();
    this.#handle = undefined;
  }
}

/** Where the last lines begin, over all files. */
async function tailStart(
  logs: readonly SerialLog[],
  tailLines: number,
): Promise<{ readonly index: number; readonly offset: number }> {
  let wanted = tailLines;
  let start: { readonly index: number; readonly offset: number } | undefined;
  /** The run of what comes next. */
  let nextRun: string | undefined;
  for (const [index, { path, podUID }] of [...logs.entries()].toReversed()) {
    const handle = await openIfThere(path);
    try {
      if (!handle || (await handle.stat()).size === 0) {
        // A line may go on after it, but not where runs change.
        if (nextRun !== podUID) nextRun = undefined;
        continue;
      }
      // A line that goes on in the next file of the same run was counted there.
      if (nextRun === podUID && !(await endsLine(handle))) wanted++;
      if (start && wanted === 0) return start;
      const { offset, lines } = await lastLines(handle, wanted);
      if (lines > 0) nextRun = podUID;
      wanted -= lines;
      start = { index, offset };
      if (offset > 0) return start;
    } finally {
      await handle?.close();
    }
  }
  return start ?? { index: 0, offset: 0 };
}

async function sizeOf(path: string): Promise<number> {
  const handle = await openIfThere(path);
  try {
    return (await handle?.stat())?.size ?? 0;
  } finally {
    await handle?.close();
  }
}

async function endsLine(handle: FileHandle): Promise<boolean> {
  const { size } = await handle.stat();
  const { buffer } = await handle.read(Buffer.allocUnsafe(1), 0, 1, size - 1);
  return buffer[0] === NEWLINE;
}

/** Where the last `wanted` lines of a file that is not empty begin, or all of it, and how many they are. */
async function lastLines(
  handle: FileHandle,
  wanted: number,
): Promise<{ readonly offset: number; readonly lines: number }> {
  const { size } = await handle.stat();
  if (wanted === 0) return { offset: size, lines: 0 };
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  let lines = 1;
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - CHUNK_BYTES);
    const { bytesRead } = await handle.read(buffer, 0, end - start, start);
    for (let at = bytesRead - 1; at >= 0; at--) {
      // The one at the very end begins no line.
      if (buffer[at] !== NEWLINE || start + at === size - 1) continue;
      if (lines === wanted) return { offset: start + at + 1, lines };
      lines++;
    }
    end = start;
  }
  return { offset: 0, lines };
}

async function openIfThere(path: string): Promise<FileHandle | undefined> {
  let handle: FileHandle;
  try {
    // The machine may write to this directory, and must not have us read what is elsewhere, nor wait for what never comes.
    handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    // Not yet, or not any more; or a link, which is no log.
    if (['ENOENT', 'ELOOP', 'ENXIO'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
  if ((await handle.stat()).isFile()) return handle;
  await handle.close();
  return undefined;
}

async function statIfThere(path: string): Promise<{ readonly ino: number; readonly dev: number } | undefined> {
  try {
    return await lstat(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
