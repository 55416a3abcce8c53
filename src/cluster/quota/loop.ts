import { byNamespace } from '../indexes.ts';
import { type ClusterLoop, controllerIdentity } from '../loop.ts';
import { customResourceDefinitions, pods, resourceQuotas } from '../resources.ts';
import { QuotaController } from './controller.ts';

/** Recounts what resource quotas have used. */
export const quotaLoop: ClusterLoop = {
  name: 'resourcequota',
  identity: controllerIdentity('resourcequota-controller'),
  component: 'resourcequota-controller',
  make: ({ env, client, informers, metrics }) =>
    new QuotaController({
      env,
      client,
      metrics,
      quotas: informers.of(resourceQuotas, byNamespace),
      pods: informers.of(pods, byNamespace),
      definitions: informers.of(customResourceDefinitions),
    }),
};
