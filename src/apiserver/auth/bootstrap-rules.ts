import type { PolicyRule } from './policy-rule.ts';
import { READ, READ_WRITE, resources, WRITE } from './rule-builders.ts';

/** The longer rule lists of the default roles, for the kinds that this server has. */

const COORDINATION = 'coordination.k8s.io';
const STORAGE = 'storage.k8s.io';

/** Reading what is in a namespace, but for what would let the reader act as someone else. */
export function viewRules(): PolicyRule[] {
  return [
    resources(
      READ,
      '',
      'configmaps',
      'endpoints',
      'persistentvolumeclaims',
      'persistentvolumeclaims/status',
      'pods',
      'replicationcontrollers',
      'replicationcontrollers/scale',
      'serviceaccounts',
      'services',
      'services/status',
    ),
    resources(
      READ,
      '',
      'bindings',
      'events',
      'limitranges',
      'namespaces/status',
      'pods/log',
      'pods/status',
      'replicationcontrollers/status',
      'resourcequotas',
      'resourcequotas/status',
    ),
    // In a namespace, this lets one see that namespace.
    resources(READ, '', 'namespaces'),
    resources(READ, 'events.k8s.io', 'events'),
    resources(
      READ,
      'apps',
      'controllerrevisions',
      'daemonsets',
      'daemonsets/status',
      'deployments',
      'deployments/scale',
      'deployments/status',
      'replicasets',
      'replicasets/scale',
      'replicasets/status',
      'statefulsets',
      'statefulsets/scale',
      'statefulsets/status',
    ),
    resources(READ, 'batch', 'cronjobs', 'cronjobs/status', 'jobs', 'jobs/status'),
    resources(READ, 'discovery.k8s.io', 'endpointslices'),
    resources(READ, 'networking.k8s.io', 'ingresses', 'ingresses/status', 'networkpolicies'),
    resources(READ, 'policy', 'poddisruptionbudgets', 'poddisruptionbudgets/status'),
  ];
}

/** Writing what is in a namespace, and reading what view must not. */
export function editRules(): PolicyRule[] {
  return [
    resources(READ, '', 'pods/attach', 'pods/exec', 'pods/portforward', 'pods/proxy', 'secrets', 'services/proxy'),
    resources(['impersonate'], '', 'serviceaccounts'),
    resources(WRITE, '', 'pods', 'pods/attach', 'pods/exec', 'pods/portforward', 'pods/proxy'),
    resources(['create'], '', 'pods/eviction'),
    resources(
      WRITE,
      '',
      'configmaps',
      'events',
      'persistentvolumeclaims',
      'replicationcontrollers',
      'replicationcontrollers/scale',
      'secrets',
      'serviceaccounts',
      'services',
      'services/proxy',
    ),
    resources(['create'], '', 'serviceaccounts/token'),
    resources(
      WRITE,
      'apps',
      'daemonsets',
      'deployments',
      'deployments/rollback',
      'deployments/scale',
      'replicasets',
      'replicasets/scale',
      'statefulsets',
      'statefulsets/scale',
    ),
    resources(WRITE, 'batch', 'cronjobs', 'jobs'),
    resources(WRITE, 'networking.k8s.io', 'ingresses', 'networkpolicies'),
    resources(WRITE, 'policy', 'poddisruptionbudgets'),
    resources(READ_WRITE, COORDINATION, 'leases'),
  ];
}

/**
 * What a node needs to announce itself and to run the pods that are bound to it, as a role would give it. Nobody has
 * that role: the Node authorizer gives every node its own part of this.
 */
export function nodeRules(): PolicyRule[] {
  return [
    ...unconfinedNodeRules(),
    resources(READ, '', 'secrets', 'configmaps'),
    resources(['create', 'get', 'list', 'watch', 'update', 'patch'], '', 'nodes'),
    resources(['update', 'patch'], '', 'nodes/status'),
    resources([...READ, 'create', 'delete'], '', 'pods'),
    resources(['update', 'patch'], '', 'pods/status'),
    resources(['create'], '', 'pods/eviction'),
    resources(['create'], '', 'serviceaccounts/token'),
    resources(['get'], '', 'persistentvolumeclaims', 'persistentvolumes'),
    resources(['get', 'create', 'update', 'patch', 'delete'], COORDINATION, 'leases'),
  ];
}

/** The part of it that is the same for all nodes. */
export function unconfinedNodeRules(): PolicyRule[] {
  return [
    resources(['create'], 'authentication.k8s.io', 'tokenreviews'),
    resources(['create'], 'authorization.k8s.io', 'subjectaccessreviews', 'localsubjectaccessreviews'),
    resources(READ, '', 'services'),
    ...eventRules(),
    resources(['create', 'get', 'list', 'watch'], 'certificates.k8s.io', 'certificatesigningrequests'),
    resources(READ, 'node.k8s.io', 'runtimeclasses'),
  ];
}

/** What a scheduler needs to bind pods and to evict lesser ones. */
export function kubeSchedulerRules(): PolicyRule[] {
  return [
    ...eventRules(),
    resources(['create'], COORDINATION, 'leases'),
    { ...resources(['get', 'update', 'list', 'watch'], COORDINATION, 'leases'), resourceNames: ['kube-scheduler'] },
    resources(READ, '', 'nodes', 'namespaces', 'services'),
    resources([...READ, 'patch', 'update'], '', 'persistentvolumeclaims', 'persistentvolumes'),
    resources([...READ, 'delete'], '', 'pods'),
    resources(['create'], '', 'bindings', 'pods/binding'),
    resources(['patch', 'update'], '', 'pods/status'),
    resources(READ, 'apps', 'replicasets', 'statefulsets'),
    resources(READ, 'policy', 'poddisruptionbudgets'),
    resources(READ, STORAGE, 'storageclasses'),
    resources(['create'], 'authentication.k8s.io', 'tokenreviews'),
    resources(['create'], 'authorization.k8s.io', 'subjectaccessreviews'),
  ];
}

/** What a controller manager needs to start; its controllers have service accounts of their own. */
export function kubeControllerManagerRules(): PolicyRule[] {
  return [
    ...eventRules(),
    resources(['create'], COORDINATION, 'leases'),
    { ...resources(['get', 'update'], COORDINATION, 'leases'), resourceNames: ['kube-controller-manager'] },
    resources(['get', 'create', 'update'], '', 'secrets', 'serviceaccounts'),
    resources(['delete'], '', 'secrets'),
    resources(['get'], '', 'namespaces', 'configmaps'),
    resources(['create'], '', 'serviceaccounts/token'),
    resources(['create'], 'authentication.k8s.io', 'tokenreviews'),
    resources(['create'], 'authorization.k8s.io', 'subjectaccessreviews'),
    resources(['list', 'watch'], '*', '*'),
  ];
}

/** Writing events, in both of the groups that have them. */
export function eventRules(): PolicyRule[] {
  return ['', 'events.k8s.io'].map((group) => resources(['create', 'patch', 'update'], group, 'events'));
}
