import { entry, type FieldError, forbidden, invalid } from '../../field-error.ts';
import type { Json, JsonObject, KubeObject } from '../../meta.ts';
import { compareQuantities, formatQuantity, parseQuantity } from '../../quantity.ts';
import type { Column, Strategy } from '../../resource.ts';
import { ageColumn, column, nameColumn, wideColumn } from '../columns.ts';
import { objectSchema } from '../meta.ts';
import { immutableErrors, isSame } from '../validation.ts';
import { accessModesText } from './access-modes.ts';
import { amountsAt, canonicalizeAmounts } from './amounts.ts';
import { changesText } from './changes.ts';
import { applyClaimSpecDefaults } from './claim-defaults.ts';
import { claimSpecErrors } from './claim-validation.ts';
import { ensureObject, has, objectAt, setDefault, textAt, textsAt } from './fields.ts';
import { coreKind } from './kind.ts';
import { persistentVolumeClaimSpec, persistentVolumeClaimStatus } from './schema/claims.ts';
import { CORE } from './schema/package.ts';

const CLASS_ANNOTATION = 'volume.beta.kubernetes.io/storage-class';

const strategy: Strategy = {
  applyDefaults(claim) {
    const spec = ensureObject(claim, 'spec');
    if (spec !== undefined) applyClaimSpecDefaults(spec);
    const status = ensureObject(claim, 'status');
    if (status === undefined) return;
    setDefault(status, 'phase', 'Pending');
    canonicalizeAmounts(status, 'capacity', 'allocatedResources');
  },
  prepareForCreate(claim) {
    claim['status'] = { phase: 'Pending' };
  },
  validate: (claim) => claimSpecErrors(objectAt(claim, 'spec'), 'spec'),
  validateUpdate(claim, old) {
    const spec = objectAt(claim, 'spec') ?? {};
    const oldSpec = objectAt(old, 'spec') ?? {};
    return [
      ...specErrors(claim, spec, oldSpec),
      ...sizeErrors(spec, oldSpec, old),
      ...immutableErrors(spec['volumeMode'], oldSpec['volumeMode'], 'volumeMode'),
      ...attributesErrors(spec, oldSpec, old),
    ];
  },
  validateStatusUpdate(claim) {
    const errors: FieldError[] = [];
    const status = objectAt(claim, 'status');
    for (const field of ['capacity', 'allocatedResources']) {
      for (const [name, quantity] of amountsAt(status, field)) {
        if (quantity.amount >= 0n) continue;
        const path = entry(`status.${field}`, name);
        errors.push(invalid(path, formatQuantity(quantity), 'must be a valid resource quantity'));
      }
    }
    return errors;
  },
};

/** What may change: the volume once, the class once, and of a bound claim the size and the attributes. */
function specErrors(claim: KubeObject, spec: JsonObject, oldSpec: JsonObject): FieldError[] {
  const allowed: JsonObject = { ...spec };
  const keepOld = (field: string): void => {
    if (has(oldSpec, field)) allowed[field] = oldSpec[field] as Json;
    else delete allowed[field];
  };
  if (textAt(oldSpec, 'volumeName') === '') keepOld('volumeName');
  const isClassFree =
    !has(oldSpec, 'storageClassName') && (claim.metadata.annotations?.[CLASS_ANNOTATION] ?? '') === '';
  if (isClassFree) keepOld('storageClassName');
  if (textAt(objectAt(claim, 'status'), 'phase') === 'Bound') {
    keepOld('volumeAttributesClassName');
    allowed['resources'] = withSize(objectAt(spec, 'resources'), objectAt(oldSpec, 'resources'));
  }
  if (isSame(allowed, oldSpec)) return [];
  const rule =
    'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims';
  return [forbidden('spec', `${rule}\n${changesText(oldSpec, allowed)}`)];
}

/** The resources with the old size in place of the new. */
function withSize(resources: JsonObject | undefined, old: JsonObject | undefined): JsonObject {
  const size = objectAt(old, 'requests')?.['storage'];
  const requests: JsonObject = { ...objectAt(resources, 'requests') };
  if (size === undefined) delete requests['storage'];
  else requests['storage'] = size;
  return { ...resources, requests };
}

