import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import type { JsonObject } from '../../api/meta.ts';
import type { Client } from '../../kube/client.ts';
import { virtualMachineInstances } from '../../kube/kubevirt-resources.ts';
import { statusPatch } from '../../kube/status-patch.ts';
import type { LauncherPod } from '../resources.ts';
import { adoption } from './receiver.ts';
import type { Route } from './hand-off.ts';

/** What is done for halves alone. */

/** Makes a guest that waits what the one is that comes; the guest as it is then. */
export async function adopt(
  client: Client,
  guest: VirtualMachineInstance,
  source: NonNullable<MigrationState['sourceState']>,
  signal: AbortSignal,
): Promise<VirtualMachineInstance> {
  const wanted = adoption(guest, source);
  const { namespace = '', name = '', uid = '', resourceVersion = '' } = guest.metadata;
  let adopted = guest;
  if (wanted?.spec) {
    const { firmware, devices } = wanted.spec.domain;
    const { interfaces } = devices;
    const domain = { ...(firmware ? { firmware } : {}), ...(interfaces ? { devices: { interfaces } } : {}) };
    const body = { metadata: { uid, resourceVersion }, spec: { domain } } as unknown as JsonObject;
    adopted = await client.patch(virtualMachineInstances, namespace, name, { type: 'merge', body }, signal);
  }
  const body = wanted?.status && statusPatch(adopted, wanted.status);
  if (!body) return adopted;
  const patch = { type: 'merge', body } as const;
  return client.patch(virtualMachineInstances, namespace, name, patch, signal, { subresource: 'status' });
}

/** What a source's agent is told: which pod is meant, and that it may begin. */
export function sentState(state: MigrationState, guest: VirtualMachineInstance, pod: LauncherPod): MigrationState {
  const { holder: runner, epoch } = guest.status?.rightToRun ?? {};
  const route = { node: runner?.node ?? '', pod: pod.metadata.name ?? '' };
  return {
    ...state,
    sourceNode: route.node,
    sourcePod: route.pod,
    sourceState: {
      ...state.sourceState,
      ...route,
      ...(runner ? { runner } : {}),
      ...(epoch ? { epoch } : {}),
      slots: 'committed',
    },
  };
}

/** What a target's agent is told: which pod is meant, and how the guest comes there. */
export function receivedState(
  state: MigrationState,
  pod: LauncherPod,
  options: Pick<MigrationState, 'migrationPolicyName' | 'migrationConfiguration'>,
): MigrationState {
  const route = { node: pod.spec?.nodeName ?? '', pod: pod.metadata.name ?? '' };
  return {
    ...state,
    ...options,
    targetNode: route.node,
    targetPod: route.pod,
    targetState: { ...state.targetState, ...route, slots: 'committed' },
  };
}

/** Both sides of two halves of the very same guest. */
export function sidesOfOne(
  guest: VirtualMachineInstance,
  { sourceNode, sourcePod, targetNode, targetPod }: Route,
  source: VirtualMachineInstanceMigration,
  target: VirtualMachineInstanceMigration,
): Pick<MigrationState, 'sourceState' | 'targetState'> {
  const { uid = '', name = '', namespace = '' } = guest.metadata;
  const same = { virtualMachineInstanceUID: uid, domainName: name, domainNamespace: namespace };
  return {
    sourceState: { ...same, migrationUID: source.metadata.uid ?? '', node: sourceNode, pod: sourcePod },
    targetState: { ...same, migrationUID: target.metadata.uid ?? '', node: targetNode, pod: targetPod },
  };
}
