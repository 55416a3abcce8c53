import { ApiError, forbiddenRequest } from '../../api/status.ts';
import type { UserInfo } from '../http/message.ts';
import { type AuthorizationAttributes, combinedResource } from './policy-rule.ts';

/** What the user may not do, in kube-apiserver's words, which kubectl users know and tools match on. */
export function forbiddenMessage(user: UserInfo, attributes: AuthorizationAttributes): string {
  const who = `User ${JSON.stringify(user.username)} cannot ${attributes.verb}`;
  if (!attributes.isResource) return harmless(`${who} path ${JSON.stringify(attributes.path)}`);
  const what = `resource ${JSON.stringify(combinedResource(attributes))} in API group ${JSON.stringify(attributes.group)}`;
  const where =
    attributes.namespace === '' ? 'at the cluster scope' : `in the namespace ${JSON.stringify(attributes.namespace)}`;
  return harmless(`${who} ${what} ${where}`);
}

/** The 403 for a denied request; `reason` is the authorizer's, if it has one. */
export function forbiddenError(user: UserInfo, attributes: AuthorizationAttributes, reason = ''): ApiError {
  const message = forbiddenMessage(user, attributes) + (reason === '' ? '' : `: ${reason}`);
  if (!attributes.isResource) return new ApiError(403, 'Forbidden', `forbidden: ${message}`, {});
  return forbiddenRequest({ group: attributes.group, plural: attributes.resource }, attributes.name, message);
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };

/** Users choose their names and paths: a browser that takes the answer for HTML must find none in it. */
function harmless(text: string): string {
  return text.replace(/[&<>]/g, (character) => ENTITIES[character] ?? '');
}
