import type { KubeObject } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import type { Env } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import { Controller } from '../../kube/controller.ts';
import type { Informer } from '../../kube/informer.ts';
import type { KubeMetrics } from '../../kube/metrics.ts';
import { keyOf, splitKey } from '../../kube/resource.ts';
import type { Service } from '../../kube/service.ts';
import { secrets as secretResource, serviceAccounts } from '../resources.ts';
import type { ConfigMap, Secret, ServiceAccount } from './objects.ts';
import { authorityOf } from './root-certificate.ts';
import { accountKeyOf, completed, isFor, lackOf } from './token-secret.ts';

export interface TokensOptions {
  readonly env: Env;
  readonly client: Client;
  readonly metrics: KubeMetrics;
  readonly accounts: Pick<Informer<ServiceAccount>, 'get' | 'onChange' | 'byIndex'>;
  /** Those that hold tokens, and no others. */
  readonly secrets: Pick<Informer<Secret>, 'get' | 'onChange' | 'byIndex' | 'list'>;
  /** Where the server says which authority it has. */
  readonly authorities: Pick<Informer<ConfigMap>, 'get' | 'onChange'>;
}

interface TokenRequest extends KubeObject {
  status: { readonly token: string };
}

/** Secrets by the account that they are for. */
export const byAccount = { account: (secret: Secret): readonly string[] => [accountKeyOf(secret)] };

/** Accounts by the secrets that they refer to. */
export const bySecret = {
  secret: ({ metadata, secrets = [] }: ServiceAccount): readonly string[] =>
    secrets.map(({ name = '' }) => `${metadata.namespace ?? ''}/${name}`),
};

/**
 * As long as the server lets a token live, which is longer than anybody needs it: these tokens end with their secret.
 * The server signs them, and looks for the secret whenever one is shown.
 */
const TOKEN_SECONDS = 2 ** 32;
const WORKERS = 2;

/** Fills secrets that ask for a token of an account, and deletes them when that is gone. */
export class TokensController implements Service {
  readonly name = 'serviceaccount_tokens';
  readonly #options: TokensOptions;
  readonly #controller: Controller;

  constructor(options: TokensOptions) {
    this.#options = options;
    const { env, metrics, accounts, secrets, authorities } = options;
    const reconcile = (key: string, signal: AbortSignal): Promise<void> => this.#reconcile(key, signal);
    this.#controller = new Controller({ name: this.name, env, metrics, workers: WORKERS, reconcile });
    secrets.onChange(({ object }) => this.#controller.enqueue(keyOf(object)));
    accounts.onChange(({ object, type }) => {
      if (type !== 'updated') this.#enqueue(secrets.byIndex('account', keyOf(object)));
    });
    // The authority's certificate is in all of them.
    authorities.onChange(() => this.#enqueue(secrets.list()));
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#controller.run(signal);
  }

  #enqueue(secrets: Iterable<Secret>): void {
    for (const secret of secrets) this.#controller.enqueue(keyOf(secret));
  }

  async #reconcile(key: string, signal: AbortSignal): Promise<void> {
    const secret = this.#options.secrets.get(key);
    if (!secret) return this.#forget(key, signal);
    const account = await this.#accountOf(secret, signal);
    if (account) return this.#complete(secret, account, signal);
    const { namespace = '', name = '', uid } = secret.metadata;
    try {
      await this.#options.client.delete(secretResource, namespace, name, signal, { preconditions: { uid } });
    } catch (error) {
      // Another one of the same name is looked at when it is heard of.
      if (!isGone(error) && !isConflict(error)) throw error;
    }
  }

  /** The account that a secret is for, asked for at the server before it is taken for gone. */
  async #accountOf(secret: Secret, signal: AbortSignal): Promise<ServiceAccount | undefined> {
    const { accounts, client } = this.#options;
    const key = accountKeyOf(secret);
    const known = accounts.get(key);
    if (known && isFor(secret, known)) return known;
    const { namespace, name } = splitKey(key);
    if (name === '') return undefined;
    try {
      const live = await client.get(serviceAccounts, namespace, name, signal);
      return isFor(secret, live) ? live : undefined;
    } catch (error) {
      if (isGone(error)) return undefined;
      throw error;
    }
  }

  async #complete(secret: Secret, account: ServiceAccount, signal: AbortSignal): Promise<void> {
    const { client, authorities } = this.#options;
    const certificate = authorityOf(authorities);
    const lack = lackOf(secret, certificate);
    if (!lack || secret.metadata.deletionTimestamp !== undefined) return;
    try {
      const token = lack.token ? await this.#token(secret, account, signal) : undefined;
      await client.update(secretResource, completed(secret, account, lack, { certificate, token }), signal);
    } catch (error) {
      if (!isGone(error)) throw error;
    }
  }

  async #token({ metadata }: Secret, account: ServiceAccount, signal: AbortSignal): Promise<string> {
    const { namespace = '', name: accountName = '', uid } = account.metadata;
    const secret = { apiVersion: 'v1', kind: 'Secret', name: metadata.name, uid: metadata.uid };
    const request = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      metadata: { uid },
      spec: { expirationSeconds: TOKEN_SECONDS, boundObjectRef: secret },
    };
    const { client } = this.#options;
    const answer = await client.post<TokenRequest>(serviceAccounts, namespace, accountName, 'token', request, signal);
    return answer.status.token;
  }

  /** Takes a secret that is gone out of the accounts that refer to it. */
  async #forget(key: string, signal: AbortSignal): Promise<void> {
    const { accounts, client } = this.#options;
    const referring = accounts.byIndex('secret', key);
    const { namespace, name } = splitKey(key);
    if (referring.length === 0 || !(await this.#isReallyGone(namespace, name, signal))) return;
    for (const account of referring) {
      const secrets = account.secrets?.filter((each) => each.name !== name) ?? [];
      try {
        await client.update(serviceAccounts, { ...account, secrets }, signal);
      } catch (error) {
        if (!isGone(error)) throw error;
      }
    }
  }

  async #isReallyGone(namespace: string, name: string, signal: AbortSignal): Promise<boolean> {
    return (await this.#options.client.find(secretResource, namespace, name, signal)) === undefined;
  }
}

function isGone(error: unknown): boolean {
  return error instanceof ApiError && error.code === 404;
}

function isConflict(error: unknown): boolean {
  return error instanceof ApiError && error.code === 409;
}
