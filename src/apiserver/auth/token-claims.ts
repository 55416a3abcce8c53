import { type Fields, isObject, numberAt, objectAt, textAt, textsAt } from '../../api/kinds/core/fields.ts';
import { serviceAccountUsername } from './users.ts';

/** An object as a token names it: the name may be used again, the uid is not. */
export interface ObjectClaim {
  readonly name: string;
  readonly uid: string;
}

/** What a service account token says. */
export interface TokenClaims {
  readonly id: string;
  readonly audiences: readonly string[];
  readonly expiresMs: number;
  readonly notBeforeMs: number;
  readonly namespace: string;
  readonly serviceAccount: ObjectClaim;
  readonly pod?: ObjectClaim;
  readonly secret?: ObjectClaim;
  readonly node?: ObjectClaim;
}

/**
 * Reads the payload of a token whose signature is right. Undefined where anything is missing that we always write:
 * the key may have signed other things once.
 */
export function parseClaims(payload: string, issuer: string): TokenClaims | undefined {
  const claims = parseJson(payload);
  const kubernetes = objectAt(claims, 'kubernetes.io');
  const namespace = textAt(kubernetes, 'namespace');
  const serviceAccount = objectClaim(kubernetes, 'serviceaccount');
  const [expires, notBefore] = [numberAt(claims, 'exp'), numberAt(claims, 'nbf')];
  if (textAt(claims, 'iss') !== issuer || !serviceAccount || serviceAccount.uid === '') return undefined;
  if (textAt(claims, 'sub') !== serviceAccountUsername(namespace, serviceAccount.name)) return undefined;
  if (expires === undefined || notBefore === undefined) return undefined;
  const audience = textAt(claims, 'aud');
  return {
    id: textAt(claims, 'jti'),
    audiences: audience === '' ? textsAt(claims, 'aud') : [audience],
    expiresMs: expires * 1000,
    notBeforeMs: notBefore * 1000,
    namespace,
    serviceAccount,
    pod: objectClaim(kubernetes, 'pod'),
    secret: objectClaim(kubernetes, 'secret'),
    node: objectClaim(kubernetes, 'node'),
  };
}

function objectClaim(parent: Fields | undefined, field: string): ObjectClaim | undefined {
  const claim = objectAt(parent, field);
  const name = textAt(claim, 'name');
  return name === '' ? undefined : { name, uid: textAt(claim, 'uid') };
}

function parseJson(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
