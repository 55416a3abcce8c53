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
  return [garbageCollector(), namespaceController()];
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
