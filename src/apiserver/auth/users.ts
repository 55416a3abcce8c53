import { dnsLabelErrors, dnsSubdomainErrors } from '../../api/names.ts';
import type { UserInfo } from '../http/message.ts';

/** Names of users and groups that Kubernetes gives a meaning. */

export const AUTHENTICATED_GROUP = 'system:authenticated';
export const UNAUTHENTICATED_GROUP = 'system:unauthenticated';
export const ANONYMOUS_USER = 'system:anonymous';

const SERVICE_ACCOUNT_PREFIX = 'system:serviceaccount:';

/** Whoever shows no credentials at all. */
export const ANONYMOUS: UserInfo = { username: ANONYMOUS_USER, groups: [UNAUTHENTICATED_GROUP] };

/** Which credential a request was made with, in a user's `extra`. */
export const CREDENTIAL_ID_KEY = 'authentication.kubernetes.io/credential-id';

export function serviceAccountUsername(namespace: string, name: string): string {
  return `${SERVICE_ACCOUNT_PREFIX}${namespace}:${name}`;
}

/** The groups of every service account of a namespace, but for system:authenticated. */
export function serviceAccountGroups(namespace: string): string[] {
  return ['system:serviceaccounts', `system:serviceaccounts:${namespace}`];
}

/** The service account that a username stands for, or undefined if it stands for none. */
export function parseServiceAccountUsername(username: string): { namespace: string; name: string } | undefined {
  if (!username.startsWith(SERVICE_ACCOUNT_PREFIX)) return undefined;
  const [namespace = '', name = '', ...rest] = username.slice(SERVICE_ACCOUNT_PREFIX.length).split(':');
  if (rest.length > 0 || dnsLabelErrors(namespace).length > 0 || dnsSubdomainErrors(name).length > 0) return undefined;
  return { namespace, name };
}
