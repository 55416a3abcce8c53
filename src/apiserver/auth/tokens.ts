import { createHash, createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { CompactSign, calculateJwkThumbprint, compactVerify, exportJWK, type JWK } from 'jose';
import type { KubeObject } from '../../api/meta.ts';
import type { Env } from '../../env/ports.ts';
import type { UserInfo } from '../http/message.ts';
import type { Registry } from '../registry/contract.ts';
import { type ObjectClaim, parseClaims, type TokenClaims } from './token-claims.ts';
import { AUTHENTICATED_GROUP, CREDENTIAL_ID_KEY, serviceAccountGroups, serviceAccountUsername } from './users.ts';

/** What a token turned out to be. The error never contains any of it. */
export type TokenVerdict =
  | { readonly valid: true; readonly user: UserInfo; readonly audiences: readonly string[] }
  | { readonly valid: false; readonly error: string };

/** Tells whose a bearer token is. Without audiences, it has to be meant for this server. */
export interface TokenVerifier {
  verify(token: string, audiences?: readonly string[]): Promise<TokenVerdict>;
}

/** Whom a new token is for and what it dies with. */
export interface TokenRequestClaims {
  readonly namespace: string;
  readonly serviceAccount: ObjectClaim;
  readonly pod?: ObjectClaim;
  readonly secret?: ObjectClaim;
  /** Alone: the object that the token is bound to. With a pod: where that runs, for information. */
  readonly node?: ObjectClaim;
}

const ALGORITHM = 'ES256';
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Our tokens are about 1 KiB. Whoever sends more is not sending one of them. */
const TOKEN_LENGTH_MAX = 16 * 1024;

/** Verified signatures that are remembered: checking one costs more than all the rest of a small request. */
const REMEMBERED_MAX = 4096;

/** Clocks of a restarted machine may step back a little; and upstream lets deleted objects act this much longer. */
const LEEWAY_MS = 60_000;

/** Signs service account tokens, and verifies them against the objects that they speak of, which must still exist. */
export class ServiceAccountTokens implements TokenVerifier {
  /** What tokens are meant for unless they say otherwise. */
  readonly audiences: readonly string[];
  readonly #env: Pick<Env, 'clock' | 'random'>;
  readonly #registry: Pick<Registry, 'view'>;
  readonly #issuer: string;
  readonly #privateKey: KeyObject;
  readonly #publicKey: KeyObject;
  readonly #publicJwk: Promise<JWK>;
  /**
   * Claims by the digest of a token whose signature was right. That never changes; everything that may (the time,
   * the objects) is looked at on every request.
   */
  readonly #remembered = new Map<string, TokenClaims>();

  constructor(options: {
    readonly env: Pick<Env, 'clock' | 'random'>;
    readonly registry: Pick<Registry, 'view'>;
    /** ECDSA P-256, PKCS#8 PEM. */
    readonly keyPem: string;
    readonly issuer: string;
    readonly audiences: readonly string[];
  }) {
    this.#env = options.env;
    this.#registry = options.registry;
    this.#issuer = options.issuer;
    this.audiences = options.audiences;
    this.#privateKey = createPrivateKey(options.keyPem);
    this.#publicKey = createPublicKey(this.#privateKey);
    this.#publicJwk = publicJwk(this.#publicKey);
  }

  /** Signs a token that is valid from now for so many seconds. Answers when it ends, too. */
  async sign(
    claims: TokenRequestClaims,
    audiences: readonly string[],
    validitySeconds: number,
  ): Promise<{ readonly token: string; readonly expiresMs: number }> {
    const { kid } = await this.#publicJwk;
    const nowSeconds = Math.floor(this.#env.clock.now() / 1000);
    const { namespace, serviceAccount: serviceaccount, pod, secret, node } = claims;
    const payload = {
      aud: audiences,
      exp: nowSeconds + validitySeconds,
      iat: nowSeconds,
      iss: this.#issuer,
      jti: this.#env.random.uuid(),
      'kubernetes.io': { namespace, serviceaccount, pod, secret, node },
      nbf: nowSeconds,
      sub: serviceAccountUsername(namespace, serviceaccount.name),
    };
    const token = await new CompactSign(encoder.encode(JSON.stringify(payload)))
      .setProtectedHeader({ alg: ALGORITHM, kid })
      .sign(this.#privateKey);
    return { token, expiresMs: payload.exp * 1000 };
  }

  async verify(token: string, audiences: readonly string[] = this.audiences): Promise<TokenVerdict> {
    const claims = await this.#signedClaims(token);
    if (!claims) return { valid: false, error: 'invalid bearer token' };
    const shared = claims.audiences.filter((audience) => audiences.includes(audience));
    if (shared.length === 0) {
      const [has, wants] = [claims.audiences, audiences].map((each) => JSON.stringify(each));
      return { valid: false, error: `token audiences ${has} is invalid for the target audiences ${wants}` };
    }
    const error = this.#timeError(claims) ?? this.#objectError(claims);
    if (error !== undefined) return { valid: false, error };
    return { valid: true, user: userOf(claims), audiences: shared };
  }

  /** The document at `/openid/v1/jwks`: the keys that others verify our tokens with. */
  async keySet(): Promise<{ readonly keys: readonly JWK[] }> {
    return { keys: [await this.#publicJwk] };
  }

  /** The document at `/.well-known/openid-configuration`. */
  discoveryDocument(jwksUri: string): Readonly<Record<string, unknown>> {
    return {
      issuer: this.#issuer,
      jwks_uri: jwksUri,
      response_types_supported: ['id_token'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: [ALGORITHM],
    };
  }

  /** The claims of a token that we signed, or undefined. The algorithm is ours to name, never the token's. */
  async #signedClaims(token: string): Promise<TokenClaims | undefined> {
    if (token.length > TOKEN_LENGTH_MAX) return undefined;
    const digest = createHash('sha256').update(token).digest('base64');
    const known = this.#remembered.get(digest);
    if (known) return known;
    let payload: Uint8Array;
    try {
      ({ payload } = await compactVerify(token, this.#publicKey, { algorithms: [ALGORITHM] }));
    } catch {
      // Malformed, of another algorithm or of another key: none of these is a token of ours, and that is the answer.
      return undefined;
    }
    const claims = parseClaims(decoder.decode(payload), this.#issuer);
    if (claims) this.#remember(digest, claims);
    return claims;
  }

  #remember(digest: string, claims: TokenClaims): void {
    const oldest = this.#remembered.size >= REMEMBERED_MAX ? this.#remembered.keys().next() : undefined;
    if (oldest && !oldest.done) this.#remembered.delete(oldest.value);
    this.#remembered.set(digest, claims);
  }

  #timeError(claims: TokenClaims): string | undefined {
    const nowMs = this.#env.clock.now();
    if (nowMs >= claims.expiresMs) return 'service account token has expired';
    if (nowMs + LEEWAY_MS < claims.notBeforeMs) return 'service account token is not valid yet';
    return undefined;
  }

  /** Why the objects behind a token do not stand behind it any more. */
  #objectError(claims: TokenClaims): string | undefined {
    const { namespace, serviceAccount, secret, pod, node } = claims;
    if (!this.#exists('serviceaccounts', namespace, serviceAccount)) {
      return `service account ${namespace}/${serviceAccount.name} has been deleted`;
    }
    const isBound =
      (!secret || this.#exists('secrets', namespace, secret)) &&
      (!pod || this.#exists('pods', namespace, pod)) &&
      // A pod's token outlives the Node object: the node is only where the pod was.
      (!node || pod !== undefined || this.#exists('nodes', '', node));
    return isBound ? undefined : 'service account token has been invalidated';
  }

  #exists(bucket: string, namespace: string, claim: ObjectClaim): boolean {
    const object: KubeObject | undefined = this.#registry.view(bucket).get(namespace, claim.name);
    if (!object || object.metadata.uid !== claim.uid) return false;
    const { deletionTimestamp } = object.metadata;
    return deletionTimestamp === undefined || Date.parse(deletionTimestamp) >= this.#env.clock.now() - LEEWAY_MS;
  }
}

function userOf(claims: TokenClaims): UserInfo {
  const extra: Record<string, readonly string[]> = { [CREDENTIAL_ID_KEY]: [`JTI=${claims.id}`] };
  const add = (what: string, claim: ObjectClaim | undefined): void => {
    if (!claim) return;
    extra[`authentication.kubernetes.io/${what}-name`] = [claim.name];
    if (claim.uid !== '') extra[`authentication.kubernetes.io/${what}-uid`] = [claim.uid];
  };
  add('node', claims.node);
  add('pod', claims.pod);
  return {
    username: serviceAccountUsername(claims.namespace, claims.serviceAccount.name),
    uid: claims.serviceAccount.uid,
    groups: [...serviceAccountGroups(claims.namespace), AUTHENTICATED_GROUP],
    extra,
  };
}

async function publicJwk(key: KeyObject): Promise<JWK> {
  const jwk = await exportJWK(key);
  return { ...jwk, kid: await calculateJwkThumbprint(jwk), alg: ALGORITHM, use: 'sig' };
}
