import type { Writable } from 'node:stream';
import type { Env } from '../env/ports.ts';
import { drained } from '../kube/drained.ts';
import { virtualMachineInstances, virtualMachines } from '../kube/kubevirt-resources.ts';
import {
  ask,
  type ClusterConnection,
  type ClusterOptions,
  subresourcePath,
  withCluster,
} from './cluster-connection.ts';
import { UserError } from './failure.ts';

/** `godwit logs`: what a machine has said on its serial port, wherever it ran. */

export interface LogsOptions extends ClusterOptions {
  readonly follow?: boolean;
  /** Lines from the end; all of them where undefined. */
  readonly tail?: number;
}

/** Writes the log; with `follow`, until the guest ends. */
export async function machineLogs(name: string, options: LogsOptions, env: Env, output: Writable): Promise<void> {
  await withCluster(options, env, async (connection) => {
    const query = new URLSearchParams({
      ...(options.follow ? { follow: 'true' } : {}),
      ...(options.tail === undefined ? {} : { tailLines: String(options.tail) }),
    }).toString();
    const path = subresourcePath(connection.namespace, 'virtualmachineinstances', name, 'log');
    const target = query === '' ? path : `${path}?${query}`;
    let isEmpty = true;
    const { body } = await ask(connection, 'GET', target, { signal: new AbortController().signal });
    for await (const piece of body) {
      isEmpty = false;
      if (!output.write(piece)) await drained(output);
    }
    // Nothing may mean that nothing was said, or that nobody was meant.
    if (isEmpty) await mustExist(connection, name);
  });
}

async function mustExist({ client, namespace }: ClusterConnection, name: string): Promise<void> {
  const { signal } = new AbortController();
  if (await client.find(virtualMachines, namespace, name, signal)) return;
  if (await client.find(virtualMachineInstances, namespace, name, signal)) return;
  throw new UserError(
    `there is no virtual machine ${name} in namespace ${namespace}, and no node has a log of one; 'kubectl get vm -A' lists all there are`,
  );
}
