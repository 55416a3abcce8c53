import { type ClusterLoop, controllerIdentity } from '../loop.ts';
import { namespaces } from '../resources.ts';
import { NamespaceController } from './controller.ts';

/** Ends namespaces with all that is in them. */
export const namespaceLoop: ClusterLoop = {
  name: 'namespace',
  identity: controllerIdentity('namespace-controller'),
  component: 'namespace-controller',
  make: ({ env, client, informers, metrics }) =>
    new NamespaceController({ env, client, metrics, informer: informers.of(namespaces) }),
};
