import type { KubeObject } from '../../api/meta.ts';
import type { Strategy } from '../../api/resource.ts';
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
  validate: (object) => crdErrors(object),
  validateUpdate: (object: KubeObject, old: KubeObject) => crdUpdateErrors(object, old),
};

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
