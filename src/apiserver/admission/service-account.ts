import type { KubeObject } from '../../api/meta.ts';
import { type Clock, sleep } from '../../env/ports.ts';
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

/** How often, and how long each time, a pod in a new namespace waits for the account that is about to be made there. */
const ATTEMPTS_MAX = 10;
const ATTEMPT_MS = 150;

export interface ServiceAccountAdmissionOptions {
  readonly registry: Pick<Registry, 'view'>;
  readonly clock: Clock;
  /** Whether somebody makes the default account of each namespace. Where nobody does, it is taken on trust. */
  readonly hasDefaultAccounts: boolean;
}

/**
 * Gives every pod a service account and refuses one that does not exist. No token volume is added: launcher pods run
 * without a kubelet that could project one, and what needs a token asks for it with a TokenRequest.
 */
export class ServiceAccountAdmission implements AdmissionPlugin {
  readonly name = 'ServiceAccount';
  readonly #options: ServiceAccountAdmissionOptions;

  constructor(options: ServiceAccountAdmissionOptions) {
    this.#options = options;
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
    if (name === DEFAULT_NAME && this.#options.hasDefaultAccounts)
      await this.#untilDefault(attributes.target.namespace);
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

  /** A namespace and its first pod often come in one go; the account is then a moment late. */
  async #untilDefault(namespace: string): Promise<void> {
    for (let attempt = 1; attempt < ATTEMPTS_MAX && !this.#get(namespace, DEFAULT_NAME); attempt++)
      await sleep(this.#options.clock, ATTEMPT_MS);
  }

  #get(namespace: string, name: string): ServiceAccount | undefined {
    return this.#options.registry.view<ServiceAccount>('serviceaccounts').get(namespace, name);
  }

  #find(attributes: AdmissionAttributes, name: string): ServiceAccount | undefined {
    const { namespace } = attributes.target;
    const found = this.#get(namespace, name);
    if (found || (name === DEFAULT_NAME && !this.#options.hasDefaultAccounts)) return found;
    const missing = `serviceaccount "${name}" not found`;
    throw refusal(attributes, `error looking up service account ${namespace}/${name}: ${missing}`);
  }
}

/** A static pod's reflection: the kubelet would fight any change to it. */
function isMirror({ object }: AdmissionAttributes): boolean {
  return Object.hasOwn(object?.metadata.annotations ?? {}, MIRROR_ANNOTATION);
}
