import { byNode } from '../indexes.ts';
import { type ClusterLoop, controllerIdentity } from '../loop.ts';
import { nodes, pods } from '../resources.ts';
import { byTermination, PodGarbage } from './pod-garbage.ts';

/** Deletes pods that nobody else will delete. */
export const podGarbageLoop: ClusterLoop = {
  name: 'pod-garbage-collector',
  identity: controllerIdentity('pod-garbage-collector'),
  component: 'pod-garbage-collector',
  make: ({ env, client, informers, metrics }) =>
    new PodGarbage({
      env,
      client,
      metrics,
      pods: informers.of(pods, { ...byNode, ...byTermination }),
      nodes: informers.of(nodes),
    }),
};
