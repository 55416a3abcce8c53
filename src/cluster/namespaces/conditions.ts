import type { Condition, KubeObject } from '../../api/meta.ts';
import { setCondition } from '../../kube/conditions.ts';
import type { Resource } from '../../kube/resource.ts';

/** What a namespace that is on its way out says about what holds it up. */

export interface Namespace extends KubeObject {
  spec?: { readonly finalizers?: readonly string[] };
  status?: { readonly phase?: string; readonly conditions?: readonly Condition[] };
}

/** What one attempt to empty a namespace came to. */
export interface Findings {
  /** Why not all resources are known. */
  readonly discoveryFailure?: string | undefined;
  /** Why the names of groups and versions make no sense. */
  readonly parsingFailure?: string | undefined;
  /** Why content could not be deleted, one text per resource. */
  readonly contentFailures: readonly string[];
  /** How many objects there still are, by resource. */
  readonly remaining: ReadonlyMap<Resource, number>;
  /** How many of them each finalizer holds. */
  readonly finalizers: ReadonlyMap<string, number>;
}

/** When all is well, and what else there may be to say. */
interface Subject {
  readonly type: string;
  readonly well: readonly [reason: string, message: string];
  readonly trouble: (findings: Findings) => readonly [reason: string, message: string] | undefined;
}

const SUBJECTS: readonly Subject[] = [
  {
    type: 'NamespaceDeletionDiscoveryFailure',
    well: ['ResourcesDiscovered', 'All resources successfully discovered'],
    trouble: ({ discoveryFailure }) =>
      discoveryFailure === undefined ? undefined : ['DiscoveryFailed', discoveryFailure],
  },
  {
    type: 'NamespaceDeletionGroupVersionParsingFailure',
    well: ['ParsedGroupVersions', 'All legacy kube types successfully parsed'],
    trouble: ({ parsingFailure }) =>
      parsingFailure === undefined ? undefined : ['GroupVersionParsingFailed', parsingFailure],
  },
  {
    type: 'NamespaceDeletionContentFailure',
    well: ['ContentDeleted', 'All content successfully deleted, may be waiting on finalization'],
    trouble: ({ contentFailures }) => {
      if (contentFailures.length === 0) return undefined;
      const count = contentFailures.length;
      const each = contentFailures.toSorted().join(', ');
      return ['ContentDeletionFailed', `Failed to delete all resource types, ${count} remaining: ${each}`];
    },
  },
  {
    type: 'NamespaceContentRemaining',
    well: ['ContentRemoved', 'All content successfully removed'],
    trouble: ({ remaining }) => {
      if (remaining.size === 0) return undefined;
      const each = [...remaining].map(
        // Upstream, too, leaves the dot where the group is empty.
        ([{ plural, group }, count]) => `${plural}.${group} has ${count} resource instances`,
      );
      return ['SomeResourcesRemain', `Some resources are remaining: ${each.toSorted().join(', ')}`];
    },
  },
  {
    type: 'NamespaceFinalizersRemaining',
    well: ['ContentHasNoFinalizers', 'All content-preserving finalizers finished'],
    trouble: ({ finalizers }) => {
      if (finalizers.size === 0) return undefined;
      const each = [...finalizers].map(([name, count]) => `${name} in ${count} resource instances`).toSorted();
      return ['SomeFinalizersRemain', `Some content in the namespace has finalizers remaining: ${each.join(', ')}`];
    },
  },
];

/** The conditions with what was found; the same list where that is nothing new. */
export function conditionsWith(
  known: readonly Condition[] | undefined,
  findings: Findings,
  nowMs: number,
): readonly Condition[] {
  let conditions = known ?? [];
  for (const { type, well, trouble } of SUBJECTS) {
    const told = trouble(findings);
    const [reason, message] = told ?? well;
    conditions = setCondition(conditions, { type, status: told ? 'True' : 'False', reason, message }, nowMs);
  }
  return conditions;
}
