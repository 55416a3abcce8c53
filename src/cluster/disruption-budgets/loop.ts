import { byController, byLabel, byNamespace } from '../indexes.ts';
import { type ClusterLoop, controllerIdentity } from '../loop.ts';
import {
  deployments,
  podDisruptionBudgets,
  pods,
  replicaSets,
  replicationControllers,
  statefulSets,
} from '../resources.ts';
import { DisruptionController } from './controller.ts';

/** Says how many evictions each disruption budget allows, and takes back disruptions that did not come. */
export const disruptionLoop: ClusterLoop = {
  name: 'disruption',
  identity: controllerIdentity('disruption-controller'),
  component: 'controllermanager',
  make: ({ env, client, informers, recorder, metrics }) =>
    new DisruptionController({
      env,
      client,
      recorder,
      metrics,
      informers: {
        pods: informers.of(pods, { ...byNamespace, ...byLabel, ...byController }),
        podDisruptionBudgets: informers.of(podDisruptionBudgets),
        replicationControllers: informers.of(replicationControllers),
        replicaSets: informers.of(replicaSets, byController),
        deployments: informers.of(deployments),
        statefulSets: informers.of(statefulSets),
      },
    }),
};
