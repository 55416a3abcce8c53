import { leaseResource } from '../../kube/leader-lease.ts';
import { byNode } from '../indexes.ts';
import { type ClusterLoop, controllerIdentity } from '../loop.ts';
import { nodes, pods } from '../resources.ts';
import { NodeLifecycle } from './node-lifecycle.ts';

/** Notices nodes that are lost, and keeps taints in step with conditions. */
export const nodeLifecycleLoop: ClusterLoop = {
  name: 'node-lifecycle-controller',
  identity: controllerIdentity('node-controller'),
  component: 'node-controller',
  make: ({ informers, ...context }) =>
    new NodeLifecycle({
      ...context,
      pods: informers.of(pods, byNode),
      nodes: informers.of(nodes),
      leases: informers.of(leaseResource),
    }),
};
