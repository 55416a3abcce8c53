import type { ObjectMeta } from '../../api/meta.ts';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '../../migration/fit/objects.ts';

/** Claims and volumes for tests. */

type ClaimMore = Partial<NonNullable<PersistentVolumeClaim['spec']>> & { readonly metadata?: ObjectMeta };
type VolumeMore = Partial<NonNullable<PersistentVolume['spec']>> & { readonly metadata?: ObjectMeta };

export function makeClaim(name: string, { metadata, ...spec }: ClaimMore = {}): PersistentVolumeClaim {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, namespace: 'shop', ...metadata },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
      storageClassName: '',
      ...spec,
    },
  };
}

export function makeVolume(name: string, { metadata, ...spec }: VolumeMore = {}): PersistentVolume {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name, ...metadata },
    spec: { accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' }, hostPath: { path: `/${name}` }, ...spec },
  };
}

export function makeClass(name: string, more: Partial<StorageClass> = {}): StorageClass {
  return {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name },
    provisioner: 'example.com/maker',
    ...more,
  };
}
