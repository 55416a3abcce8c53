import { eventRules } from './bootstrap-rules.ts';
import type { PolicyRule } from './policy-rule.ts';
import { READ, resources } from './rule-builders.ts';

/** What each of Kubernetes' own controllers may do, by the name of its service account in kube-system. */

export interface ControllerRole {
  readonly account: string;
  readonly rules: readonly PolicyRule[];
}

/** All of them; each call makes new rules. */
export function controllerRoles(): ControllerRole[] {
  return [
    garbageCollector(),
    namespaceController(),
    disruptionController(),
    nodeController(),
    podGarbageCollector(),
    resourceQuotaController(),
    serviceAccountController(),
    rootCaPublisher(),
    persistentVolumeBinder(),
    claimProtectionController(),
    volumeProtectionController(),
  ];
}

function garbageCollector(): ControllerRole {
  const rules = [resources([...READ, 'patch', 'update', 'delete'], '*', '*'), ...eventRules()];
  return { account: 'generic-garbage-collector', rules };
}

function namespaceController(): ControllerRole {
  return {
    account: 'namespace-controller',
    rules: [
      resources([...READ, 'delete'], '', 'namespaces'),
      resources(['update'], '', 'namespaces/finalize', 'namespaces/status'),
      resources([...READ, 'delete', 'deletecollection'], '*', '*'),
    ],
  };
}

function disruptionController(): ControllerRole {
  return {
    account: 'disruption-controller',
    rules: [
      resources(READ, 'apps', 'deployments', 'replicasets', 'statefulsets'),
      resources(READ, 'extensions', 'deployments', 'replicasets'),
      resources(READ, '', 'replicationcontrollers'),
      resources(READ, 'policy', 'poddisruptionbudgets'),
      resources(['update'], 'policy', 'poddisruptionbudgets/status'),
      resources(['patch', 'update'], '', 'pods/status'),
      resources(['get'], '*', '*/scale'),
      ...eventRules(),
    ],
  };
}

function nodeController(): ControllerRole {
  return {
    account: 'node-controller',
    rules: [
      resources([...READ, 'update', 'delete', 'patch'], '', 'nodes'),
      resources(['patch', 'update'], '', 'nodes/status', 'pods/status'),
      resources([...READ, 'delete'], '', 'pods'),
      ...eventRules(),
    ],
  };
}

function podGarbageCollector(): ControllerRole {
  return {
    account: 'pod-garbage-collector',
    rules: [
      resources(['list', 'watch', 'delete'], '', 'pods'),
      resources(READ, '', 'nodes'),
      resources(['patch'], '', 'pods/status'),
    ],
  };
}

function resourceQuotaController(): ControllerRole {
  return {
    account: 'resourcequota-controller',
    rules: [
      resources(['list', 'watch'], '*', '*'),
      resources(['update'], '', 'resourcequotas/status'),
      ...eventRules(),
    ],
  };
}

function serviceAccountController(): ControllerRole {
  return {
    account: 'service-account-controller',
    rules: [resources(['create'], '', 'serviceaccounts'), ...eventRules()],
  };
}

function rootCaPublisher(): ControllerRole {
  return {
    account: 'root-ca-cert-publisher',
    rules: [resources(['create', 'update'], '', 'configmaps'), ...eventRules()],
  };
}

function persistentVolumeBinder(): ControllerRole {
  return {
    account: 'persistent-volume-binder',
    rules: [
      resources([...READ, 'update', 'create', 'delete'], '', 'persistentvolumes'),
      resources(['update'], '', 'persistentvolumes/status', 'persistentvolumeclaims/status'),
      resources([...READ, 'update'], '', 'persistentvolumeclaims'),
      resources(READ, 'storage.k8s.io', 'storageclasses'),
      resources(['get', 'list'], '', 'nodes'),
      ...eventRules(),
    ],
  };
}

function claimProtectionController(): ControllerRole {
  return {
    account: 'pvc-protection-controller',
    rules: [resources([...READ, 'update'], '', 'persistentvolumeclaims'), resources(READ, '', 'pods'), ...eventRules()],
  };
}

function volumeProtectionController(): ControllerRole {
  return {
    account: 'pv-protection-controller',
    rules: [resources([...READ, 'update'], '', 'persistentvolumes'), ...eventRules()],
  };
}
