import type { Json, KubeObject } from '../../api/meta.ts';
import type { ResourceDefinition } from '../../api/resource.ts';
import { labelSelectorText, type LabelSelectorObject, selectorFrom } from '../../machinery/selectors.ts';

/** The `scale` subresource: a small view of any kind that has replicas. */

/** An autoscaling/v1 Scale. */
export interface Scale extends KubeObject {
  /** A client may leave it out, which asks for none. */
  spec?: { replicas?: number };
  status: { replicas: number; selector?: string };
}

type ScalePaths = NonNullable<ResourceDefinition['scale']>;

/** Where the built-in kinds keep what a Scale shows. */
const BUILTIN_PATHS: ScalePaths = {
  specReplicasPath: '.spec.replicas',
  statusReplicasPath: '.status.replicas',
  labelSelectorPath: '.spec.selector',
};

function lookUp(object: unknown, path: string | undefined): unknown {
  if (path === undefined) return undefined;
  let value: unknown = object;
  for (const part of path.split('.').filter((each) => each !== '')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined;
    value = (value as Record<string, unknown>)[part];
  }
  return value;
}

function selectorText(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null) return undefined;
  // A replication controller's selector is a plain map, everyone else's a LabelSelector.
  const isLabelSelector = 'matchLabels' in value || 'matchExpressions' in value;
  return labelSelectorText(
    selectorFrom(isLabelSelector ? (value as LabelSelectorObject) : { matchLabels: value as Record<string, string> }),
  );
}

/** The Scale of an object. */
export function scaleOf(definition: ResourceDefinition, object: KubeObject): Scale {
  const paths = definition.scale ?? BUILTIN_PATHS;
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  const replicas = lookUp(object, paths.specReplicasPath);
  const selector = selectorText(lookUp(object, paths.labelSelectorPath));
  return {
    apiVersion: 'autoscaling/v1',
    kind: 'Scale',
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    spec: typeof replicas === 'number' ? { replicas } : {},
    status: {
      replicas: Number(lookUp(object, paths.statusReplicasPath) ?? 0),
      ...(selector === undefined ? {} : { selector }),
    },
  };
}

/** The object with the replicas that a Scale asks for. Changes `object`. */
export function withScale(definition: ResourceDefinition, object: KubeObject, scale: Scale): KubeObject {
  const parts = (definition.scale ?? BUILTIN_PATHS).specReplicasPath.split('.').filter((part) => part !== '');
  const last = parts.pop() ?? 'replicas';
  let parent = object as Record<string, unknown>;
  for (const part of parts) parent = (parent[part] ??= {}) as Record<string, unknown>;
  parent[last] = (scale.spec?.replicas ?? 0) satisfies Json;
  // The Scale's preconditions are the object's.
  if (scale.metadata.resourceVersion) object.metadata.resourceVersion = scale.metadata.resourceVersion;
  return object;
}
