import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { TARGET_NODE_LABEL } from '../../api/kubevirt/well-known.ts';
import { formatTime, type JsonObject } from '../../api/meta.ts';
import type { Client } from '../../kube/client.ts';
import { virtualMachineInstances } from '../../kube/kubevirt-resources.ts';
import type { ClaimChange } from '../claim-changes.ts';
import { statusPatch } from '../../kube/status-patch.ts';
import { pairStatus } from '../../migration/halves/pair-status.ts';
import type { MigrationFailure } from '../../migration/phase/failure.ts';
import { resolveOptions } from '../../migration/policies/options.ts';
import type { PolicyIndex } from '../../migration/policies/policy-index.ts';

/**
 * What is written about a migration on its guest, where agents read it. Every write is for the guest as it was looked at
 * and no other: so of two migrations only one is handed off, and none is withdrawn that the source has begun meanwhile.
 */

/** Where a migration goes from and to. */
export interface Route {
  readonly migrationUid: string;
  readonly sourceNode: string;
  readonly sourcePod: string;
  readonly targetNode: string;
  readonly targetPod: string;
}

/** The options of a migration, which hold from the hand-off on whatever becomes of policies. */
export function frozenOptions(
  guest: VirtualMachineInstance,
  namespaceLabels: { readonly [key: string]: string },
  policies: PolicyIndex,
  configuration: KubeVirtConfiguration,
): Pick<MigrationState, 'migrationPolicyName' | 'migrationConfiguration'> {
  const winner = policies.winner({ labels: guest.metadata.labels ?? {}, namespaceLabels });
  const { options } = resolveOptions(winner?.policy, configuration);
  return {
    ...(winner ? { migrationPolicyName: winner.name } : {}),
    migrationConfiguration: { ...options },
  };
}

/** A volume that is on another claim at the target, as both agents are told. */
export function migratedVolume({
  volumeName,
  source: sourceClaim,
  destination: targetClaim,
}: ClaimChange): NonNullable<MigrationState['migratedVolumes']>[number] {
  return { volumeName, sourceClaim, targetClaim };
}

/** What is said of a migration that ends before its source has begun. */
export function withdrawnState(state: MigrationState, failure: MigrationFailure, nowMs: number): MigrationState {
  return {
    ...state,
    abortRequested: true,
    abortStatus: 'Succeeded',
    failed: true,
    completed: true,
    failureReason: failure.message,
    endTimestamp: formatTime(nowMs),
  };
}

/** Replaces the guest's state by this one. Rejects where the guest is not as it was. */
export async function writeState(
  client: Client,
  guest: VirtualMachineInstance,
  state: MigrationState,
  signal: AbortSignal,
): Promise<VirtualMachineInstance> {
  const body = statusPatch(guest, pairStatus(guest, state));
  if (!body) return guest;
  const { namespace = '', name = '' } = guest.metadata;
  const patch = { type: 'merge', body } as const;
  return client.patch(virtualMachineInstances, namespace, name, patch, signal, { subresource: 'status' });
}

/** Labels the guest, by which the target's agent hears of it: after its state, so that no label is without one. */
export async function announce(
  client: Client,
  guest: VirtualMachineInstance,
  targetNode: string,
  signal: AbortSignal,
): Promise<VirtualMachineInstance> {
  const { namespace = '', name = '', uid = '', labels } = guest.metadata;
  if (labels?.[TARGET_NODE_LABEL] === targetNode) return guest;
  const body: JsonObject = { metadata: { uid, labels: { [TARGET_NODE_LABEL]: targetNode } } };
  return client.patch(virtualMachineInstances, namespace, name, { type: 'merge', body }, signal);
}
