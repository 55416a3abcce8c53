import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Clock } from '../env/ports.ts';
import { AGENT_ID_FILE, type Holder, synchronizationBelow } from './data-directory.ts';
import { STOP_GUESTS_TIMEOUT_MS } from './kept-process.ts';
import { nodeDirectories } from './local-nodes.ts';
import type { ProcessName } from './process-metrics.ts';
import { stopHolder } from './stop-holder.ts';

const NAMES: { readonly [name in ProcessName]: string } = {
  'control-plane': 'control plane',
  controllers: 'controllers',
  extension: 'extension',
  agent: 'agent',
  synchronization: 'synchronization controller',
};

export interface DownOptions {
  readonly dataDir: string;
  readonly stopVms?: boolean;
}

/** Stops the control plane of a data directory and the agents of its nodes, or whichever other process has it; returns once they are gone. */
export async function down(options: DownOptions, clock: Clock, print: (line: string) => void): Promise<void> {
  const directory = resolve(options.dataDir);
  const signal = options.stopVms ? 'SIGUSR2' : 'SIGTERM';
  const timeoutMs = options.stopVms ? STOP_GUESTS_TIMEOUT_MS : undefined;
  const holder = await stopHolder(directory, clock, signal, timeoutMs);
  // Agents outlive a control plane that was killed.
  const left = await Promise.all(
    nodeDirectories(directory).map((agent) => stopHolder(agent, clock, signal, timeoutMs)),
  );
  const synchronization = await stopHolder(synchronizationBelow(directory), clock);
  const agents = left.flatMap((it) => (it ? [it.pid] : []));
  if (holder) print(`Stopped the ${nameOf(holder, directory)} in ${directory} (process ${holder.pid}).`);
  if (agents.length > 0) print(`Stopped the agents of its nodes (processes ${agents.join(', ')}).`);
  if (synchronization) print(`Stopped its synchronization controller (process ${synchronization.pid}).`);
  if (!holder && !synchronization && agents.length === 0) print(`Nothing runs in ${directory}.`);
}

/** What a process is called that was stopped. One of an older version does not say, and is known by what it has left. */
function nameOf({ what }: Holder, directory: string): string {
  return NAMES[what ?? (existsSync(join(directory, AGENT_ID_FILE)) ? 'agent' : 'control-plane')];
}
