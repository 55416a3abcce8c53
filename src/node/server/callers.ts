import { createHash } from 'node:crypto';
import type { KubeObject } from '../../api/meta.ts';
import { ApiError, serviceUnavailable, unauthorized } from '../../api/status.ts';
import type { Clock } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import type { Resource } from '../../kube/resource.ts';
import { ShortMemory } from './short-memory.ts';

/** Who calls, and what they may do: the API server knows both, as kubelets have it. */

/** Somebody whom the API server, or the cluster's authority, vouches for. */
export interface Caller {
  readonly username: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** What a caller has shown. */
export interface Shown {
  /** The subject of a certificate that has been verified. */
  readonly certificate: { readonly commonName: string; readonly organizations: readonly string[] } | undefined;
  /** The header. */
  readonly authorization: string | undefined;
}

interface TokenReview extends KubeObject {
  spec: { readonly token: string };
  status?: { readonly authenticated?: boolean; readonly user?: Partial<Caller> };
}

interface AccessReview extends KubeObject {
  spec: object;
  status?: { readonly allowed?: boolean; readonly reason?: string };
}

const tokenReviews: Resource<TokenReview> = {
  group: 'authentication.k8s.io',
  version: 'v1',
  plural: 'tokenreviews',
  kind: 'TokenReview',
  namespaced: false,
};

const accessReviews: Resource<AccessReview> = {
  group: 'authorization.k8s.io',
  version: 'v1',
  plural: 'subjectaccessreviews',
  kind: 'SubjectAccessReview',
  namespaced: false,
};

/** How long answers are good: a right that is taken away is gone after this, one that is given is there sooner. */
const YES_MS = 10_000;
const NO_MS = 2_000;
const ANSWERS_MAX = 1_000;
/** Longer ones are no tokens. */
const TOKEN_LENGTH_MAX = 16 * 1024;

export class Callers {
  readonly #client: Client;
  readonly #node: string;
  readonly #tokens: ShortMemory<Caller | undefined>;
  readonly #rights: ShortMemory<boolean>;

  constructor(options: { readonly client: Client; readonly clock: Clock; readonly node: string }) {
    this.#client = options.client;
    this.#node = options.node;
    this.#tokens = new ShortMemory(options.clock, ANSWERS_MAX);
    this.#rights = new ShortMemory(options.clock, ANSWERS_MAX);
  }

  /** Who it is. Rejects with 401 for nobody, 503 where nobody can tell. */
  async identify({ certificate, authorization }: Shown, signal: AbortSignal): Promise<Caller> {
    if (certificate) {
      const groups = [...certificate.organizations, 'system:authenticated'];
      return { username: certificate.commonName, groups: [...new Set(groups)] };
    }
    const token = /^bearer +([^\s]+)$/i.exec(authorization ?? '')?.[1];
    if (token === undefined || token.length > TOKEN_LENGTH_MAX) throw unauthorized();
    const caller = await this.#tokens.recall(
      createHash('sha256').update(token).digest('base64'),
      (answer) => (answer ? YES_MS : NO_MS),
      () => this.#review(token, signal),
    );
    if (!caller) throw unauthorized();
    return caller;
  }

  /**
   * Resolves when the caller may use one of these subresources of the node in this way, the first that is allowed being
   * enough. Rejects with 403 otherwise, 503 where nobody can tell.
   */
  async permit(caller: Caller, verb: string, subresources: readonly string[], signal: AbortSignal): Promise<void> {
    for (const subresource of subresources) {
      const key = JSON.stringify([caller, verb, subresource]);
      const keepMs = (isAllowed: boolean): number => (isAllowed ? YES_MS : NO_MS);
      if (await this.#rights.recall(key, keepMs, () => this.#mayUse(caller, verb, subresource, signal))) return;
    }
    const what = `resource=nodes, subresource=${subresources.join(' or ')}`;
    const message = `Forbidden (user=${caller.username}, verb=${verb}, ${what}, name=${this.#node})`;
    throw new ApiError(403, 'Forbidden', message);
  }

  async #review(token: string, signal: AbortSignal): Promise<Caller | undefined> {
    const review: TokenReview = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenReview',
      metadata: {},
      spec: { token },
    };
    const { status } = await known(this.#client.create(tokenReviews, review, signal), 'who is asking');
    const { username = '', uid, groups = [], extra } = status?.user ?? {};
    if (status?.authenticated !== true || username === '') return undefined;
    return { username, groups, ...(uid ? { uid } : {}), ...(extra ? { extra } : {}) };
  }

  async #mayUse(caller: Caller, verb: string, subresource: string, signal: AbortSignal): Promise<boolean> {
    const { username, ...rest } = caller;
    const resourceAttributes = { verb, version: 'v1', resource: 'nodes', subresource, name: this.#node };
    const spec = { ...rest, user: username, resourceAttributes };
    const review: AccessReview = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      metadata: {},
      spec,
    };
    const { status } = await known(this.#client.create(accessReviews, review, signal), 'what the caller may do');
    return status?.allowed === true;
  }
}

async function known<T>(asked: Promise<T>, what: string): Promise<T> {
  try {
    return await asked;
  } catch (error) {
    throw serviceUnavailable(`the API server does not say ${what}`, error);
  }
}
