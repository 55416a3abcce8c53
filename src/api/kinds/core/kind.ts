import { child, type FieldError, invalid } from '../../field-error.ts';
import type { KubeObject } from '../../meta.ts';
import { qualifiedNameErrors } from '../../names.ts';
import type { ResourceDefinition } from '../../resource.ts';
import { builtin } from '../meta.ts';

type Given = Parameters<typeof builtin>[0];

/** A kind of core/v1. Its finalizers must be ones that somebody can be asked about. */
export function coreKind(definition: Omit<Given, 'group' | 'version'>): ResourceDefinition {
  const { strategy } = definition;
  return builtin({
    ...definition,
    group: '',
    version: 'v1',
    strategy: {
      ...strategy,
      validate: (object: KubeObject) => [
        ...(object.metadata.finalizers ?? []).flatMap((name, index) =>
          ownerlessErrors(name, child('metadata.finalizers', index)),
        ),
        ...(strategy?.validate?.(object) ?? []),
      ],
    },
  });
}

const STANDARD_FINALIZERS = ['kubernetes', 'orphan', 'foregroundDeletion'];

/** Refuses a finalizer that names nobody: neither Kubernetes' own nor one with a domain. */
function ownerlessErrors(name: string, path: string): FieldError[] {
  if (name.includes('/') || STANDARD_FINALIZERS.includes(name)) return [];
  return [invalid(path, name, 'name is neither a standard finalizer name nor is it fully qualified')];
}

/** What is wrong with the name of a finalizer outside the metadata. */
export function finalizerErrors(name: string, path: string): FieldError[] {
  return [...qualifiedNameErrors(name).map((message) => invalid(path, name, message)), ...ownerlessErrors(name, path)];
}
