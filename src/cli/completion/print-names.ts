import { nodes } from '../../cluster/resources.ts';
import type { Env } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import {
  virtualMachineInstanceMigrations,
  virtualMachineInstances,
  virtualMachines,
} from '../../kube/kubevirt-resources.ts';
import type { Resource } from '../../kube/resource.ts';
import { withinTime } from '../../kube/time-limit.ts';
import { withCluster } from '../cluster-connection.ts';
import type { CommandNode, NamedKind } from './command-tree.ts';
import { offered, wantedNames } from './names.ts';

/** Whoever has pressed a key waits no longer than that. */
const PATIENCE_MS = 2000;

/** Of all of them nothing but their names is wanted. */
const RESOURCES: { readonly [kind in NamedKind]: Resource } = {
  vm: virtualMachines as Resource,
  vmi: virtualMachineInstances as Resource,
  migration: virtualMachineInstanceMigrations as Resource,
  node: nodes as Resource,
};

/**
 * Prints the names of what the cluster has that could follow these words, one a line. Where there is no cluster, or it does not
 * answer, there are none: a shell that completes has nowhere to say why.
 */
export async function printNames(
  root: CommandNode,
  typed: readonly string[],
  env: Env,
  print: (line: string) => void,
): Promise<void> {
  const wanted = wantedNames(root, typed);
  if (!wanted) return;
  try {
    await withCluster(wanted.cluster, env, ({ client, namespace }) =>
      withinTime(env.clock, PATIENCE_MS, new AbortController().signal, async (signal) => {
        const names = await Promise.all(wanted.kinds.map((kind) => namesOf(client, kind, namespace, signal)));
        for (const name of offered(names.flat())) print(name);
      }),
    );
  } catch {
    // Nothing to offer.
  }
}

async function namesOf(client: Client, kind: NamedKind, namespace: string, signal: AbortSignal): Promise<string[]> {
  const resource = RESOURCES[kind];
  const { items } = await client.list(resource, resource.namespaced ? { namespace } : {}, signal);
  return items.map(({ metadata }) => metadata.name ?? '');
}
