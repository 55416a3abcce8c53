import { chmodSync, mkdirSync } from 'node:fs';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Env } from '../env/ports.ts';
import { realProcesses } from '../env/real-processes.ts';
import type { Client } from '../kube/client.ts';
import { LocalBootstrap } from './local-bootstrap.ts';
import { LocalNodes, nodeDirectories, nodesBelow } from './local-nodes.ts';

export interface StartNodesOptions {
  readonly count: number;
  /** The data directory of the cluster. */
  readonly directory: string;
  readonly logLevel: string;
  readonly env: Env;
  readonly print: (line: string) => void;
  /** Makes the token that nodes join with. */
  readonly admin: Client;
  /** An admin's, which says where the cluster is. */
  readonly kubeconfig: string;
}

const NODE_COUNT = 3;

/** As many nodes as this machine has had: a guest whose node is left out waits for it. */
export function usualNodeCount(directory: string): number {
  return Math.max(NODE_COUNT, nodeDirectories(directory).length);
}

/** Where volumes are that all nodes of this machine share. */
export const sharedPathOf = (directory: string): string => join(directory, 'shared');

/** Starts the nodes of this machine, each with its part of the memory. */
export async function startNodes(options: StartNodesOptions): Promise<LocalNodes> {
  const { count, directory, logLevel, env, print, admin, kubeconfig } = options;
  const below = nodesBelow(directory);
  const bootstrap = join(below, 'bootstrap-kubeconfig');
  const tokens = new LocalBootstrap({ env, client: admin, adminKubeconfig: kubeconfig, path: bootstrap });
  const renew = (): Promise<void> => tokens.renew(new AbortController().signal);
  if (count > 0) {
    mkdirSync(below, { recursive: true, mode: 0o711 });
    // Whatever the umask is: QEMU, which may be another user's, has to pass.
    chmodSync(below, 0o711);
    await renew();
  }
  const common = {
    'bootstrap-kubeconfig': bootstrap,
    images: join(directory, 'images'),
    shared: sharedPathOf(directory),
    memory: String(Math.floor(totalmem() / Math.max(1, count))),
    'log-level': logLevel,
  };
  const main = fileURLToPath(new URL('main.js', import.meta.url));
  const nodes = new LocalNodes({
    env,
    processes: realProcesses,
    directory,
    count,
    argumentsOf: (node) => [main, 'agent', ...asOptions({ name: node.name, 'data-dir': node.directory, ...common })],
    beforeStart: renew,
    print,
  });
  nodes.start();
  return nodes;
}

function asOptions(options: Readonly<Record<string, string>>): string[] {
  return Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
}
