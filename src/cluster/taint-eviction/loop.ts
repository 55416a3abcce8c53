import { byNode } from '../indexes.ts';
import { type ClusterLoop, controllerIdentity } from '../loop.ts';
import { nodes, pods } from '../resources.ts';
import { TaintEviction } from './taint-eviction.ts';

/** Deletes pods whose nodes bear taints that they do not tolerate. It shares its account with the node controller, as upstream. */
export const taintEvictionLoop: ClusterLoop = {
  name: 'taint-eviction-controller',
  identity: controllerIdentity('node-controller'),
  component: 'taint-eviction-controller',
  make: ({ informers, ...context }) =>
    new TaintEviction({ ...context, pods: informers.of(pods, byNode), nodes: informers.of(nodes) }),
};
