import {
  DIRECTORY_PROVISIONER,
  LOCAL_STORAGE_PATH,
  PROVISIONED_BY,
  SELECTED_NODE,
  STORAGE_PROVISIONER,
  VOLUME_NODE,
  VOLUME_PROTECTION,
} from '../../api/storage.ts';
import type { Node, PersistentVolume, PersistentVolumeClaim, StorageClass } from '../../migration/fit/objects.ts';
import { storageClassNameOf } from '../../migration/fit/volume-match.ts';

/** What to do about a claim. */
export type Provision =
  /** It is not for us, or not yet. */
  | { readonly type: 'nothing' }
  | { readonly type: 'make'; readonly volume: PersistentVolume }
  /** No volume of this class will do. */
  | { readonly type: 'refuse'; readonly message: string }
  /** None can be had on the node that was chosen; another has to be. */
  | { readonly type: 'choose-again'; readonly message: string };

/** What is known besides the claim. */
export interface ProvisionView {
  readonly storageClass: (name: string) => StorageClass | undefined;
  readonly node: (name: string) => Node | undefined;
}

const HOSTNAME = 'kubernetes.io/hostname';
const PATH = 'path';
/** Modes of access that several nodes could make use of. */
const SHARED_ACCESS = ['ReadWriteMany', 'ReadOnlyMany'];

/**
 * Decides about a claim of a class whose volumes are directories: below the path that the class names, which all nodes
 * of the host reach, or, where it names none, on the disk of the one node where the claim's first pod will run.
 */
export function provisionFor(claim: PersistentVolumeClaim, view: ProvisionView): Provision {
  const { metadata, spec } = claim;
  const isAsked = metadata.annotations?.[STORAGE_PROVISIONER] === DIRECTORY_PROVISIONER;
  const isOpen = metadata.deletionTimestamp === undefined && (spec?.volumeName ?? '') === '';
  const storageClass = view.storageClass(storageClassNameOf(claim));
  if (!isAsked || !isOpen || storageClass?.provisioner !== DIRECTORY_PROVISIONER) return { type: 'nothing' };
  const selected = metadata.annotations?.[SELECTED_NODE];
  const waits = storageClass.volumeBindingMode === 'WaitForFirstConsumer';
  if (waits && selected === undefined) return { type: 'nothing' };
  const problem = classProblem(storageClass) ?? claimProblem(claim);
  if (problem !== undefined) return { type: 'refuse', message: problem };
  const sharedPath = storageClass.parameters?.[PATH];
  if (sharedPath !== undefined) return { type: 'make', volume: shared(claim, storageClass, sharedPath) };
  const isMany = spec?.accessModes?.find((mode) => SHARED_ACCESS.includes(mode));
  if (isMany !== undefined)
    return refuse(`a volume on the disk of one node cannot be ${isMany}; a class with a shared path can`);
  if (!waits) return refuse('a class without a path needs volumeBindingMode WaitForFirstConsumer');
  return onNode(claim, storageClass, selected ?? '', view);
}

function onNode(
  claim: PersistentVolumeClaim,
  storageClass: StorageClass,
  name: string,
  { node: find }: ProvisionView,
): Provision {
  const node = find(name);
  if (!node) return { type: 'choose-again', message: `node ${JSON.stringify(name)} is gone` };
  const root = node.metadata.annotations?.[LOCAL_STORAGE_PATH] ?? '';
  const hostname = node.metadata.labels?.[HOSTNAME] ?? '';
  if (!isSoundPath(root) || hostname === '')
    return { type: 'choose-again', message: `node ${JSON.stringify(name)} says of no directory for volumes` };
  const volume = volumeFor(claim, storageClass);
  const matchExpressions = [{ key: HOSTNAME, operator: 'In', values: [hostname] }];
  return {
    type: 'make',
    volume: {
      ...volume,
      metadata: { ...volume.metadata, annotations: { ...volume.metadata.annotations, [VOLUME_NODE]: name } },
      spec: {
        ...volume.spec,
        local: { path: below(root, volume) },
        nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions }] } },
      },
    },
  };
}

function shared(claim: PersistentVolumeClaim, storageClass: StorageClass, path: string): PersistentVolume {
  const volume = volumeFor(claim, storageClass);
  return { ...volume, spec: { ...volume.spec, hostPath: { path: below(path, volume), type: 'DirectoryOrCreate' } } };
}

/** Named after the claim's UID, so that making it twice is making it once. */
function volumeFor(claim: PersistentVolumeClaim, { metadata, reclaimPolicy }: StorageClass): PersistentVolume {
  const { namespace = '', name = '', uid = '', resourceVersion = '' } = claim.metadata;
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: {
      name: `pvc-${uid}`,
      annotations: { [PROVISIONED_BY]: DIRECTORY_PROVISIONER },
      // It would be put there anyway; that it is there from the start saves a write.
      finalizers: [VOLUME_PROTECTION],
    },
    spec: {
      capacity: { storage: claim.spec?.resources?.requests?.['storage'] ?? '0' },
      accessModes: claim.spec?.accessModes ?? [],
      volumeMode: 'Filesystem',
      storageClassName: metadata.name ?? '',
      persistentVolumeReclaimPolicy: reclaimPolicy ?? 'Delete',
      claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name, uid, resourceVersion },
    },
  };
}

function below(root: string, { metadata }: PersistentVolume): string {
  return `${root.replace(/\/+$/, '')}/${metadata.name}`;
}

function classProblem({ parameters = {}, mountOptions = [] }: StorageClass): string | undefined {
  const unknown = Object.keys(parameters).find((name) => name !== PATH);
  if (unknown !== undefined) return `the class has a parameter ${JSON.stringify(unknown)}, which means nothing here`;
  if (mountOptions.length > 0) return 'the class has mount options, but directories are not mounted';
  const path = parameters[PATH];
  if (path === undefined || isSoundPath(path)) return undefined;
  return `the class has the path ${JSON.stringify(path)}, which is not an absolute path below the root`;
}

function claimProblem({ spec = {} }: PersistentVolumeClaim): string | undefined {
  if (spec.volumeMode === 'Block') return 'volumeMode Block cannot be had: volumes of this class are directories';
  if (spec.selector) return 'a selector chooses among volumes that are there, and volumes of this class are made';
  if (spec.dataSource ?? spec.dataSourceRef) return 'a volume of this class begins empty: dataSource is not supported';
  if (spec.volumeAttributesClassName) return 'volumes of this class have no attributes classes';
  return undefined;
}

/** Nobody's volumes are the root of a disk, and none is reached by a detour. */
function isSoundPath(path: string): boolean {
  const [first, ...parts] = path.replace(/\/+$/, '').split('/');
  return first === '' && parts.length > 0 && parts.every((part) => part !== '' && part !== '.' && part !== '..');
}

function refuse(message: string): Provision {
  return { type: 'refuse', message };
}
