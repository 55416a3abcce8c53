/** How nodes are called as users. */

export const NODES_GROUP = 'system:nodes';
export const NODE_USER_PREFIX = 'system:node:';

/**
 * The node that a user is; undefined for who is none, and empty where the name ends before it says which. As upstream,
 * the name alone makes nobody a node: the group is what the signer vouches for.
 */
export function nodeOfUser(user: {
  readonly username: string;
  readonly groups: readonly string[];
}): string | undefined {
  if (!user.username.startsWith(NODE_USER_PREFIX) || !user.groups.includes(NODES_GROUP)) return undefined;
  return user.username.slice(NODE_USER_PREFIX.length);
}
