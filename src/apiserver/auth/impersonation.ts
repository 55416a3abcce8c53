import { badRequest } from '../../api/status.ts';
import type { ApiRequest, UserInfo } from '../http/message.ts';
import { setOwn } from '../../machinery/clone.ts';
import { forbiddenError } from './forbidden.ts';
import type { AuthorizationAttributes } from './policy-rule.ts';
import type { Authorizer } from './rbac.ts';
import {
  ANONYMOUS_USER,
  AUTHENTICATED_GROUP,
  parseServiceAccountUsername,
  serviceAccountGroups,
  UNAUTHENTICATED_GROUP,
} from './users.ts';

const PREFIX = 'impersonate-';
const EXTRA_PREFIX = `${PREFIX}extra-`;

/**
 * Whom the request acts as: the user, or the one whom its Impersonate headers name (`kubectl --as`). Throws 403 unless
 * the user may impersonate every part of that identity: the name, each group, the uid, each value of the extras. A
 * header that came several times arrives joined by commas, so a comma cannot be part of a group.
 */
export function impersonate(authorizer: Authorizer, user: UserInfo, headers: ApiRequest['headers']): UserInfo {
  if (!Object.keys(headers).some((header) => header.startsWith(PREFIX))) return user;
  const username = headers['impersonate-user'] ?? '';
  const groups = listOf(headers['impersonate-group']);
  const uid = headers['impersonate-uid'] ?? '';
  const extra = extraOf(headers);
  if (username === '') {
    if (groups.length === 0 && uid === '' && extra.length === 0) return user;
    throw badRequest('impersonation of a group, a uid or an extra needs an Impersonate-User header');
  }
  const serviceAccount = parseServiceAccountUsername(username);
  const check = (what: Partial<AuthorizationAttributes>): void => confirm(authorizer, user, what);
  if (serviceAccount) check({ resource: 'serviceaccounts', ...serviceAccount });
  else check({ resource: 'users', name: username });
  for (const group of groups) check({ resource: 'groups', name: group });
  const authentication = { group: 'authentication.k8s.io' };
  for (const [key, value] of extra) {
    check({ ...authentication, resource: 'userextras', subresource: key, name: value });
  }
  if (uid !== '') check({ ...authentication, resource: 'uids', name: uid });
  // A service account's groups follow from its name; for anyone else nobody here knows them.
  const implied = groups.length === 0 && serviceAccount ? serviceAccountGroups(serviceAccount.namespace) : groups;
  return {
    username,
    ...(uid === '' ? {} : { uid }),
    groups: completeGroups(username, implied),
    ...(extra.length === 0 ? {} : { extra: collect(extra) }),
  };
}

function confirm(authorizer: Authorizer, user: UserInfo, what: Partial<AuthorizationAttributes>): void {
  const attributes: AuthorizationAttributes = {
    verb: 'impersonate',
    isResource: true,
    path: '',
    group: '',
    namespace: '',
    resource: '',
    subresource: '',
    name: '',
    ...what,
  };
  const decision = authorizer.authorize(user, attributes);
  if (!decision.allowed) throw forbiddenError(user, attributes, decision.reason);
}

/** Adds the group that everyone is in who is (or is not) anonymous, unless the request has said which. */
function completeGroups(username: string, groups: readonly string[]): readonly string[] {
  if (username === ANONYMOUS_USER) {
    return groups.includes(UNAUTHENTICATED_GROUP) ? groups : [...groups, UNAUTHENTICATED_GROUP];
  }
  const isSaid = groups.includes(AUTHENTICATED_GROUP) || groups.includes(UNAUTHENTICATED_GROUP);
  return isSaid ? groups : [...groups, AUTHENTICATED_GROUP];
}

function listOf(header: string | undefined): string[] {
  return (header ?? '')
    .split(',')
    .map((value) => value.trim())
    .filter((value) => value !== '');
}

function extraOf(headers: ApiRequest['headers']): (readonly [key: string, value: string])[] {
  const extra: (readonly [string, string])[] = [];
  for (const [header, text] of Object.entries(headers)) {
    if (!header.startsWith(EXTRA_PREFIX)) continue;
    const key = decodeKey(header.slice(EXTRA_PREFIX.length));
    for (const value of listOf(text)) extra.push([key, value]);
  }
  return extra;
}

/** Keys may hold what header names may not, percent-encoded; what is not encoded right stands for itself. */
function decodeKey(encoded: string): string {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return encoded;
  }
}

function collect(extra: readonly (readonly [string, string])[]): Record<string, readonly string[]> {
  const values = new Map<string, string[]>();
  for (const [key, value] of extra) values.set(key, [...(values.get(key) ?? []), value]);
  const collected: Record<string, readonly string[]> = {};
  for (const [key, list] of values) setOwn(collected, key, list);
  return collected;
}
