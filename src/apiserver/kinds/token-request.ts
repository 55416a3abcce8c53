import { type FieldError, invalid } from '../../api/field-error.ts';
import { numberAt, objectAt, textAt, textsAt } from '../../api/kinds/core/fields.ts';
import { formatTime, type KubeObject, parseApiVersion } from '../../api/meta.ts';
import { badRequest, conflict, invalidObject, notFound } from '../../api/status.ts';
import type { ObjectClaim } from '../auth/token-claims.ts';
import type { ServiceAccountTokens, TokenRequestClaims } from '../auth/tokens.ts';
import type { Registry, WriteContext } from '../registry/contract.ts';

/** A request for a token of a service account. */
export interface TokenRequestCall {
  readonly registry: Pick<Registry, 'view'>;
  readonly tokens: Pick<ServiceAccountTokens, 'audiences' | 'sign'>;
  readonly context: Pick<WriteContext, 'dryRun'>;
  readonly namespace: string;
  /** The service account's. */
  readonly name: string;
  /** An authentication.k8s.io/v1 TokenRequest. */
  readonly request: KubeObject;
  readonly nowMs: number;
}

const GROUP = 'authentication.k8s.io';
const KIND = 'TokenRequest';
const EXPIRATION_SECONDS_DEFAULT = 3600;
const EXPIRATION_SECONDS_MIN = 600;
const EXPIRATION_SECONDS_MAX = 2 ** 32;

/**
 * Answers the request with a token in its status, bound to the service account and to the object that it names. Throws
 * 404 where either does not exist, 409 where it is another one of the same name, 422 for what is out of bounds. A dry
 * run checks everything and makes no token.
 */
export async function requestToken(call: TokenRequestCall): Promise<KubeObject> {
  const { namespace, name, request } = call;
  checkIdentity(call);
  const account = call.registry.view('serviceaccounts').get(namespace, name);
  if (!account) throw notFound({ group: '', plural: 'serviceaccounts' }, name);
  const uid = account.metadata.uid ?? '';
  const wantedUid = request.metadata.uid ?? '';
  if (wantedUid !== '' && wantedUid !== uid) {
    const detail = `the UID in the token request (${wantedUid}) does not match the UID of the service account (${uid})`;
    throw conflict({ group: GROUP, plural: KIND }, name, detail);
  }
  const spec = objectAt(request, 'spec');
  const expirationSeconds = numberAt(spec, 'expirationSeconds') ?? EXPIRATION_SECONDS_DEFAULT;
  const errors = expirationErrors(expirationSeconds);
  if (errors.length > 0) throw invalidObject(GROUP, KIND, '', errors);
  const asked = textsAt(spec, 'audiences');
  const audiences = asked.length > 0 ? asked : call.tokens.audiences;
  const claims = { namespace, serviceAccount: { name, uid }, ...boundClaims(call) };
  const issued = call.context.dryRun
    ? { token: '', expiresMs: call.nowMs + expirationSeconds * 1000 }
    : await call.tokens.sign(claims, audiences, expirationSeconds);
  return {
    ...request,
    metadata: { ...request.metadata, name, namespace, uid, creationTimestamp: formatTime(call.nowMs) },
    spec: { ...spec, audiences: [...audiences], expirationSeconds },
    status: { token: issued.token, expirationTimestamp: formatTime(issued.expiresMs) },
  };
}

/** What the body says of itself must be what the path says. */
function checkIdentity({ request, name, namespace }: TokenRequestCall): void {
  const errors: FieldError[] = [];
  const { metadata } = request;
  if ((metadata.name ?? '') !== '' && metadata.name !== name) {
    errors.push(invalid('metadata.name', metadata.name, 'must match the service account name if specified'));
  }
  if ((metadata.namespace ?? '') !== '' && metadata.namespace !== namespace) {
    const detail = 'must match the service account namespace if specified';
    errors.push(invalid('metadata.namespace', metadata.namespace, detail));
  }
  if (errors.length > 0) throw invalidObject(GROUP, KIND, name, errors);
}

function expirationErrors(seconds: number): FieldError[] {
  if (seconds < EXPIRATION_SECONDS_MIN) {
    return [invalid('spec.expirationSeconds', seconds, 'may not specify a duration less than 10 minutes')];
  }
  if (seconds > EXPIRATION_SECONDS_MAX) {
    return [invalid('spec.expirationSeconds', seconds, 'may not specify a duration larger than 2^32 seconds')];
  }
  return [];
}

/** The claims for the object that the token shall die with, if one is named. */
function boundClaims(call: TokenRequestCall): Pick<TokenRequestClaims, 'pod' | 'secret' | 'node'> {
  const reference = objectAt(objectAt(call.request, 'spec'), 'boundObjectRef');
  if (!reference) return {};
  const kind = textAt(reference, 'kind');
  const { group } = parseApiVersion(textAt(reference, 'apiVersion'));
  switch (group === '' || textAt(reference, 'apiVersion') === '' ? kind : '') {
    case 'Pod':
      return podClaims(call, find(call, 'pods', 'Pod', call.namespace));
    case 'Secret':
      return { secret: claimOf(find(call, 'secrets', 'Secret', call.namespace)) };
    case 'Node':
      return { node: claimOf(find(call, 'nodes', 'Node', '')) };
    default:
      throw badRequest(`cannot bind token to object of type /${textAt(reference, 'apiVersion')}, Kind=${kind}`);
  }
}

function podClaims(call: TokenRequestCall, pod: KubeObject): Pick<TokenRequestClaims, 'pod' | 'node'> {
  const spec = objectAt(pod, 'spec');
  if (textAt(spec, 'serviceAccountName') !== call.name) {
    const account = JSON.stringify(call.name);
    throw badRequest(
      `cannot bind token for serviceaccount ${account} to pod running with different serviceaccount name.`,
    );
  }
  const nodeName = textAt(spec, 'nodeName');
  if (nodeName === '') return { pod: claimOf(pod) };
  // A node that is not there (yet) is still worth naming to whoever reads the token.
  const uid = call.registry.view('nodes').get('', nodeName)?.metadata.uid ?? '';
  return { pod: claimOf(pod), node: { name: nodeName, uid } };
}

/** The bound object. Throws where there is none, or another one of the same name. */
function find(call: TokenRequestCall, plural: string, kind: string, namespace: string): KubeObject {
  const reference = objectAt(objectAt(call.request, 'spec'), 'boundObjectRef');
  const name = textAt(reference, 'name');
  const wantedUid = textAt(reference, 'uid');
  const object = call.registry.view(plural).get(namespace, name);
  if (!object) throw notFound({ group: '', plural }, name);
  if (wantedUid !== '' && wantedUid !== object.metadata.uid) {
    const detail =
      `the UID in the bound object reference (${wantedUid}) does not match the UID in record. ` +
      'The object might have been deleted and then recreated';
    throw conflict({ group: '', plural: kind }, name, detail);
  }
  return object;
}

function claimOf(object: KubeObject): ObjectClaim {
  return { name: object.metadata.name ?? '', uid: object.metadata.uid ?? '' };
}
