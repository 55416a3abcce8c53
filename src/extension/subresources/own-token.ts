import { SYSTEM_NAMESPACE } from '../../api/kubevirt/well-known.ts';
import type { KubeObject } from '../../api/meta.ts';
import type { Clock } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import type { Resource } from '../../kube/resource.ts';
import { SERVICE_ACCOUNT } from '../identity.ts';

const serviceAccounts: Resource = {
  group: '',
  version: 'v1',
  plural: 'serviceaccounts',
  kind: 'ServiceAccount',
  namespaced: true,
};

interface TokenRequest extends KubeObject {
  status?: { token?: string; expirationTimestamp?: string };
}

const VALIDITY_SECONDS = 3_600;
/** A new one is asked for when less than this is left. */
const RENEW_BEFORE_MS = 600_000;

/** A token of the extension's own account, by which agents recognise it. */
export class OwnToken {
  readonly #client: Client;
  readonly #clock: Clock;
  #known: { readonly token: string; readonly expiresMs: number } | undefined;

  constructor(client: Client, clock: Clock) {
    this.#client = client;
    this.#clock = clock;
  }

  /** One that is good for a while. */
  async current(signal: AbortSignal): Promise<string> {
    if (this.#known && this.#known.expiresMs - this.#clock.now() > RENEW_BEFORE_MS) return this.#known.token;
    const body: KubeObject = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      metadata: {},
      spec: { expirationSeconds: VALIDITY_SECONDS },
    };
    const { status } = await this.#client.post<TokenRequest>(
      serviceAccounts,
      SYSTEM_NAMESPACE,
      SERVICE_ACCOUNT,
      'token',
      body,
      signal,
    );
    const { token = '', expirationTimestamp = '' } = status ?? {};
    this.#known = { token, expiresMs: Date.parse(expirationTimestamp) };
    return token;
  }
}
