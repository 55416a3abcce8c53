import { type MigrationPolicy, policySelectors } from '../../api/kubevirt/migration-policy.ts';
import { selectorSignature } from '../../api/kubevirt/validate-migration-policy.ts';

/** Labels of a guest and of its namespace: all that policies look at. */
export interface Subject {
  readonly labels?: Labels;
  readonly namespaceLabels?: Labels;
}

export type Labels = { readonly [key: string]: string };

/** Whose label a policy asks for. */
export type LabelOwner = 'VirtualMachineInstance' | 'Namespace';

/** One label that a policy asks for. */
export interface Requirement {
  readonly owner: LabelOwner;
  readonly key: string;
  /** The value that it must have; undefined for any. */
  readonly value: string | undefined;
}

/**
 * A policy with all that its precedence depends on. A policy matches only with every label that it asks for, so none of
 * this depends on the guest: policies have one order among them, and whoever matches is picked along it.
 */
export interface RankedPolicy {
  readonly name: string;
  readonly policy: MigrationPolicy;
  readonly requirements: readonly Requirement[];
  /** How many of them are labels of the guest. */
  readonly guestLabels: number;
  /** How many of them ask for one value. */
  readonly exactValues: number;
  /** The keys of all of them in order; one that is asked for of guest and namespace is there twice. */
  readonly keys: readonly string[];
  /** The same for all that select by the same labels. */
  readonly signature: string;
}

/** Ranks a policy; undefined for one without selectors, which is for no guest. (Empty ones are for every guest.) */
export function rankedPolicy(policy: MigrationPolicy): RankedPolicy | undefined {
  // Stored objects are older than today's schema at times.
  const selectors = (policy.spec as Partial<MigrationPolicy['spec']> | undefined)?.selectors;
  if (!selectors) return undefined;
  const { virtualMachineInstance, namespace } = policySelectors({ selectors });
  const requirements = [
    ...requirementsOf('VirtualMachineInstance', virtualMachineInstance),
    ...requirementsOf('Namespace', namespace),
  ];
  return {
    name: policy.metadata.name ?? '',
    policy,
    requirements,
    guestLabels: virtualMachineInstance.size,
    exactValues: requirements.filter(({ value }) => value !== undefined).length,
    keys: requirements.map(({ key }) => key).toSorted(compareTexts),
    signature: selectorSignature({ selectors }),
  };
}

function requirementsOf(owner: LabelOwner, labels: ReadonlyMap<string, string>): Requirement[] {
  return [...labels]
    .map(([key, value]) => ({ owner, key, value: value === '' ? undefined : value }))
    .toSorted((left, right) => compareTexts(left.key, right.key));
}

/** The value of a label; undefined where there is none. */
export function labelOf(subject: Subject, owner: LabelOwner, key: string): string | undefined {
  const labels = owner === 'Namespace' ? subject.namespaceLabels : subject.labels;
  return labels !== undefined && Object.hasOwn(labels, key) ? labels[key] : undefined;
}

/** Whether the subject has the label with a value that will do. */
export function isMet(requirement: Requirement, subject: Subject): boolean {
  const value = labelOf(subject, requirement.owner, requirement.key);
  return value !== undefined && (requirement.value === undefined || requirement.value === value);
}

/** Whether a policy is for this subject. */
export function matches(ranked: RankedPolicy, subject: Subject): boolean {
  return ranked.requirements.every((requirement) => isMet(requirement, subject));
}

/** Negative where the left policy is older; of those that are as old the names decide. */
export function compareAges({ metadata: left }: MigrationPolicy, { metadata: right }: MigrationPolicy): number {
  const order = compareTexts(left.creationTimestamp ?? '', right.creationTimestamp ?? '');
  return order === 0 ? compareTexts(left.name ?? '', right.name ?? '') : order;
}

/** Order of texts that is the same everywhere. */
export function compareTexts(left: string, right: string): number {
  if (left === right) return 0;
  return left < right ? -1 : 1;
}
