import { byNamespace } from '../indexes.ts';
import { type ClusterLoop, controllerIdentity } from '../loop.ts';
import { namespaces, pods } from '../resources.ts';
import { NamespaceController } from './controller.ts';

/** Ends namespaces with all that is in them. */
export const namespaceLoop: ClusterLoop = {
  name: 'namespace',
  identity: controllerIdentity('namespace-controller'),
  component: 'namespace-controller',
  make: ({ env, client, informers, metrics }) =>
    new NamespaceController({
      env,
      client,
      metrics,
      informers: { namespaces: informers.of(namespaces), pods: informers.of(pods, byNamespace) },
    }),
};
