import { isObject, objectAt, objectsAt, textAt } from '../../api/kinds/core/fields.ts';
import type { JsonObject, KubeObject } from '../../api/meta.ts';

/** What of its namespace a pod names in its spec, and so what the node that runs it has to read. */
export interface PodReferences {
  readonly secrets: ReadonlySet<string>;
  readonly configMaps: ReadonlySet<string>;
  readonly claims: ReadonlySet<string>;
  /** Empty where it has none. */
  readonly serviceAccount: string;
}

const CONTAINERS = ['containers', 'initContainers', 'ephemeralContainers'];

/** Static pods are mirrored into the API by their node, which could name anything there: they refer to nothing. */
export const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';

/** Everything that a pod refers to. */
export function podReferences(pod: KubeObject): PodReferences {
  const spec = objectAt(pod, 'spec');
  const found = { secrets: new Set<string>(), configMaps: new Set<string>(), claims: new Set<string>() };
  for (const secret of objectsAt(spec, 'imagePullSecrets')) add(found.secrets, secret);
  for (const field of CONTAINERS) for (const container of objectsAt(spec, field)) addEnvironment(found, container);
  for (const volume of objectsAt(spec, 'volumes')) addVolume(found, volume, pod.metadata.name ?? '');
  return { ...found, serviceAccount: textAt(spec, 'serviceAccountName') };
}

interface Found {
  readonly secrets: Set<string>;
  readonly configMaps: Set<string>;
  readonly claims: Set<string>;
}

function addEnvironment(found: Found, container: JsonObject): void {
  for (const source of objectsAt(container, 'envFrom')) {
    add(found.secrets, objectAt(source, 'secretRef'));
    add(found.configMaps, objectAt(source, 'configMapRef'));
  }
  for (const variable of objectsAt(container, 'env')) {
    const source = objectAt(variable, 'valueFrom');
    add(found.secrets, objectAt(source, 'secretKeyRef'));
    add(found.configMaps, objectAt(source, 'configMapKeyRef'));
  }
}

function addVolume(found: Found, volume: JsonObject, podName: string): void {
  // Whatever the driver: the credentials that it needs are called alike in all of them.
  for (const source of Object.values(volume)) {
    if (!isObject(source)) continue;
    add(found.secrets, source, 'secretName');
    add(found.secrets, objectAt(source, 'secretRef'));
    add(found.secrets, objectAt(source, 'nodePublishSecretRef'));
  }
  add(found.configMaps, objectAt(volume, 'configMap'));
  add(found.claims, objectAt(volume, 'persistentVolumeClaim'), 'claimName');
  if (objectAt(volume, 'ephemeral')) found.claims.add(`${podName}-${textAt(volume, 'name')}`);
  for (const source of objectsAt(objectAt(volume, 'projected'), 'sources')) {
    add(found.secrets, objectAt(source, 'secret'));
    add(found.configMaps, objectAt(source, 'configMap'));
  }
}

function add(names: Set<string>, reference: JsonObject | undefined, field = 'name'): void {
  const name = textAt(reference, field);
  if (name !== '') names.add(name);
}
