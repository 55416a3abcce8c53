import { child, entry, type FieldError, forbidden, invalid, notSupported, required } from '../../field-error.ts';
import type { JsonObject, KubeObject } from '../../meta.ts';
import { dnsSubdomainErrors } from '../../names.ts';
import { formatQuantity } from '../../quantity.ts';
import type { Column, Strategy } from '../../resource.ts';
import { ageColumn, column, nameColumn, wideColumn } from '../columns.ts';
import { objectSchema } from '../meta.ts';
import { immutableErrors, isSame } from '../validation.ts';
import { accessModeErrors, accessModesText } from './access-modes.ts';
import { amountsAt, canonicalizeAmounts } from './amounts.ts';
import { changesText } from './changes.ts';
import { ensureObject, has, objectAt, setDefault, textAt, textsAt } from './fields.ts';
import { coreKind } from './kind.ts';
import { nodeSelectorErrors } from './node-selector-validation.ts';
import { storageClassOf } from './persistent-volume-claim.ts';
import { positiveQuantityErrors } from './resource-validation.ts';
import { CORE } from './schema/package.ts';
import { persistentVolumeSpec, persistentVolumeStatus } from './schema/persistent-volume.ts';
import { sharedSourceErrors, volumeSourceErrors } from './volume-source-validation.ts';

/** Fields of the spec that are the volume itself, as the schema embeds them. */
const SOURCES = Object.entries(persistentVolumeSpec.properties ?? {})
  .filter(([, schema]) => schema.embedded !== undefined)
  .map(([name]) => name);

const strategy: Strategy = {
  applyDefaults(volume) {
    const spec = ensureObject(volume, 'spec');
    if (spec !== undefined) {
      setDefault(spec, 'persistentVolumeReclaimPolicy', 'Retain');
      setDefault(spec, 'volumeMode', 'Filesystem');
      canonicalizeAmounts(spec, 'capacity');
      const hostPath = objectAt(spec, 'hostPath');
      if (hostPath !== undefined && !has(hostPath, 'type')) hostPath['type'] = '';
    }
    const status = ensureObject(volume, 'status');
    if (status !== undefined) setDefault(status, 'phase', 'Pending');
  },
  prepareForCreate(volume) {
    volume['status'] = { phase: 'Pending' };
  },
  validate(volume) {
    const spec = objectAt(volume, 'spec') ?? {};
    return [
      ...accessErrors(spec),
      ...capacityErrors(spec),
      ...affinityErrors(spec),
      ...volumeSourceErrors(spec, 'spec', SOURCES, sharedSourceErrors),
      ...classErrors(spec),
      ...recycleErrors(spec),
    ];
  },
  validateUpdate(volume, old) {
    const spec = objectAt(volume, 'spec') ?? {};
    const oldSpec = objectAt(old, 'spec') ?? {};
    return [
      ...sourceChangeErrors(spec, oldSpec),
      ...immutableErrors(spec['volumeMode'], oldSpec['volumeMode'], 'volumeMode'),
      ...affinityChangeErrors(spec, oldSpec),
    ];
  },
};

function accessErrors(spec: JsonObject): FieldError[] {
  const modes = textsAt(spec, 'accessModes');
  if (modes.length === 0) return [required('spec.accessModes')];
  return accessModeErrors(modes, 'spec.accessModes');
}

function capacityErrors(spec: JsonObject): FieldError[] {
  const path = 'spec.capacity';
  const capacity = objectAt(spec, 'capacity') ?? {};
  const names = Object.keys(capacity);
  const errors = names.length === 0 ? [required(path)] : [];
  if (names.length !== 1 || names[0] !== 'storage') errors.push(notSupported(path, capacity, ['storage']));
  return [...errors, ...names.flatMap((name) => positiveQuantityErrors(capacity, name, entry(path, name)))];
}

function affinityErrors(spec: JsonObject): FieldError[] {
  const affinity = objectAt(spec, 'nodeAffinity');
  if (affinity === undefined) {
    return has(spec, 'local') ? [required('spec.nodeAffinity', 'Local volume requires node affinity')] : [];
  }
  const path = 'spec.nodeAffinity.required';
  const selector = objectAt(affinity, 'required');
  return selector === undefined
    ? [required(path, 'must specify required node constraints')]
    : nodeSelectorErrors(selector, path);
}