function sizeErrors(spec: JsonObject, oldSpec: JsonObject, old: KubeObject): FieldError[] {
  const sizeOf = (requirements: JsonObject): Json | undefined =>
    objectAt(objectAt(requirements, 'resources'), 'requests')?.['storage'];
  const size = parseQuantity(sizeOf(spec));
  const oldSize = parseQuantity(sizeOf(oldSpec));
  if (size === undefined || oldSize === undefined || compareQuantities(size, oldSize) >= 0) return [];
  // A failed expansion can be taken back, but nothing below what the volume already has.
  const capacity = amountsAt(objectAt(old, 'status'), 'capacity').get('storage');
  if (capacity === undefined || compareQuantities(size, capacity) > 0) return [];
  return [forbidden('spec.resources.requests.storage', 'field can not be less than status.capacity')];
}

function attributesErrors(spec: JsonObject, oldSpec: JsonObject, old: KubeObject): FieldError[] {
  const field = 'volumeAttributesClassName';
  if (isSame(spec[field], oldSpec[field])) return [];
  if (!has(objectAt(old, 'status'), 'currentVolumeAttributesClassName')) return [];
  const condition = 'is forbidden when status.currentVolumeAttributesClassName is not nil';
  if (!has(spec, field)) return [forbidden(`spec.${field}`, `update to nil ${condition}`)];
  return spec[field] === '' ? [forbidden(`spec.${field}`, `update to empty string ${condition}`)] : [];
}

/** The storage class, wherever it is written. */
export function storageClassOf(object: KubeObject): string {
  const annotated = object.metadata.annotations?.[CLASS_ANNOTATION];
  return annotated === undefined ? textAt(objectAt(object, 'spec'), 'storageClassName') : annotated;
}

const columns: readonly Column[] = [
  nameColumn,
  column('Status', 'string', 'Pending, Bound or Lost.', (_spec, status, claim) =>
    claim.metadata.deletionTimestamp === undefined ? textAt(status, 'phase') : 'Terminating',
  ),
  column('Volume', 'string', 'The volume that the claim is bound to.', (spec) => textAt(spec, 'volumeName')),
  column('Capacity', 'string', 'How much storage the volume has.', (spec, status) => {
    if (textAt(spec, 'volumeName') === '') return '';
    const storage = amountsAt(status, 'capacity').get('storage');
    return storage === undefined ? '0' : formatQuantity(storage);
  }),
  column('Access Modes', 'string', 'How the volume can be mounted.', (spec, status) =>
    textAt(spec, 'volumeName') === '' ? '' : accessModesText(textsAt(status, 'accessModes')),
  ),
  column('StorageClass', 'string', 'The storage class of the claim.', (_spec, _status, claim) => storageClassOf(claim)),
  column('VolumeAttributesClass', 'string', 'The class of attributes of the claim.', (spec) =>
    has(spec, 'volumeAttributesClassName') ? textAt(spec, 'volumeAttributesClassName') : '<unset>',
  ),
  ageColumn,
  wideColumn('VolumeMode', 'string', 'Filesystem or Block.', (spec) => textAt(spec, 'volumeMode') || '<unset>'),
];

/** The schema of a claim, which StatefulSets have templates of. */
export const persistentVolumeClaim = objectSchema(`${CORE}.PersistentVolumeClaim`, 'A wish for storage.', {
  spec: [2, persistentVolumeClaimSpec, 'What storage is wanted.'],
  status: [3, persistentVolumeClaimStatus, 'What storage there is.'],
});

/** core/v1 PersistentVolumeClaim. */
export const persistentVolumeClaimDefinition = coreKind({
  plural: 'persistentvolumeclaims',
  kind: 'PersistentVolumeClaim',
  namespaced: true,
  shortNames: ['pvc'],
  hasStatus: true,
  schema: persistentVolumeClaim,
  columns,
  strategy,
});
