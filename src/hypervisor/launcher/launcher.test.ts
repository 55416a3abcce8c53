import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ProcessExit, Processes, ProcessIdentity, ProcessSpec } from '../../env/ports.ts';
import { realConnector } from '../../env/real-connector.ts';
import { realClock } from '../../env/real.ts';
import { silentLogger } from '../../env/test.ts';
import { SANDBOX } from '../qemu/command-line.ts';
import { endLauncher, LauncherProcesses } from './launcher-processes.ts';
import { Launcher } from './launcher.ts';
import type { LauncherEnd } from './wire.ts';

/** A launcher and its agent, on a real socket, and processes that only say they run. */

let directory: string;
let path: string;
let started: ProcessSpec[];
let exit: (exit: ProcessExit) => void;
let failure: Error | undefined;
/** What the host shows of the process. */
let seen: ProcessIdentity | undefined;
let killed: string[];
let launcher: Launcher;
let ended: Promise<LauncherEnd>;
let isOver: boolean;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'godwit-launcher-'));
  path = join(directory, 'pod.sock');
  [started, failure, seen, killed] = [[], undefined, { pid: 4711, startedAt: '1' }, []];
  launcher = new Launcher({
    log: silentLogger,
    path,
    program: 'qemu',
    directory: '/runs/a',
    processes: {
      spawnDetached: async (spec) => {
        if (failure) throw failure;
        started.push(spec);
        return { identity: { pid: 7, startedAt: '1' }, exited: new Promise((resolve) => (exit = resolve)) };
      },
    },
  });
  isOver = false;
  ended = launcher.run().finally(() => (isOver = true));
});
afterEach(async () => {
  exit?.({ code: 0, signal: undefined });
  // It may just have begun to listen, or be about to hear that its machine has ended.
  await expect.poll(() => (launcher.terminate(), isOver), PATIENCE).toBe(true);
  rmSync(directory, { recursive: true, force: true });
});

function agent(socket = path): LauncherProcesses {
  const host = {
    findByArgument: async () => seen,
    isRunning: async () => seen !== undefined,
    kill: async ({ pid }) => void killed.push(String(pid)),
  } as Pick<Processes, 'findByArgument' | 'isRunning' | 'kill'> as Processes;
  return new LauncherProcesses({ clock: realClock, connector: realConnector, processes: host, socketOf: () => socket });
}

const SPEC: ProcessSpec = {
  command: 'another program',
  arguments: ['-sandbox', SANDBOX, '-chardev', 'null,id=instance-a'],
  directory: '/runs/a',
  outputPath: '/runs/a/qemu.log',
  user: { uid: 107, gid: 107 },
  mark: 'null,id=instance-a',
};
const PATIENCE = { timeout: 30_000 };
const isDone = (): boolean => true;
const isNot = (): boolean => false;
const end = (exitCode: number, message: string): Promise<void> =>
  endLauncher(realConnector, realClock, path, { exitCode, message });

describe('a launcher', () => {
  it('starts what it is told to, as itself, and tells how it ended', async () => {
    const { identity, exited } = await agent().spawnDetached(SPEC);
    const { mark: _, ...told } = SPEC;
    // It has a program of its own.
    expect(started).toEqual([{ ...told, command: 'qemu', user: undefined }]);
    // By the number that it has outside of its pod.
    expect(identity).toEqual(seen);
    exit({ code: 1, signal: undefined });
    expect(await exited).toEqual({ code: 1, signal: undefined });
    // A pod has one machine in its life.
    await expect(agent().spawnDetached(SPEC)).rejects.toThrow('a machine ran here');
  });

  it('tells how it ended to agents that come later, too', async () => {
    const unknown = { code: undefined, signal: undefined };
    await expect.poll(() => existsSync(path), PATIENCE).toBe(true);
    expect(await agent().watch('/runs/a')).toEqual(unknown);
    await agent().spawnDetached(SPEC);
    const meanwhile = agent().watch('/runs/a');
    exit({ code: undefined, signal: 'SIGKILL' });
    expect(await meanwhile).toEqual({ code: undefined, signal: 'SIGKILL' });
    expect(await agent().watch('/runs/a')).toEqual({ code: undefined, signal: 'SIGKILL' });
    expect(await agent(join(directory, 'gone.sock')).watch('/runs/a')).toEqual(unknown);
  });

  it('stays while a machine runs, whatever it is told, and ends as its agent says', async () => {
    await agent().spawnDetached(SPEC);
    launcher.terminate();
    // Whoever looks after it finds this.
    await expect.poll(() => existsSync(`${path}.ending`), PATIENCE).toBe(true);
    await expect(end(0, '')).rejects.toThrow('a machine runs here');
    await expect(agent().spawnDetached(SPEC)).rejects.toThrow('a machine runs here');
    exit({ code: undefined, signal: 'SIGKILL' });
    await expect.poll(() => end(1, 'killed').then(isDone, isNot), PATIENCE).toBe(true);
    expect(await ended).toEqual({ exitCode: 1, message: 'killed' });
  });

  it('without a machine ends with its pod', async () => {
    launcher.terminate();
    expect(await ended).toMatchObject({ exitCode: 0 });
  });

  it('says why nothing was started', async () => {
    const strange = { ...SPEC, arguments: [...SPEC.arguments, '-plugin', 'file=a.so'] };
    await expect(agent().spawnDetached(strange)).rejects.toThrow('QEMU is not started with -plugin');
    failure = new Error('no such program');
    await expect(agent().spawnDetached(SPEC)).rejects.toThrow('no such program');
    // What is seen was there before.
    expect(killed).toEqual([]);
  });

  it('that goes without an answer leaves nothing that runs', async () => {
    const gone = join(directory, 'gone.sock');
    const server = createServer((socket) => socket.once('data', () => socket.destroy())).listen(gone);
    await expect(agent(gone).spawnDetached(SPEC)).rejects.toThrow('its launcher has ended');
    expect(killed).toEqual(['4711']);
    server.close();
  });

  it('tells of a process that ended before anybody saw it', async () => {
    seen = undefined;
    const spawning = agent().spawnDetached(SPEC);
    await expect.poll(() => started.length, PATIENCE).toBe(1);
    exit({ code: 1, signal: undefined });
    const { identity, exited } = await spawning;
    expect(identity.startedAt).toBe('ended');
    expect(await exited).toEqual({ code: 1, signal: undefined });
  });
});
