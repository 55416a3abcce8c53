import { KUBEVIRT_CRDS } from '../../api/kubevirt/crds.ts';
import { SYSTEM_NAMESPACE } from '../../api/kubevirt/well-known.ts';
import type { KubeObject } from '../../api/meta.ts';
import { type Clock, sleep } from '../../env/ports.ts';
import { ObjectApplier } from '../../kube/apply-objects.ts';
import type { Client } from '../../kube/client.ts';
import { isConditionTrue } from '../../kube/conditions.ts';
import type { Resource } from '../../kube/resource.ts';
import { agentRights } from './agent-rights.ts';
import { controllerRights } from './rights.ts';

/** What a cluster has to have before virtual machines can be kept in it. */

export interface Installation {
  /** Brought back to what they should be whenever we start. */
  readonly ours: readonly KubeObject[];
  /** Created once; from then on they are the admin's to change. */
  readonly initial: readonly KubeObject[];
}

const definitions: Resource = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  plural: 'customresourcedefinitions',
  kind: 'CustomResourceDefinition',
  namespaced: false,
};

/** Definitions are served within a moment; who watches could hear of it, but nobody does so early. */
const POLL_INTERVAL_MS = 20;

/** The cluster's configuration as a new installation has it. */
const CONFIGURATION: KubeObject = {
  apiVersion: 'kubevirt.io/v1',
  kind: 'KubeVirt',
  metadata: { name: 'kubevirt', namespace: SYSTEM_NAMESPACE },
  spec: {
    configuration: {
      // A guest that is bridged to its pod's network cannot move.
      network: { defaultNetworkInterface: 'masquerade' },
      // Guests that ask to be moved are moved whatever drives them off their node, and to other namespaces and clusters.
      developerConfiguration: {
        featureGates: [
          'PreemptionEvictionLiveMigration',
          'NoExecuteTaintEvictionLiveMigration',
          'DecentralizedLiveMigration',
        ],
      },
    },
  },
};

/** Agents that are pods reach into their hosts: whatever the cluster demands of pods elsewhere, it must not here. */
const NAMESPACE_METADATA: KubeObject['metadata'] = {
  name: SYSTEM_NAMESPACE,
  labels: { 'kubevirt.io': '', 'pod-security.kubernetes.io/enforce': 'privileged' },
};

/** All that the controllers themselves need, with what others bring along. */
export function installation(more: Installation): Installation {
  const namespace: KubeObject = { apiVersion: 'v1', kind: 'Namespace', metadata: NAMESPACE_METADATA };
  return {
    ours: [namespace, ...controllerRights(), ...agentRights(), ...more.ours],
    initial: [CONFIGURATION, ...more.initial],
  };
}

/** Installs our kinds and everything else, as somebody who may do that; as often as you like. */
export async function install(
  client: Client,
  clock: Clock,
  { ours, initial }: Installation,
  signal: AbortSignal,
): Promise<void> {
  await (await ObjectApplier.of(client, signal)).apply(KUBEVIRT_CRDS, signal);
  for (const { metadata } of KUBEVIRT_CRDS) await established(client, clock, metadata.name ?? '', signal);
  const applier = await ObjectApplier.of(client, signal);
  await applier.apply(ours, signal);
  await applier.createMissing(initial, signal);
}

async function established(client: Client, clock: Clock, name: string, signal: AbortSignal): Promise<void> {
  for (;;) {
    const definition = await client.get(definitions, '', name, signal);
    const { conditions } = (definition['status'] ?? {}) as { conditions?: Parameters<typeof isConditionTrue>[0] };
    if (isConditionTrue(conditions, 'Established')) return;
    signal.throwIfAborted();
    await sleep(clock, POLL_INTERVAL_MS, signal);
  }
}
