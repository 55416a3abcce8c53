import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants, open, readdir, readFile, stat } from 'node:fs/promises';
import { promisify } from 'node:util';
import type { ChildProcess, Processes, ProcessExit, ProcessIdentity, ProcessSpec } from './ports.ts';

const RUN_TIMEOUT_MS = 30_000;

/** A process that has ended and waits for its parent to notice runs no more. */
const ENDED = new Set(['Z', 'X', 'x']);

/**
 * What the kernel says of a process; undefined where it is gone. Any other failure, such as too many open files, says
 * nothing about the process: to take it for gone could start a second machine beside it.
 */
async function readOf(pid: number, file: 'stat' | 'cmdline'): Promise<string | undefined> {
  try {
    return await readFile(`/proc/${pid}/${file}`, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH') return undefined;
    throw error;
  }
}

/** The process with this number, as long as it runs. */
async function identify(pid: number): Promise<ProcessIdentity | undefined> {
  const stat = await readOf(pid, 'stat');
  if (stat === undefined) return undefined;
  // The second field is the name in brackets, which may contain anything; state is the third, the start the 22nd.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state = 'X', startedAt] = [fields[0], fields[19]];
  return startedAt === undefined || ENDED.has(state) ? undefined : { pid, startedAt };
}

async function hasArgument(pid: number, argument: string): Promise<boolean> {
  return (await readOf(pid, 'cmdline'))?.split('\0').includes(argument) ?? false;
}

/** Which directory this is: a path would not tell, as that of another container leads elsewhere. */
async function placeOf(path: string): Promise<string | undefined> {
  try {
    const { dev, ino } = await stat(path, { bigint: true });
    return `${dev} ${ino}`;
  } catch {
    // Whatever the reason is, nobody knows then, and that is what counts.
    return undefined;
  }
}

async function findByArgument(
  argument: string,
  directory?: string,
  pid?: number,
): Promise<ProcessIdentity | undefined> {
  const all = (await readdir('/proc')).filter((name) => /^[0-9]+$/.test(name)).map(Number);
  const sought = directory === undefined ? undefined : await placeOf(directory);
  /** Those of which nobody knows where they are: if there is one alone, it is the one, or the one has ended. */
  const doubtful: ProcessIdentity[] = [];
  for (const candidate of new Set(pid === undefined ? all : [pid, ...all])) {
    if (!(await hasArgument(candidate, argument))) continue;
    const place = directory === undefined ? undefined : await placeOf(`/proc/${candidate}/cwd`);
    const identity = await identify(candidate);
    if (!identity) continue;
    if (directory === undefined || (place !== undefined && place === sought)) return identity;
    if (place === undefined || sought === undefined) doubtful.push(identity);
  }
  if (doubtful.length > 1)
    throw new Error(`nothing tells which of processes ${doubtful.map((each) => each.pid).join(', ')} is the one`);
  return doubtful[0];
}

async function isRunning({ pid, startedAt }: ProcessIdentity): Promise<boolean> {
  return (await identify(pid))?.startedAt === startedAt;
}

async function spawnDetached({
  command,
  arguments: args,
  directory,
  outputPath,
  user,
}: ProcessSpec): Promise<ChildProcess> {
  const { O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_WRONLY } = constants;
  // Where it is another user's, the directory is, too: that user must not have us write elsewhere, nor wait for a reader.
  const guarded = user === undefined ? 0 : O_NOFOLLOW | O_NONBLOCK;
  const output = await open(outputPath, O_APPEND | O_CREAT | O_WRONLY | guarded, 0o600);
  try {
    if (user && !(await output.stat()).isFile()) throw new Error(`${outputPath} is no file to write output to`);
    const child = spawn(command, args, {
      cwd: directory,
      env: { PATH: process.env['PATH'] },
      stdio: ['ignore', output.fd, output.fd],
      detached: true,
      ...user,
    });
    const exited = new Promise<ProcessExit>((resolve) =>
      child.once('exit', (code, signal) => resolve({ code: code ?? undefined, signal: signal ?? undefined })),
    );
    await once(child, 'spawn');
    child.unref();
    const pid = child.pid ?? 0;
    // One that has ended already is still there for its parent, but has no need of an identity.
    return { identity: (await identify(pid)) ?? { pid, startedAt: 'ended' }, exited };
  } finally {
    await output.close();
  }
}

/** The processes of a Linux host. */
export const realProcesses: Processes = {
  isRoot: process.getuid?.() === 0,
  spawnDetached,
  findByArgument,
  isRunning,
  async run(command, args) {
    const { stdout } = await promisify(execFile)(command, [...args], { timeout: RUN_TIMEOUT_MS, encoding: 'utf8' });
    return stdout;
  },
  async kill(identity, signal) {
    if (!(await isRunning(identity))) return;
    try {
      process.kill(identity.pid, signal);
    } catch (error) {
      // It may have ended since.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  },
};
