import type { KubeObject } from '../../api/meta.ts';
import { ApiError, forbiddenRequest, notFound } from '../../api/status.ts';
import type { AdmissionAttributes, AdmissionPlugin, Registry } from '../registry/contract.ts';
import { isMainResource, isResource, nameOf, refusal } from './attributes.ts';

/** Namespaces that the system itself lives in. */
const IMMORTAL: ReadonlySet<string> = new Set(['default', 'kube-system', 'kube-public', 'kube-node-lease']);

const NAMESPACES = { group: '', plural: 'namespaces' };

interface Namespace extends KubeObject {
  status?: { phase?: string };
}

/** Keeps objects inside namespaces that exist and stay, and the system's own namespaces alive. */
export class NamespaceLifecycle implements AdmissionPlugin {
  readonly name = 'NamespaceLifecycle';
  readonly #registry: Pick<Registry, 'view' | 'pending'>;

  constructor(registry: Pick<Registry, 'view' | 'pending'>) {
    this.#registry = registry;
  }

  handles({ operation }: AdmissionAttributes): boolean {
    return operation !== 'CONNECT';
  }

  mutate(attributes: AdmissionAttributes): void {
    const { operation, target } = attributes;
    if (isResource(attributes, '', 'namespaces')) return refuseImmortal(attributes);
    if (target.namespace === '' || operation === 'DELETE') return;
    // An answer about the namespace would tell strangers which ones exist.
    if (isResource(attributes, 'authorization.k8s.io', 'localsubjectaccessreviews')) return;
    const namespace = this.#registry.view<Namespace>('namespaces').get('', target.namespace);
    if (!namespace) throw notFound(NAMESPACES, target.namespace);
    if (operation === 'CREATE' && isTerminating(namespace)) throw terminating(attributes);
  }

  /**
   * Asks again: a webhook may have taken its time meanwhile. Whoever empties a namespace looks for what is in it when
   * its end is durable; what came after that would never be found.
   */
  confirm(attributes: AdmissionAttributes): void {
    const { namespace } = attributes.target;
    this.mutate(attributes);
    if (namespace === '' || attributes.operation !== 'CREATE') return;
    const pending = this.#registry.pending('namespaces', '', namespace) as Namespace | undefined;
    if (pending && isTerminating(pending)) throw terminating(attributes);
  }
}

function refuseImmortal(attributes: AdmissionAttributes): void {
  if (attributes.operation !== 'DELETE' || !isMainResource(attributes, '', 'namespaces')) return;
  const name = nameOf(attributes);
  if (IMMORTAL.has(name)) throw forbiddenRequest(NAMESPACES, name, 'this namespace may not be deleted');
}

function isTerminating(namespace: Namespace): boolean {
  return namespace.metadata.deletionTimestamp !== undefined || namespace.status?.phase === 'Terminating';
}

function terminating(attributes: AdmissionAttributes): ApiError {
  const { namespace } = attributes.target;
  const refused = refusal(
    attributes,
    `unable to create new content in namespace ${namespace} because it is being terminated`,
  );
  const cause = {
    reason: 'NamespaceTerminating',
    message: `namespace ${namespace} is being terminated`,
    field: 'metadata.namespace',
  };
  return new ApiError(refused.code, refused.reason, refused.message, { ...refused.details, causes: [cause] });
}
