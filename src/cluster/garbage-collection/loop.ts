import { type ClusterLoop, controllerIdentity } from '../loop.ts';
import { apiServices, customResourceDefinitions } from '../resources.ts';
import { GarbageCollector } from './collector.ts';

/** Deletes what nobody owns any more. */
export const garbageCollectionLoop: ClusterLoop = {
  name: 'garbage-collector',
  identity: controllerIdentity('generic-garbage-collector'),
  component: 'garbage-collector-controller',
  make: ({ env, client, informers, recorder, metrics }) =>
    new GarbageCollector({
      env,
      client,
      recorder,
      metrics,
      shared: informers,
      servings: [informers.of(customResourceDefinitions), informers.of(apiServices)],
    }),
};
