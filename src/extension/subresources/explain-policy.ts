import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type { Json } from '../../api/meta.ts';
import type { Client } from '../../kube/client.ts';
import { migrationPolicies, virtualMachineInstances, virtualMachines } from '../../kube/kubevirt-resources.ts';
import { controllerOf } from '../../kube/owner.ts';
import type { Resource } from '../../kube/resource.ts';
import type { Change } from '../../migration/policies/counterfactuals.ts';
import { type BeatenPolicy, type Explanation, explain, type MatchedLabel } from '../../migration/policies/explain.ts';
import type { IgnoredOption, Origin } from '../../migration/policies/options.ts';
import { PolicyIndex } from '../../migration/policies/policy-index.ts';
import { found } from '../find-object.ts';

/** One option of a migration, and where it comes from. */
export interface ExplainedOption {
  /** Nested ones with dots. */
  readonly option: string;
  readonly value: Json;
  readonly origin: Origin;
}

/** The answer to a question about a machine: which policy would hold if it moved now, and why. */
export interface PolicyExplanation {
  readonly apiVersion: 'subresources.kubevirt.io/v1';
  readonly kind: 'MigrationPolicyExplanation';
  readonly metadata: { readonly name: string; readonly namespace: string };
  /** Whose labels were looked at: those of the guest that there is, or of the one that there would be. */
  readonly labelsOf: 'VirtualMachineInstance' | 'VirtualMachine';
  /** The policy that holds; absent where none does. */
  readonly policy?: string;
  readonly matchedLabels: readonly MatchedLabel[];
  readonly beaten: readonly BeatenPolicy[];
  readonly options: readonly ExplainedOption[];
  readonly ignored: readonly IgnoredOption[];
  readonly changes: readonly Change[];
}

const namespaces: Resource = {
  group: '',
  version: 'v1',
  plural: 'namespaces',
  kind: 'Namespace',
  namespaced: false,
};

/** Says which policy would hold for a machine, from what the API server says now. Rejects with 404 where there is none. */
export async function explainPolicy(
  client: Client,
  configuration: KubeVirtConfiguration,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  signal: AbortSignal,
): Promise<PolicyExplanation> {
  const machine = await found(client, virtualMachines, namespace, name, signal);
  const [named, place, policies] = await Promise.all([
    client.find(virtualMachineInstances, namespace, name, signal),
    client.get(namespaces, '', namespace, signal),
    client.list(migrationPolicies, {}, signal),
  ]);
  const guest = named && controllerOf(named)?.uid === machine.metadata.uid ? named : undefined;
  const labels = guest ? guest.metadata.labels : machine.spec.template.metadata?.labels;
  const told = explain({ metadata: { labels } }, place, new PolicyIndex(policies.items), configuration);
  const labelsOf = guest ? 'VirtualMachineInstance' : 'VirtualMachine';
  return explanationDocument(told, { namespace, name, labelsOf });
}

/** An explanation as it goes over the wire. */
export function explanationDocument(
  told: Explanation,
  { namespace, name, labelsOf }: { namespace: string; name: string; labelsOf: PolicyExplanation['labelsOf'] },
): PolicyExplanation {
  return {
    apiVersion: 'subresources.kubevirt.io/v1',
    kind: 'MigrationPolicyExplanation',
    metadata: { name, namespace },
    labelsOf,
    ...(told.winner && { policy: told.winner.policy }),
    matchedLabels: told.winner?.labels ?? [],
    beaten: told.beaten,
    options: [...told.origins].map(([option, origin]) => ({ option, value: valueAt(told.options, option), origin })),
    ignored: told.ignored,
    changes: told.changes,
  };
}

function valueAt(options: object, path: string): Json {
  let value: unknown = options;
  for (const field of path.split('.')) value = (value as Record<string, unknown>)[field];
  return value as Json;
}
