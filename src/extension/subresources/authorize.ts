import { forbiddenRequest } from '../../api/status.ts';
import type { Client } from '../../kube/client.ts';
import { isAllowed } from '../access-review.ts';
import type { UserInfo } from '../server/front-proxy.ts';
import { SUBRESOURCE_GROUP, type Subresource, verbOf } from './group.ts';

/** What somebody wants to do. */
export interface Attempt {
  readonly subresource: Subresource;
  readonly version: string;
  readonly namespace: string;
  readonly name: string;
}

/** Asks the API server whether a user may. Rejects with 403 where not, in the API server's own words. */
export async function authorize(client: Client, user: UserInfo, attempt: Attempt, signal: AbortSignal): Promise<void> {
  const { subresource, version, namespace, name } = attempt;
  const verb = verbOf(subresource);
  const attributes = {
    group: SUBRESOURCE_GROUP,
    version,
    resource: subresource.resource,
    subresource: subresource.subresource,
    namespace,
    name,
    verb,
  };
  if (await isAllowed(client, user, attributes, signal)) return;
  const what = JSON.stringify(`${subresource.resource}/${subresource.subresource}`);
  const where = `in API group ${JSON.stringify(SUBRESOURCE_GROUP)} in the namespace ${JSON.stringify(namespace)}`;
  throw forbiddenRequest(
    { group: SUBRESOURCE_GROUP, plural: subresource.resource },
    name,
    `User ${JSON.stringify(user.username)} cannot ${verb} resource ${what} ${where}`,
  );
}
