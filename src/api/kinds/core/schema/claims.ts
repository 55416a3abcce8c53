import { labelSelector, objectMeta } from '../../meta.ts';
import { enumeration, list, listMap, map, message, quantity, str, time } from '../../../schema.ts';
import { typedLocalObjectReference, typedObjectReference } from './references.ts';
import { volumeResourceRequirements } from './resources.ts';
import { CORE } from './package.ts';

/** Schemas of persistent volume claims. */

export const persistentVolumeClaimSpec = message(`${CORE}.PersistentVolumeClaimSpec`, 'What storage is wanted.', {
  accessModes: [
    1,
    list(str()),
    'How the volume is to be mounted: ReadWriteOnce, ReadOnlyMany, ReadWriteMany, ReadWriteOncePod.',
  ],
  resources: [2, volumeResourceRequirements, 'How much storage is wanted; requests may grow if the class allows it.'],
  volumeName: [3, str(), 'The volume that the claim is bound to.'],
  selector: [4, labelSelector, 'Selects volumes by label.'],
  storageClassName: [
    5,
    str({ pointer: true }),
    "The storage class; the cluster's default one if absent, none if empty.",
  ],
  volumeMode: [
    6,
    enumeration(['Block', 'Filesystem'], { pointer: true }),
    'Filesystem or Block; Filesystem by default.',
  ],
  dataSource: [7, typedLocalObjectReference, 'What the volume is filled from: a snapshot or another claim.'],
  dataSourceRef: [8, typedObjectReference, 'What the volume is filled from; any kind.'],
  volumeAttributesClassName: [
    9,
    str({ pointer: true }),
    "The class of attributes that may change in the volume's life.",
  ],
});

const modifyVolumeStatus = message(
  `${CORE}.ModifyVolumeStatus`,
  'How far a change of the attributes class is.',
  {
    targetVolumeAttributesClassName: [1, str(), 'The class that is being applied.'],
    status: [2, str({ default: '' }), 'Pending, InProgress or Infeasible.'],
  },
  { required: ['status'] },
);

const persistentVolumeClaimCondition = message(
  `${CORE}.PersistentVolumeClaimCondition`,
  "One aspect of a claim's state.",
  {
    type: [1, str({ default: '' }), 'What aspect this is, e.g. Resizing.'],
    status: [2, str({ default: '' }), 'True, False or Unknown.'],
    lastProbeTime: [3, time(), 'When this was last looked at.'],
    lastTransitionTime: [4, time(), 'When the status last changed.'],
    reason: [5, str(), 'One word for the cause.'],
    message: [6, str(), 'The cause in words.'],
  },
  { required: ['type', 'status'] },
);

export const persistentVolumeClaimStatus = message(`${CORE}.PersistentVolumeClaimStatus`, 'What storage there is.', {
  phase: [1, str(), 'Pending, Bound or Lost.'],
  accessModes: [2, list(str()), 'How the volume can be mounted.'],
  capacity: [3, map(quantity()), 'How much storage the volume has.'],
  conditions: [4, listMap(['type'], persistentVolumeClaimCondition), "Aspects of the claim's state."],
  allocatedResources: [5, map(quantity()), 'How much storage was asked for, during a resize.'],
  allocatedResourceStatuses: [
    7,
    map(str(), { 'x-kubernetes-map-type': 'granular' }),
    'How far the resize of each resource is.',
  ],
  currentVolumeAttributesClassName: [8, str({ pointer: true }), 'The class that is in effect.'],
  modifyVolumeStatus: [9, modifyVolumeStatus, 'How far a change of the class is.'],
});

const persistentVolumeClaimTemplate = message(
  `${CORE}.PersistentVolumeClaimTemplate`,
  'A claim to be made for a pod.',
  {
    metadata: [1, objectMeta, 'Labels and annotations of the claim.'],
    spec: [2, persistentVolumeClaimSpec, 'What storage is wanted.'],
  },
  { required: ['spec'] },
);

export const ephemeralVolumeSource = message(
  `${CORE}.EphemeralVolumeSource`,
  'A claim that lives and dies with the pod.',
  {
    volumeClaimTemplate: [1, persistentVolumeClaimTemplate, 'The claim to make.'],
  },
);
