import { CREATED_BY_LABEL, NODE_NAME_LABEL, SCHEDULABLE_LABEL } from '../../api/kubevirt/well-known.ts';

/** Labels by which components find things: nobody but they may set them. */

const RESERVED: readonly string[] = [
  CREATED_BY_LABEL,
  NODE_NAME_LABEL,
  SCHEDULABLE_LABEL,
  'kubevirt.io/migrationJobUID',
  'kubevirt.io/migrationTargetNodeName',
  'kubevirt.io/install-strategy',
];

type Labels = Readonly<Record<string, string>> | null | undefined;

/** The reserved ones among labels. */
export function reservedLabels(labels: Labels): string[] {
  return RESERVED.filter((label) => labels && Object.hasOwn(labels, label));
}

/** The reserved labels that have another value than before, or come, or go. */
export function changedReservedLabels(old: Labels, labels: Labels): string[] {
  const valueOf = (all: Labels, label: string): string | undefined =>
    all && Object.hasOwn(all, label) ? all[label] : undefined;
  return RESERVED.filter((label) => valueOf(old, label) !== valueOf(labels, label));
}
