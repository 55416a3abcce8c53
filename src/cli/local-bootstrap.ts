import { parse, stringify } from 'yaml';
import { BOOTSTRAP_TOKEN_NAMESPACE, BOOTSTRAP_TOKEN_TYPE, bootstrapTokenSecretName } from '../api/bootstrap-token.ts';
import { formatTime, type KubeObject } from '../api/meta.ts';
import type { Env } from '../env/ports.ts';
import type { Client } from '../kube/client.ts';
import type { Resource } from '../kube/resource.ts';
import { writePrivately } from './write-privately.ts';

const TOKEN_ID = 'godwit';
const NAMESPACE = BOOTSTRAP_TOKEN_NAMESPACE;
const NAME = bootstrapTokenSecretName(TOKEN_ID);
const SECRET_BYTES = 8;
/** Whoever has it can become a node of any name: it lasts about as long as agents take to join. */
const LIFE_MS = 15 * 60_000;
/** An agent that is started with it must have time to join. */
const LIFE_LEFT_MS_MIN = 5 * 60_000;

const secrets: Resource = { group: '', version: 'v1', plural: 'secrets', kind: 'Secret', namespaced: true };

export interface LocalBootstrapOptions {
  readonly env: Pick<Env, 'clock' | 'random'>;
  /** May write secrets. */
  readonly client: Client;
  /** An admin's, which says where the cluster is. */
  readonly adminKubeconfig: string;
  /** Where the kubeconfig with the token is to be. */
  readonly path: string;
}

/**
 * What the nodes of this machine join with: a bootstrap token like that of any other machine. It ends soon, which makes
 * it useless to whoever finds it, and is made anew when an agent is to be started and might need it.
 */
export class LocalBootstrap {
  readonly #options: LocalBootstrapOptions;
  #endsMs = 0;
  #making: Promise<void> | undefined;

  constructor(options: LocalBootstrapOptions) {
    this.#options = options;
  }

  /** Resolves when the kubeconfig is there, with a token that is good for a while. */
  async renew(signal: AbortSignal): Promise<void> {
    // Agents are started at the same time, and a second token would make the first one useless.
    this.#making ??= this.#makeMaybe(signal).finally(() => (this.#making = undefined));
    await this.#making;
  }

  async #makeMaybe(signal: AbortSignal): Promise<void> {
    const isFresh = this.#endsMs - this.#options.env.clock.now() > LIFE_LEFT_MS_MIN;
    if (!isFresh || !(await this.#isKept(signal))) await this.#make(signal);
  }

  /** Whether nobody has deleted it since. */
  async #isKept(signal: AbortSignal): Promise<boolean> {
    return (await this.#options.client.find(secrets, NAMESPACE, NAME, signal)) !== undefined;
  }

  async #make(signal: AbortSignal): Promise<void> {
    const { env, client, adminKubeconfig, path } = this.#options;
    const secret = Buffer.from(env.random.bytes(SECRET_BYTES)).toString('hex');
    const endsMs = env.clock.now() + LIFE_MS;
    const fields = {
      'token-id': TOKEN_ID,
      'token-secret': secret,
      'usage-bootstrap-authentication': 'true',
      description: 'for the nodes that godwit up starts',
      expiration: formatTime(endsMs),
    };
    const body = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: NAME, namespace: NAMESPACE },
      type: BOOTSTRAP_TOKEN_TYPE,
      data: Object.fromEntries(
        Object.entries(fields).map(([key, value]) => [key, Buffer.from(value).toString('base64')]),
      ),
    } satisfies KubeObject;
    await client.patch(secrets, NAMESPACE, NAME, { type: 'apply', body, force: true }, signal);
    writePrivately(path, kubeconfigWith(adminKubeconfig, `${TOKEN_ID}.${secret}`));
    this.#endsMs = endsMs;
  }
}

function kubeconfigWith(adminKubeconfig: string, token: string): string {
  const config = parse(adminKubeconfig) as { users: { name: string; user: object }[] };
  return stringify({ ...config, users: config.users.map(({ name }) => ({ name, user: { token } })) });
}
