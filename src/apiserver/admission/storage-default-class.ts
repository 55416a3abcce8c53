import type { KubeObject } from '../../api/meta.ts';
import type { AdmissionAttributes, AdmissionPlugin, Registry } from '../registry/contract.ts';
import { isMainResource } from './attributes.ts';

interface PersistentVolumeClaim extends KubeObject {
  spec?: { storageClassName?: string | null };
}

const BUCKET = 'storageclasses.storage.k8s.io';
const CLASS_ANNOTATION = 'volume.beta.kubernetes.io/storage-class';
const DEFAULT_ANNOTATIONS = [
  'storageclass.kubernetes.io/is-default-class',
  'storageclass.beta.kubernetes.io/is-default-class',
];

/** Gives claims that name no StorageClass the default one; an explicitly empty name asks for none. */
export class StorageDefaultClass implements AdmissionPlugin {
  readonly name = 'DefaultStorageClass';
  readonly #registry: Pick<Registry, 'view'>;

  constructor(registry: Pick<Registry, 'view'>) {
    this.#registry = registry;
  }

  handles(attributes: AdmissionAttributes): boolean {
    return attributes.operation === 'CREATE' && isMainResource(attributes, '', 'persistentvolumeclaims');
  }

  async mutate({ object }: AdmissionAttributes): Promise<void> {
    const claim = object as PersistentVolumeClaim | undefined;
    if (!claim?.spec || hasClass(claim)) return;
    const name = this.#defaultClass()?.metadata.name;
    if (name !== undefined) claim.spec.storageClassName = name;
  }

  /** The newest of several, then the first by name, as upstream. */
  #defaultClass(): KubeObject | undefined {
    let chosen: KubeObject | undefined;
    for (const each of this.#registry.view(BUCKET).list()) {
      if (isDefault(each) && (!chosen || createdAt(each) > createdAt(chosen))) chosen = each;
    }
    return chosen;
  }
}

function hasClass(claim: PersistentVolumeClaim): boolean {
  if (Object.hasOwn(claim.metadata.annotations ?? {}, CLASS_ANNOTATION)) return true;
  return claim.spec?.storageClassName !== undefined && claim.spec.storageClassName !== null;
}

function isDefault({ metadata }: KubeObject): boolean {
  const annotations = metadata.annotations ?? {};
  return DEFAULT_ANNOTATIONS.some((key) => Object.hasOwn(annotations, key) && annotations[key] === 'true');
}

function createdAt({ metadata }: KubeObject): string {
  return metadata.creationTimestamp ?? '';
}
