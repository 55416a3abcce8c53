import { DEFAULT_CLASS, DIRECTORY_PROVISIONER } from '../../api/storage.ts';
import type { StorageClass } from '../../migration/fit/objects.ts';

/**
 * The storage classes of a host: `shared`, the default, whose volumes all nodes of the host reach, so that guests can
 * move; and `local`, whose volumes are on the disk of the one node where their first pod runs.
 */
export function storageClasses(sharedPath: string): StorageClass[] {
  const common = {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    provisioner: DIRECTORY_PROVISIONER,
    reclaimPolicy: 'Delete',
  };
  return [
    {
      ...common,
      metadata: { name: 'shared', annotations: { [DEFAULT_CLASS]: 'true' } },
      parameters: { path: sharedPath },
      volumeBindingMode: 'Immediate',
    },
    { ...common, metadata: { name: 'local' }, volumeBindingMode: 'WaitForFirstConsumer' },
  ];
}
