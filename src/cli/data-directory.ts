import { createHash, randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { homeDirectory } from '../kube/kubeconfig-system.ts';
import type { ProcessName } from './process-metrics.ts';

/** A data directory and who holds it. One control plane per directory, whatever was killed before. */

/** Who holds a data directory. */
export interface Holder {
  readonly pid: number;
  /** The process' start time in clock ticks, which tells it from a later process of the same id. */
  readonly startTicks: string;
  readonly since: string;
  /** Which process of Godwit it is; unknown of those that older versions started. */
  readonly what?: ProcessName;
  /** Where it serves, once it does. */
  readonly url?: string;
}

export class DirectoryInUse extends Error {
  readonly holder: Holder;

  constructor(directory: string, holder: Holder) {
    super(
      `${directory} is in use by process ${holder.pid} (running since ${holder.since}${holder.url ? `, serving ${holder.url}` : ''}); stop it with 'godwit down --data-dir ${directory}' or choose another --data-dir`,
    );
    this.name = 'DirectoryInUse';
    this.holder = holder;
  }
}

/**
 * What is in a data directory is private by itself. QEMU does not run as root even where we do, and has to pass through
 * to what is its own.
 */
const MODE = process.getuid?.() === 0 ? 0o711 : 0o700;

/** Where data lives unless told otherwise. */
export function defaultDataDirectory(): string {
  return process.env['GODWIT_DATA_DIR'] ?? join(homeDirectory(process.env), '.godwit');
}

/** Where the synchronization controller of this machine has its directory. */
export const synchronizationBelow = (dataDirectory: string): string => join(dataDirectory, 'synchronization');

/** What the agent of a node has in its directory, and a control plane has not. */
export const AGENT_ID_FILE = 'agent-id';

/** When a process started; undefined when there is none, or nothing of it is left but a name that nobody has read yet. */
function startTicksOf(pid: number): string | undefined {
  try {
    // The second field is the command in parentheses and may itself contain spaces and parentheses.
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // A zombie holds nothing, unless one of its threads is still on its way out: that one may be writing.
    const isGone = state === 'Z' && readdirSync(`/proc/${pid}/task`).length <= 1;
    return isGone ? undefined : fields[18];
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // No such process: exactly what the caller wants to know. Whoever cannot look must not take it for gone.
    if (code === 'ENOENT' || code === 'ESRCH') return undefined;
    throw error;
  }
}

function lockPath(directory: string): string {
  return join(directory, 'lock');
}

/** The living holder of a directory, if it has one. */
export function holderOf(directory: string): Holder | undefined {
  return livingHolder(lockPath(directory));
}

/** Of whom a lock tells that still lives. */
function livingHolder(path: string): Holder | undefined {
  const word = wordOf(path);
  if (word === undefined) return undefined;
  let holder: Holder;
  try {
    holder = JSON.parse(word) as Holder;
  } catch {
    // A crash has left it half-written: nobody holds it. Locks appear whole, by link.
    return undefined;
  }
  return startTicksOf(holder.pid) === holder.startTicks ? holder : undefined;
}

const isOwn = (path: string): boolean => livingHolder(path)?.pid === process.pid;

/** The lock on a directory, until released. */
export class DirectoryLock {
  readonly #path: string;
  #holder: Holder;

  private constructor(path: string, holder: Holder) {
    this.#path = path;
    this.#holder = holder;
  }

  /** Creates the directory if need be and takes it. Throws DirectoryInUse. */
  static acquire(directoryName: string, nowMs: number, what: ProcessName): DirectoryLock {
    const directory = resolve(directoryName);
    makeDirectory(directory);
    chmodSync(directory, MODE);
    const path = lockPath(directory);
    const holder: Holder = {
      pid: process.pid,
      startTicks: startTicksOf(process.pid) ?? '',
      since: new Date(nowMs).toISOString(),
      what,
    };
    for (;;) {
      if (tryLink(path, holder)) return new DirectoryLock(path, holder);
      const word = wordOf(path);
      const other = livingHolder(path) ?? (word === undefined ? undefined : inherit(path, word, holder));
      if (other === holder) return new DirectoryLock(path, holder);
      if (other) throw new DirectoryInUse(directory, other);
    }
  }

  /** Tells where the control plane serves; `godwit down` and a refused second start show it. */
  announce(url: string): void {
    this.#holder = { ...this.#holder, url };
    replaceWord(this.#path, this.#holder);
  }

  release(): void {
    if (isOwn(this.#path)) rmSync(this.#path, { force: true });
  }
}

/** Like mkdir -p. Node's own recursion never ends where a file system says ENOENT to everything, as /proc does. */
function makeDirectory(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST' && statSync(path).isDirectory()) return;
    const parent = dirname(path);
    if (code !== 'ENOENT' || existsSync(parent) || parent === path) throw error;
    makeDirectory(parent);
    mkdirSync(path, { mode: 0o700 });
  }
}

function suffix(): string {
  return randomBytes(6).toString('hex');
}

function tryLink(path: string, holder: Holder): boolean {
  const temporary = `${path}.${suffix()}`;
  try {
    writeFileSync(temporary, JSON.stringify(holder), { mode: 0o600 });
    linkSync(temporary, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(temporary, { force: true });
  }
}

/**
 * Puts a starter in the place of a dead holder, of whom the lock still says this word. Only one may at a time: who has claimed that word. A
 * lock is never taken away, so that nobody else finds none meanwhile; nor is a claim but by who has it, which is who lives and made it, or
 * has inherited it likewise. The words of the dead do not come back: who is late finds another one, and looks anew. Answers who holds it then, or is about to; undefined where that has to
 * be looked at anew.
 */
export function inherit(path: string, word: string, holder: Holder): Holder | undefined {
  const claim = `${path}.${createHash('sha256').update(word).digest('hex').slice(0, 16)}`;
  if (!tryLink(claim, holder)) {
    const claimed = wordOf(claim);
    // A dead heir's claim is itself inherited: who is late would take away the claim of another one who lives.
    const heir = livingHolder(claim) ?? (claimed === undefined ? undefined : inherit(claim, claimed, holder));
    if (heir !== holder) return heir;
  }
  try {
    // Another one may have been faster, and be done.
    if (wordOf(path) !== word) return undefined;
    replaceWord(path, holder);
    return holder;
  } finally {
    rmSync(claim, { force: true });
  }
}

/** What a lock says; undefined where there is none. */
function wordOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function replaceWord(path: string, holder: Holder): void {
  const temporary = `${path}.${suffix()}`;
  writeFileSync(temporary, JSON.stringify(holder), { mode: 0o600 });
  renameSync(temporary, path);
}
