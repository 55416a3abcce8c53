import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Env, Processes } from '../env/ports.ts';
import { KeptProcess } from './kept-process.ts';
import type { StopSignal } from './stop-holder.ts';

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
  readonly #agents: readonly KeptProcess[];

  constructor(options: LocalNodesOptions) {
    const { env, processes, directory, count, argumentsOf, beforeStart, print } = options;
    this.#agents = Array.from({ length: count }, (_, index) => {
      const name = `node-${index + 1}`;
      const node = { name, directory: join(nodesBelow(directory), name) };
      return new KeptProcess({
        env,
        processes,
        print,
        title: `The agent of ${name}`,
        directory: node.directory,
        outputFile: 'agent.log',
        argumentsNow: () => argumentsOf(node),
        // One that has joined before needs nothing for it, and one that has not says so itself.
        beforeStart: () =>
          beforeStart().catch((error: unknown) =>
            print(`The nodes of this machine cannot be given a new token: ${(error as Error).message}`),
          ),
      });
    });
  }

  /** Starts the agents, and goes on starting them as often as they end. */
  start(): void {
    for (const agent of this.#agents) agent.start();
  }

  /** Ends the agents; with `SIGUSR2`, once they have shut their guests down. */
  async stop(signal: StopSignal): Promise<void> {
    await Promise.all(this.#agents.map((agent) => agent.stop(signal)));
  }
}