function classErrors(spec: JsonObject): FieldError[] {
  const errors: FieldError[] = [];
  for (const field of ['storageClassName', 'volumeAttributesClassName']) {
    const name = textAt(spec, field);
    if (name === '') continue;
    for (const message of dnsSubdomainErrors(name)) errors.push(invalid(child('spec', field), name, message));
  }
  if (!has(spec, 'volumeAttributesClassName')) return errors;
  if (textAt(spec, 'volumeAttributesClassName') === '') {
    errors.push(required('spec.volumeAttributesClassName', 'an empty string is disallowed'));
  }
  if (!has(spec, 'csi')) {
    errors.push(required('spec.csi', 'has to be specified when using volumeAttributesClassName'));
  }
  return errors;
}

function recycleErrors(spec: JsonObject): FieldError[] {
  const path = textAt(objectAt(spec, 'hostPath'), 'path');
  const isRoot = path !== '' && path.split('/').every((part) => part === '' || part === '.');
  if (!isRoot || textAt(spec, 'persistentVolumeReclaimPolicy') !== 'Recycle') return [];
  return [forbidden('spec.persistentVolumeReclaimPolicy', "may not be 'recycle' for a hostPath mount of '/'")];
}

/** The volume behind the object cannot become another; a missing secret for expansion can be added. */
function sourceChangeErrors(spec: JsonObject, oldSpec: JsonObject): FieldError[] {
  const sourceOf = (from: JsonObject): JsonObject =>
    Object.fromEntries(Object.entries(from).filter(([name]) => SOURCES.includes(name)));
  const source = sourceOf(spec);
  const oldSource = sourceOf(oldSpec);
  const csi = objectAt(source, 'csi');
  if (csi !== undefined && !has(objectAt(oldSource, 'csi'), 'controllerExpandSecretRef')) {
    const { controllerExpandSecretRef: _added, ...rest } = csi;
    source['csi'] = rest;
  }
  if (isSame(source, oldSource)) return [];
  const rule = 'spec.persistentvolumesource is immutable after creation';
  return [forbidden('spec.persistentvolumesource', `${rule}\n${changesText(oldSource, source)}`)];
}

function affinityChangeErrors(spec: JsonObject, oldSpec: JsonObject): FieldError[] {
  if (!has(oldSpec, 'nodeAffinity') || isSame(spec['nodeAffinity'], oldSpec['nodeAffinity'])) return [];
  const detail = 'field is immutable, except for updating from beta label to GA';
  return [invalid('nodeAffinity', spec['nodeAffinity'], detail)];
}

function phaseText(status: JsonObject | undefined, volume: KubeObject): string {
  return volume.metadata.deletionTimestamp === undefined ? textAt(status, 'phase') : 'Terminating';
}

const columns: readonly Column[] = [
  nameColumn,
  column('Capacity', 'string', 'How much storage there is.', (spec) => {
    const storage = amountsAt(spec, 'capacity').get('storage');
    return storage === undefined ? '0' : formatQuantity(storage);
  }),
  column('Access Modes', 'string', 'How the volume can be mounted.', (spec) =>
    accessModesText(textsAt(spec, 'accessModes')),
  ),
  column('Reclaim Policy', 'string', 'What happens when the claim is gone.', (spec) =>
    textAt(spec, 'persistentVolumeReclaimPolicy'),
  ),
  column('Status', 'string', 'Available, Bound, Released or Failed.', (_spec, status, volume) =>
    phaseText(status, volume),
  ),
  column('Claim', 'string', 'The claim that the volume is bound to.', (spec) => {
    const claim = objectAt(spec, 'claimRef');
    return claim === undefined ? '' : `${textAt(claim, 'namespace')}/${textAt(claim, 'name')}`;
  }),
  column('StorageClass', 'string', 'The storage class of the volume.', (_spec, _status, volume) =>
    storageClassOf(volume),
  ),
  column('VolumeAttributesClass', 'string', 'The class of attributes of the volume.', (spec) =>
    has(spec, 'volumeAttributesClassName') ? textAt(spec, 'volumeAttributesClassName') : '<unset>',
  ),
  column('Reason', 'string', 'Why the volume is in this state.', (_spec, status) => textAt(status, 'reason')),
  ageColumn,
  wideColumn('VolumeMode', 'string', 'Filesystem or Block.', (spec) => textAt(spec, 'volumeMode') || '<unset>'),
];

/** core/v1 PersistentVolume. */
export const persistentVolumeDefinition = coreKind({
  plural: 'persistentvolumes',
  kind: 'PersistentVolume',
  namespaced: false,
  shortNames: ['pv'],
  hasStatus: true,
  schema: objectSchema(`${CORE}.PersistentVolume`, 'Storage of the cluster.', {
    spec: [2, persistentVolumeSpec, 'What storage the volume stands for.'],
    status: [3, persistentVolumeStatus, 'The observed state.'],
  }),
  columns,
  strategy,
});
