import { ApiError } from '../../api/status.ts';
import type { Env } from '../../env/ports.ts';
import { Controller } from '../../kube/controller.ts';
import type { Informer, InformerChange } from '../../kube/informer.ts';
import type { KubeMetrics } from '../../kube/metrics.ts';
import type { KubeObject } from '../../api/meta.ts';
import type { Namespace } from '../namespaces/conditions.ts';

export interface PerNamespaceOptions {
  readonly name: string;
  readonly env: Env;
  readonly metrics: KubeMetrics;
  readonly namespaces: Pick<Informer<Namespace>, 'get' | 'onChange'>;
  /** Objects of which each namespace is to have one. */
  readonly objects: Pick<Informer<KubeObject>, 'onChange'>;
  /** Which of them; all where absent. */
  readonly isConcerned?: (object: KubeObject) => boolean;
  /** Makes it so in one namespace. */
  readonly ensure: (namespace: string, signal: AbortSignal) => Promise<void>;
}

const WORKERS = 2;

/** A controller of something that every namespace has, from its beginning to its end. */
export function perNamespace(options: PerNamespaceOptions): Controller {
  const { name, env, metrics, namespaces, objects, isConcerned = () => true, ensure } = options;
  const controller = new Controller({
    name,
    env,
    metrics,
    workers: WORKERS,
    reconcile: async (namespace, signal) => {
      const found = namespaces.get(namespace);
      if (!found || !isActive(found)) return;
      try {
        await ensure(namespace, signal);
      } catch (error) {
        if (!isEnding(error)) throw error;
      }
    },
  });
  namespaces.onChange(({ type, object, old }: InformerChange<Namespace>) => {
    if (type === 'added' || (old && isActive(object) !== isActive(old))) controller.enqueue(object.metadata.name ?? '');
  });
  objects.onChange(({ isInitial, object }) => {
    if (!isInitial && isConcerned(object)) controller.enqueue(object.metadata.namespace ?? '');
  });
  return controller;
}

function isActive({ status }: Namespace): boolean {
  return status?.phase === 'Active';
}

/** The namespace is about to go, or gone, or somebody else was faster: whatever is missing then is told of. */
function isEnding(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  if (error.code === 404 || error.reason === 'AlreadyExists') return true;
  return error.details?.causes?.some(({ reason }) => reason === 'NamespaceTerminating') ?? false;
}
