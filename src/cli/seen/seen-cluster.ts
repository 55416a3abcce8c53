import type { KubeVirt } from '../../api/kubevirt/kube-virt.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { MIGRATION_UID_LABEL } from '../../api/kubevirt/well-known.ts';
import type { KubeObject } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import { type LauncherPod, nodes, pods } from '../../control/resources.ts';
import { readLedger } from '../../control/migration/ledger-object.ts';
import type { Client, ListOptions } from '../../kube/client.ts';
import {
  kubeVirts,
  virtualMachineInstanceMigrations,
  virtualMachineInstances,
  virtualMachines,
} from '../../kube/kubevirt-resources.ts';
import type { Resource } from '../../kube/resource.ts';
import type { Node } from '../../migration/fit/objects.ts';
import type { SlotLedger } from '../../migration/slots/ledger.ts';

/** A cluster as somebody may see it, at one moment. */
export interface SeenCluster {
  readonly nowMs: number;
  readonly nodes: readonly Node[];
  readonly machines: readonly VirtualMachine[];
  readonly guests: readonly VirtualMachineInstance[];
  readonly migrations: readonly VirtualMachineInstanceMigration[];
  /** Launcher pods that guests move to. */
  readonly targetPods: readonly LauncherPod[];
  readonly kubeVirt: KubeVirt | undefined;
  /** Undefined where there is none, or it may not be read. */
  readonly ledger: SlotLedger | undefined;
  /** What may not be looked at. */
  readonly denied: readonly string[];
}

/** Lists are read in pages of so many. */
const PAGE = 500;

/** Looks at all namespaces, or at the own one where one may not. What one may not see is left out, and said. */
export async function lookAtCluster(
  client: Client,
  { namespace, nowMs }: { readonly namespace: string; readonly nowMs: number },
  signal: AbortSignal,
): Promise<SeenCluster> {
  const denied: string[] = [];
  const look = async <T>(what: string, read: () => Promise<T>, otherwise: T): Promise<T> => {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof ApiError && error.code === 403)) throw error;
      denied.push(what);
      return otherwise;
    }
  };
  const all = <T extends KubeObject>(resource: Resource<T>, options: ListOptions = {}): Promise<readonly T[]> =>
    look(resource.plural, () => everything(client, resource, options, signal), []);
  const everywhere = async <T extends KubeObject>(
    resource: Resource<T>,
    options: ListOptions = {},
  ): Promise<readonly T[]> => {
    const found = await look(
      `${resource.plural} of other namespaces`,
      () => everything(client, resource, options, signal),
      undefined,
    );
    return found ?? all(resource, { ...options, namespace });
  };
  const [seenNodes, machines, guests, migrations, targetPods, [kubeVirt], stored] = await Promise.all([
    all(nodes),
    everywhere(virtualMachines),
    everywhere(virtualMachineInstances),
    everywhere(virtualMachineInstanceMigrations),
    everywhere(pods, { labelSelector: MIGRATION_UID_LABEL }),
    all(kubeVirts),
    look('the ledger of migration slots', () => readLedger(client, signal), undefined),
  ]);
  const ledger = stored?.ledger;
  return { nowMs, nodes: seenNodes, machines, guests, migrations, targetPods, kubeVirt, ledger, denied };
}

async function everything<T extends KubeObject>(
  client: Client,
  resource: Resource<T>,
  options: ListOptions,
  signal: AbortSignal,
): Promise<T[]> {
  const found: T[] = [];
  for (let page: string | undefined = ''; page !== undefined; ) {
    const more: ListOptions = { ...options, limit: PAGE, ...(page === '' ? {} : { continue: page }) };
    const { items, metadata } = await client.list(resource, more, signal);
    found.push(...items);
    page = metadata.continue || undefined;
  }
  return found;
}
