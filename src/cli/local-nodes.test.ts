import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ChildProcess, ProcessExit, Processes } from '../env/ports.ts';
import { testEnv } from '../env/test.ts';
import { LocalNodes } from './local-nodes.ts';

/** Processes that only say that they run. */
class FakeProcesses {
  readonly started: string[] = [];
  readonly killed: number[] = [];
  /** Ends the one that was started last. */
  end: (exit: ProcessExit) => void = () => undefined;
  /** What a start has to wait for. */
  gate: Promise<void> = Promise.resolve();

  readonly port = {
    spawnDetached: async ({ arguments: args }): Promise<ChildProcess> => {
      this.started.push(args.join(' '));
      await this.gate;
      const exited = new Promise<ProcessExit>((resolve) => (this.end = resolve));
      return { identity: { pid: this.started.length, startedAt: 'x' }, exited };
    },
    kill: async ({ pid }) => void this.killed.push(pid),
  } as Pick<Processes, 'spawnDetached' | 'kill'> as Processes;
}

let directory = '';
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'godwit-test-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

function nodes(
  processes: FakeProcesses,
  print: (line: string) => void = () => undefined,
  beforeStart: () => Promise<void> = () => Promise.resolve(),
  env = testEnv(),
): LocalNodes {
  return new LocalNodes({
    env,
    processes: processes.port,
    directory,
    count: 1,
    argumentsOf: ({ name }) => ['agent', name],
    beforeStart,
    print,
  });
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('the nodes of a machine', () => {
  it('have one agent each, which is killed when it has not come far enough to be told', async () => {
    const processes = new FakeProcesses();
    const local = nodes(processes);
    local.start();
    await turn();
    expect(processes.started).toEqual(['agent node-1']);
    await local.stop('SIGTERM');
    expect(processes.killed).toEqual([1]);
  });

  it('stop also when that is wanted while an agent is being started', async () => {
    const processes = new FakeProcesses();
    let open = (): void => undefined;
    processes.gate = new Promise((resolve) => (open = resolve));
    const local = nodes(processes);
    local.start();
    await turn();
    const stopped = local.stop('SIGTERM');
    open();
    await stopped;
    expect(processes.killed).toEqual([1]);
  });

  it('are started also where there is no new token to be had: they may need none', async () => {
    const processes = new FakeProcesses();
    const lines: string[] = [];
    const local = nodes(
      processes,
      (line) => lines.push(line),
      () => Promise.reject(new Error('no')),
    );
    local.start();
    await turn();
    expect(processes.started).toEqual(['agent node-1']);
    expect(lines).toEqual(['The nodes of this machine cannot be given a new token: no']);
    await local.stop('SIGTERM');
  });

  it('say when an agent has ended, and how', async () => {
    const processes = new FakeProcesses();
    const lines: string[] = [];
    const local = nodes(processes, (line) => lines.push(line));
    local.start();
    await turn();
    processes.end({ code: undefined, signal: 'SIGKILL' });
    await turn();
    expect(lines).toEqual([
      `The agent of node-1 has ended (SIGKILL); see ${directory}/nodes/node-1/agent.log. It is started again.`,
    ]);
    await local.stop('SIGTERM');
  });

  it('are started again as often as it takes, and nothing piles up meanwhile', async () => {
    const warnings: Error[] = [];
    const warn = (warning: Error): void => void warnings.push(warning);
    process.on('warning', warn);
    const processes = new FakeProcesses();
    const env = testEnv();
    const local = nodes(processes, undefined, undefined, env);
    local.start();
    for (let times = 0; times < 15; times++) {
      await turn();
      processes.end({ code: 1, signal: undefined });
      await turn();
      env.clock.advance(30_000);
    }
    await turn();
    process.off('warning', warn);
    expect(processes.started).toHaveLength(16);
    expect(warnings).toEqual([]);
    await local.stop('SIGTERM');
  });
});
