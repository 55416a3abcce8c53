import { probe, virtualMachine } from '../../test/support/guest-manifests.ts';
import { until } from '../migration/until.ts';
import { LocalCluster } from '../vm/local-cluster.ts';
import { cordon, drainNode } from './drained-node.ts';

/** Ten real guests on one of three nodes of a real `godwit up`. */

const NODES = ['node-1', 'node-2', 'node-3'] as const;
const GUESTS = Array.from({ length: 10 }, (_, index) => `guest-${index}`);
const MACHINES = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';
const INSTANCES = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances';

interface List {
  readonly items: readonly {
    readonly status?: {
      readonly phase?: string;
      readonly conditions?: readonly { readonly type: string; readonly status: string }[];
    };
  }[];
}

export async function realGuests(): Promise<void> {
  const cluster = new LocalCluster(NODES.length);
  try {
    await cluster.start();
    cluster.importProbe();
    const connection = await cluster.connect();
    const [node, ...others] = NODES;
    for (const other of others) await cordon(connection, other, true);
    for (const name of GUESTS) {
      const machine = virtualMachine(name, probe({ tickMs: 1000, evictionStrategy: 'LiveMigrate' }));
      await connection.request('POST', MACHINES, JSON.stringify(machine));
    }
    await until(async () => {
      const { items } = JSON.parse(await connection.text('GET', INSTANCES)) as List;
      return items.filter(isUp).length === GUESTS.length ? true : undefined;
    }, 'not all guests run');
    for (const other of others) await cordon(connection, other, false);
    await drainNode(await cluster.connect(), { node, guests: GUESTS, kind: 'real guests' });
  } finally {
    cluster.remove();
  }
}

/** Whether a guest runs, and is known to be able to move. */
function isUp({ status }: List['items'][number]): boolean {
  const isMovable = (status?.conditions ?? []).some(
    ({ type, status: value }) => type === 'LiveMigratable' && value === 'True',
  );
  return status?.phase === 'Running' && isMovable;
}
