import type { Env } from '../env/ports.ts';
import { virtualMachineInstances } from '../kube/kubevirt-resources.ts';
import { apiFailure } from './api-failure.ts';
import { type ClusterConnection, type ClusterOptions, subresourcePath, withCluster } from './cluster-connection.ts';
import { UserError } from './failure.ts';
import { dryRunOf, put } from './machine-power.ts';
import { withRemedy } from './power-remedies.ts';

/** `godwit evacuate-cancel`: what virtctl does by the same name, and for a whole node what it only speaks of. */

export interface EvacuateCancelOptions extends ClusterOptions {
  readonly dryRun?: boolean;
}

type Print = (line: string) => void;
type Kind = 'vm' | 'vmi' | 'node';

const KINDS: ReadonlyMap<string, Kind> = new Map([
  ...(['vm', 'vms', 'virtualmachine', 'virtualmachines'] as const).map((word): [string, Kind] => [word, 'vm']),
  ...(['vmi', 'vmis', 'virtualmachineinstance', 'virtualmachineinstances'] as const).map((word): [string, Kind] => [
    word,
    'vmi',
  ]),
  ...(['node', 'nodes', 'no'] as const).map((word): [string, Kind] => [word, 'node']),
]);

/** Lets a machine, a guest, or all guests of a node stay that have to leave their node. */
export async function cancelEvacuation(
  words: readonly string[],
  options: EvacuateCancelOptions,
  env: Env,
  print: Print,
): Promise<void> {
  const [kindWord = '', name = ''] = words.length === 1 ? ['vm', words[0]] : words;
  const kind = KINDS.get(kindWord.toLowerCase());
  if (kind === undefined)
    throw new UserError(
      `${JSON.stringify(kindWord)} is none of vm, vmi and node; give one of them, or the name of a VM alone`,
      { exitCode: 2 },
    );
  await withCluster(options, env, async (connection) => {
    const body = dryRunOf(options, print);
    if (kind === 'node') return emptyingOf(connection, name, body, print);
    const { namespace } = connection;
    const resource = kind === 'vm' ? 'virtualmachines' : 'virtualmachineinstances';
    await put(connection, subresourcePath(namespace, resource, name, 'evacuate/cancel'), body).catch(
      (error: unknown) => {
        throw withRemedy(error, name);
      },
    );
    print(`${kind.toUpperCase()} ${namespace}/${name} was canceled evacuation`);
  });
}

/** All guests that are marked for the node. One that cannot stay keeps none of the others from it. */
async function emptyingOf(connection: ClusterConnection, node: string, body: object, print: Print): Promise<void> {
  const { items } = await connection.client.list(virtualMachineInstances, {}, new AbortController().signal);
  const marked = items.filter(({ status }) => status?.evacuationNodeName === node);
  const failures: string[] = [];
  for (const { metadata } of marked) {
    const { namespace = '', name = '' } = metadata;
    const path = subresourcePath(namespace, 'virtualmachineinstances', name, 'evacuate/cancel');
    try {
      await put(connection, path, { ...body, evacuationNodeName: node });
      print(`VMI ${namespace}/${name} was canceled evacuation`);
    } catch (error) {
      const told = apiFailure(withRemedy(error, name), connection.access.server);
      failures.push(`VMI ${namespace}/${name}: ${(told as Error).message}`);
    }
  }
  if (failures.length > 0) throw new UserError(failures.join('\n'));
  if (marked.length === 0) print(`Found no VMI that has to leave node ${node}`);
}
