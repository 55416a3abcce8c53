import type { KubeObject } from '../../api/meta.ts';
import type { AdmissionAttributes, AdmissionPlugin, Registry } from '../registry/contract.ts';
import { isMainResource, refusal } from './attributes.ts';

interface Pod extends KubeObject {
  spec?: {
    serviceAccountName?: string;
    serviceAccount?: string;
    imagePullSecrets?: { name?: string }[];
  };
}

interface ServiceAccount extends KubeObject {
  imagePullSecrets?: { name?: string }[];
}

const DEFAULT_NAME = 'default';
const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';

/**
 * Gives every pod a service account and refuses one that does not exist. `default` is taken on trust: upstream waits
 * for a controller to create it. No token volume is added: launcher pods run without a kubelet that could project one,
 * and what needs a token asks for it with a TokenRequest.
 */
export class ServiceAccountAdmission implements AdmissionPlugin {
  readonly name = 'ServiceAccount';
  readonly #registry: Pick<Registry, 'view'>;

  constructor(registry: Pick<Registry, 'view'>) {
    this.#registry = registry;
  }

  handles(attributes: AdmissionAttributes): boolean {
    return attributes.operation === 'CREATE' && isMainResource(attributes, '', 'pods');
  }

  async mutate(attributes: AdmissionAttributes): Promise<void> {
    const spec = (attributes.object as Pod | undefined)?.spec;
    if (!spec || isMirror(attributes)) return;
    // The older field is an alias that a client may still send alone; both are stored, as upstream shows them.
    const name = spec.serviceAccountName || spec.serviceAccount || DEFAULT_NAME;
    spec.serviceAccountName = name;
    spec.serviceAccount = name;
    const secrets = this.#find(attributes, name)?.imagePullSecrets ?? [];
    if ((spec.imagePullSecrets ?? []).length === 0 && secrets.length > 0) {
      spec.imagePullSecrets = secrets.map((secret) => ({ ...secret }));
    }
  }

  async validate(attributes: AdmissionAttributes): Promise<void> {
    const name = (attributes.object as Pod | undefined)?.spec?.serviceAccountName ?? '';
    if (isMirror(attributes)) {
      if (name !== '') throw refusal(attributes, 'a mirror pod may not reference service accounts');
      return;
    }
    const { namespace } = attributes.target;
    if (name === '') {
      const pod = `${namespace}/${attributes.object?.metadata.name ?? ''}`;
      throw refusal(attributes, `no service account specified for pod ${pod}`);
    }
    this.#find(attributes, name);
  }

  #find(attributes: AdmissionAttributes, name: string): ServiceAccount | undefined {
    const { namespace } = attributes.target;
    const found = this.#registry.view<ServiceAccount>('serviceaccounts').get(namespace, name);
    if (found || name === DEFAULT_NAME) return found;
    const missing = `serviceaccount "${name}" not found`;
    throw refusal(attributes, `error looking up service account ${namespace}/${name}: ${missing}`);
  }
}

/** A static pod's reflection: the kubelet would fight any change to it. */
function isMirror({ object }: AdmissionAttributes): boolean {
  return Object.hasOwn(object?.metadata.annotations ?? {}, MIRROR_ANNOTATION);
}
