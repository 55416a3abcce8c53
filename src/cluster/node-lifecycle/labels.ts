import type { Node } from '../../migration/fit/objects.ts';

/** Labels that have two names, since manifests know either. */

const OLD_NAMES: readonly (readonly [name: string, oldName: string])[] = [
  ['kubernetes.io/os', 'beta.kubernetes.io/os'],
  ['kubernetes.io/arch', 'beta.kubernetes.io/arch'],
];

/** The labels that the node lacks, or has with another value than under their newer names; undefined for none. */
export function labelsFor({ metadata: { labels = {} } }: Node): Record<string, string> | undefined {
  const changes = OLD_NAMES.flatMap(([name, oldName]) => {
    const value = Object.hasOwn(labels, name) ? labels[name] : undefined;
    return value === undefined || labels[oldName] === value ? [] : [[oldName, value] as const];
  });
  return changes.length === 0 ? undefined : Object.fromEntries(changes);
}
