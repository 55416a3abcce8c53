import { isFeatureGateEnabled } from '../../api/kubevirt/feature-gates.ts';
import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type { MigrationPriority } from '../../api/kubevirt/migration-priority.ts';
import { priorityRight } from '../../api/kubevirt/validate-migration.ts';
import { badRequest, conflict } from '../../api/status.ts';
import type { Client } from '../../kube/client.ts';
import {
  virtualMachineInstanceMigrations,
  virtualMachineInstances,
  virtualMachines,
} from '../../kube/kubevirt-resources.ts';
import { isAllowed, type Subject } from '../access-review.ts';
import { found } from '../find-object.ts';

/** Somebody's wish that a machine moves. */
export interface MigrationWish {
  readonly namespace: string;
  readonly name: string;
  readonly user: Subject;
  /** As it stands in the body: labels that the target node must have. */
  readonly addedNodeSelector: unknown;
  readonly dryRun: boolean;
}

const PRIORITY: MigrationPriority = 'user-triggered';

/**
 * Makes a migration of a machine that runs. Of those who may, it is in the class of users; of others, below all
 * classes. Rejects with what is in the way, also where a webhook says so.
 */
export async function migrate(
  client: Client,
  configuration: KubeVirtConfiguration,
  wish: MigrationWish,
  signal: AbortSignal,
): Promise<void> {
  const { namespace, name, user, dryRun } = wish;
  const addedNodeSelector = labelsIn(wish.addedNodeSelector);
  await found(client, virtualMachines, namespace, name, signal);
  const guest = await found(client, virtualMachineInstances, namespace, name, signal);
  if (guest.status?.phase !== 'Running')
    throw conflict({ group: 'kubevirt.io', plural: 'virtualmachine' }, name, 'VM is not running');
  const hasPriority = isFeatureGateEnabled('MigrationPriorityQueue', configuration);
  const right = hasPriority ? priorityRight({ priority: PRIORITY }) : undefined;
  const mayUse = right !== undefined && (await isAllowed(client, user, { ...right, namespace }, signal));
  await client.create(
    virtualMachineInstanceMigrations,
    {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstanceMigration',
      metadata: { generateName: 'kubevirt-migrate-vm-', namespace },
      spec: {
        vmiName: name,
        cause: 'User',
        ...(addedNodeSelector ? { addedNodeSelector } : {}),
        ...(mayUse ? { priority: PRIORITY } : {}),
      },
    },
    signal,
    { dryRun },
  );
}

function labelsIn(value: unknown): Record<string, string> | undefined {
  if (value === undefined || value === null) return undefined;
  const isMap = typeof value === 'object' && !Array.isArray(value);
  if (isMap && Object.values(value).every((each) => typeof each === 'string')) return value as Record<string, string>;
  throw badRequest(
    'Can not unmarshal Request body to struct, error: addedNodeSelector must be labels with values that are texts',
  );
}
