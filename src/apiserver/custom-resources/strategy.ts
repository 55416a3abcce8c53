import type { Strategy } from '../../api/resource.ts';
import type { Schema } from '../../api/schema.ts';
import { formatCheck } from '../../machinery/schema/formats.ts';
import { crdErrors, crdUpdateErrors } from './validation.ts';
import { CLEANUP_FINALIZER, type CustomResourceDefinition, storageVersionOf } from './wire.ts';

/**
 * The behaviour of the CustomResourceDefinition kind itself. The clean-up finalizer is there from the start, so that
 * no deletion can come before it and leave objects behind that nothing serves.
 */
export const customResourceDefinitionStrategy: Strategy = {
  applyDefaults(object) {
    const { spec } = object as CustomResourceDefinition;
    if (!spec) return;
    if (spec.names?.kind) {
      spec.names.singular ||= spec.names.kind.toLowerCase();
      spec.names.listKind ||= `${spec.names.kind}List`;
    }
    spec.conversion ??= { strategy: 'None' };
  },
  prepareForCreate(object) {
    const crd = object as CustomResourceDefinition;
    crd.status = {};
    keepFinalizer(crd);
    recordStorageVersion(crd);
  },
  prepareForUpdate(object) {
    const crd = object as CustomResourceDefinition;
    if (crd.metadata.deletionTimestamp === undefined) keepFinalizer(crd);
    recordStorageVersion(crd);
  },
  warnings(object, old) {
    const known = new Set(old ? unknownFormats(old as CustomResourceDefinition) : []);
    return unknownFormats(object as CustomResourceDefinition)
      .filter((format) => !known.has(format))
      .map((format) => `unrecognized format ${JSON.stringify(format)}`);
  },
  validate: crdErrors,
  validateUpdate: crdUpdateErrors,
};

/** Formats of strings in a CRD's schemas that nobody checks, each once. */
function unknownFormats(crd: CustomResourceDefinition): string[] {
  const found = new Set<string>();
  const visit = (schema: Schema): void => {
    const { type, format = '' } = schema;
    const isKnown = format === '' || format === 'password' || formatCheck(format, false) !== undefined;
    if (type === 'string' && !isKnown) found.add(format);
    for (const property of Object.values(schema.properties ?? {})) visit(property);
    if (schema.items) visit(schema.items);
    if (typeof schema.additionalProperties === 'object') visit(schema.additionalProperties);
  };
  for (const { schema } of crd.spec?.versions ?? []) if (schema?.openAPIV3Schema) visit(schema.openAPIV3Schema);
  return [...found];
}

function keepFinalizer(crd: CustomResourceDefinition): void {
  const finalizers = crd.metadata.finalizers ?? [];
  if (!finalizers.includes(CLEANUP_FINALIZER)) crd.metadata.finalizers = [...finalizers, CLEANUP_FINALIZER];
}

/** From the next write on, objects may be stored in this version. */
function recordStorageVersion(crd: CustomResourceDefinition): void {
  const version = storageVersionOf(crd);
  const stored = crd.status?.storedVersions ?? [];
  if (version === undefined || stored.includes(version)) return;
  crd.status = { ...crd.status, storedVersions: [...stored, version] };
}
