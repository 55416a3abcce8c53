import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type ChildProcess, type Env, type ProcessIdentity, type Processes, sleep } from '../env/ports.ts';
import { holderOf } from './data-directory.ts';
import { stopHolder, type StopSignal } from './stop-holder.ts';

export interface LocalNodesOptions {
  readonly env: Env;
  readonly processes: Processes;
  /** Below it each node has a directory of its own. */
  readonly directory: string;
  readonly count: number;
  /** What an agent is started with, besides its name and its directory. */
  readonly argumentsOf: (node: LocalNode) => readonly string[];
  /** Makes sure, whenever an agent is started, that it can join. */
  readonly beforeStart: () => Promise<void>;
  readonly print: (line: string) => void;
}

export interface LocalNode {
  readonly name: string;
  readonly directory: string;
}

/** How soon an agent that ended is started again: sooner at first, and as soon as at first once one has held out. */
const RESTART_MS_MIN = 500;
const RESTART_MS_MAX = 30_000;
const HELD_OUT_MS = 60_000;
/** How long an agent may take until it can be told anything. */
const START_TIMEOUT_MS = 10_000;
const POLL_MS = 50;
/** The longest that guests may take to shut down, if their own grace periods allow it. */
export const STOP_GUESTS_TIMEOUT_MS = 600_000;

/** Where the nodes of this machine have their directories. */
export const nodesBelow = (dataDirectory: string): string => join(dataDirectory, 'nodes');

/** The directories of the nodes that this machine has had, whether or not their agents run. */
export function nodeDirectories(dataDirectory: string): string[] {
  const below = nodesBelow(dataDirectory);
  if (!existsSync(below)) return [];
  return readdirSync(below, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => join(below, name));
}

/**
 * The nodes that `godwit up` has on this machine: one agent each, in a process that outlives this one. An agent that is
 * still there from before is replaced: it may be of an older version, and its guests do not notice.
 */
export class LocalNodes {
  readonly #options: LocalNodesOptions;
  readonly #stopping = new AbortController();
  readonly #agents: Promise<void>[] = [];
  readonly #nodes: readonly LocalNode[];
  readonly #running = new Map<string, ProcessIdentity>();

  constructor(options: LocalNodesOptions) {
    this.#options = options;
    this.#nodes = Array.from({ length: options.count }, (_, index) => {
      const name = `node-${index + 1}`;
      return { name, directory: join(nodesBelow(options.directory), name) };
    });
  }

  /** Starts the agents, and goes on starting them as often as they end. */
  start(): void {
    for (const node of this.#nodes) this.#agents.push(this.#keep(node));
  }

  /** Ends the agents; with `SIGUSR2`, once they have shut their guests down. */
  async stop(signal: StopSignal): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#agents);
    await Promise.all(this.#nodes.map((node) => this.#stop(node, signal)));
    // One that was only just started may not have had its directory yet.
    for (const identity of this.#running.values()) await this.#options.processes.kill(identity, 'SIGTERM');
  }

  async #stop(node: LocalNode, signal: StopSignal): Promise<void> {
    const { clock } = this.#options.env;
    if (signal === 'SIGTERM') return void (await stopHolder(node.directory, clock));
    // Nobody but an agent shuts guests down: one that is about to start, or was to be started again, is waited for.
    if (!holderOf(node.directory) && !this.#running.has(node.name)) await this.#spawn(node);
    for (const startedMs = clock.now(); clock.now() - startedMs < START_TIMEOUT_MS; await sleep(clock, POLL_MS))
      if (holderOf(node.directory)) break;
    await stopHolder(node.directory, clock, signal, STOP_GUESTS_TIMEOUT_MS);
  }

  async #keep(node: LocalNode): Promise<void> {
    const { env, print } = this.#options;
    const { signal } = this.#stopping;
    for (let delayMs = RESTART_MS_MIN; !signal.aborted; delayMs = Math.min(delayMs * 2, RESTART_MS_MAX)) {
      const startedMs = env.clock.now();
      try {
        await this.#runOnce(node);
      } catch (error) {
        print(`The agent of ${node.name} cannot be started: ${(error as Error).message}`);
      }
      if (env.clock.now() - startedMs > HELD_OUT_MS) delayMs = RESTART_MS_MIN;
      await sleep(env.clock, delayMs, signal);
    }
  }

  /** Resolves when the agent has ended, or when it is to be left alone. */
  async #runOnce(node: LocalNode): Promise<void> {
    const { env, print } = this.#options;
    const { signal } = this.#stopping;
    await stopHolder(node.directory, env.clock);
    if (signal.aborted) return;
    const { child, outputPath } = await this.#spawn(node);
    const stopped = new Promise<undefined>((resolve) => {
      signal.addEventListener('abort', () => resolve(undefined));
      // It may have been told to stop while the agent was being started.
      if (signal.aborted) resolve(undefined);
    });
    const exit = await Promise.race([child.exited, stopped]);
    if (!exit) return;
    this.#running.delete(node.name);
    print(`The agent of ${node.name} has ended (${exit.signal ?? exit.code}); see ${outputPath}. It is started again.`);
  }

  async #spawn(node: LocalNode): Promise<{ readonly child: ChildProcess; readonly outputPath: string }> {
    const { processes, argumentsOf, beforeStart, print } = this.#options;
    try {
      await beforeStart();
    } catch (error) {
      // One that has joined before needs nothing for it, and one that has not says so itself.
      print(`The nodes of this machine cannot be given a new token: ${(error as Error).message}`);
    }
    mkdirSync(node.directory, { recursive: true, mode: 0o711 });
    const outputPath = join(node.directory, 'agent.log');
    const child = await processes.spawnDetached({
      command: process.execPath,
      arguments: argumentsOf(node),
      directory: node.directory,
      outputPath,
      user: undefined,
    });
    this.#running.set(node.name, child.identity);
    return { child, outputPath };
  }
}
