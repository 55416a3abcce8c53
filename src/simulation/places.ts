/**
 * Where a node is. Nodes of several clusters may have the same name, and are told from each other by their places, which are
 * also their addresses; where there is one cluster, a node's place is its name.
 */

/** The place of a node. */
export function placeOf(cluster: string, node: string): string {
  return cluster === '' ? node : `${node}.${cluster}`;
}

/** The name of the node at a place. */
export function nodeAt(place: string): string {
  return place.split('.', 1)[0] ?? '';
}

/** The cluster that a place is in. */
export function clusterAt(place: string): string {
  return place.slice(nodeAt(place).length + 1);
}
