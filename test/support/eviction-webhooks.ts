import { createServer } from 'node:net';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { Anything } from './api.ts';
import type { HttpClient } from './http-client.ts';

const CONFIGURATION = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/virt-api-validator';
const ROLE = '/apis/rbac.authorization.k8s.io/v1/clusterroles/godwit:extension';
const MERGE = { 'content-type': 'application/merge-patch+json' };

/** The webhooks that evictions are asked about, which can be made to be down: nobody listens where they are said to. */
export class EvictionWebhooks {
  readonly #api: HttpClient;

  constructor(api: HttpClient) {
    this.#api = api;
  }

  /** Has them down for as long as something takes. */
  async whileDown<T>(action: () => Promise<T>): Promise<T> {
    const { rules } = (await this.#api.request('GET', ROLE)).expect(200).json;
    const { webhooks } = (await this.#api.request('GET', CONFIGURATION)).expect(200).json;
    // Whoever is registered sees to it that it stays so: for a while it may not.
    await this.#patch(ROLE, { rules: rules.filter((rule: Anything) => !keepsWebhooks(rule)) });
    const url = `https://127.0.0.1:${await closedPort()}/pod-eviction-validate`;
    try {
      await this.#patch(CONFIGURATION, {
        webhooks: webhooks.map((each: Anything) =>
          each.name.includes('eviction') ? { ...each, clientConfig: { ...each.clientConfig, url } } : each,
        ),
      });
      return await action();
    } finally {
      await this.#patch(CONFIGURATION, { webhooks });
      await this.#patch(ROLE, { rules });
    }
  }

  async #patch(path: string, body: object): Promise<void> {
    (await this.#api.request('PATCH', path, { body, headers: MERGE })).expect(200);
  }
}

function keepsWebhooks({ apiGroups, verbs }: Anything): boolean {
  return apiGroups.includes('admissionregistration.k8s.io') && verbs.includes('patch');
}

/** A port that was free a moment ago, and that nobody listens on. */
async function closedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
