import { NODES_GROUP } from '../../machinery/node-user.ts';
import { OWN_ACCOUNTS_PREFIX } from '../identity.ts';
import type { WebhookContext } from './context.ts';
import { interceptEviction, keepHotplugPod } from './evictions.ts';
import { validateInstancetype, validatePreference } from './instancetypes.ts';
import { validateKubeVirt } from './kubevirts.ts';
import { mutateMigrationPolicy, validateMigrationPolicy } from './migration-policies.ts';
import { mutateMigration, validateChangedMigration, validateNewMigration } from './migrations.ts';
import { restrictNodes } from './node-restriction.ts';
import type { Webhook } from './review.ts';
import {
  mutateVirtualMachineInstance,
  validateChangedVirtualMachineInstance,
  validateNewVirtualMachineInstance,
} from './virtual-machine-instances.ts';
import { mutateVirtualMachine, validateVirtualMachine } from './virtual-machines.ts';

/** All webhooks: what API servers are told of each, and who answers. Names and paths are KubeVirt's where it has them. */

type Operation = 'CREATE' | 'UPDATE' | 'DELETE';

/** What is registered of a webhook. */
export interface Registration {
  readonly type: 'mutating' | 'validating';
  readonly name: string;
  readonly path: string;
  readonly operations: readonly Operation[];
  readonly apiGroup: string;
  readonly apiVersion: string;
  readonly resources: readonly string[];
  readonly failurePolicy: 'Fail' | 'Ignore';
  /** What asking does besides; nothing where it does not say. */
  readonly sideEffects?: 'NoneOnDryRun';
  readonly matchConditions?: readonly { readonly name: string; readonly expression: string }[];
}

export interface WebhookEndpoint extends Registration {
  readonly answer: (context: WebhookContext) => Webhook;
}

const KUBEVIRT = { apiGroup: 'kubevirt.io', apiVersion: 'v1', failurePolicy: 'Fail' } as const;
const INSTANCETYPE = {
  type: 'validating',
  apiGroup: 'instancetype.kubevirt.io',
  apiVersion: 'v1beta1',
  failurePolicy: 'Fail',
  operations: ['CREATE', 'UPDATE'],
} as const;

const POLICY = {
  apiGroup: 'migrations.kubevirt.io',
  apiVersion: 'v1alpha1',
  resources: ['migrationpolicies'],
  failurePolicy: 'Fail',
  operations: ['CREATE', 'UPDATE'],
} as const;

/** Not asked is as good as allowed: what must stay has a disruption budget besides, and all others must be able to go. */
const EVICTION = {
  type: 'validating',
  apiGroup: '',
  apiVersion: 'v1',
  resources: ['pods/eviction'],
  failurePolicy: 'Ignore',
  operations: ['CREATE'],
  sideEffects: 'NoneOnDryRun',
} as const;

const isNamed = (name: string, prefix: string) => ({
  name,
  expression: `object.metadata.name.startsWith(${JSON.stringify(prefix)})`,
});

const LABELS = (object: string): string => `(has(${object}.metadata.labels) ? ${object}.metadata.labels : {})`;

const SPEC_CHANGED = '!has(object.spec) || object.spec != oldObject.spec';

/**
 * Components write metadata all the time, and must be able to while nobody is there to ask, or nothing could ever be
 * deleted then: only what would be looked at is asked about.
 */
const SPEC_IS_NEW = { name: 'spec-is-new', expression: `request.operation == 'CREATE' || ${SPEC_CHANGED}` };
const SPEC_OR_LABELS_CHANGED = {
  name: 'spec-or-labels-changed',
  expression: `${SPEC_CHANGED} || ${LABELS('object')} != ${LABELS('oldObject')}`,
};

/** Our own controllers may change what they like, as they do with every move. */
const BY_OTHERS = {
  name: 'by-others',
  expression: `!request.userInfo.username.startsWith(${JSON.stringify(OWN_ACCOUNTS_PREFIX)})`,
};

/** What our own controllers make is complete when they make it: hundreds at once do not wait for what would change nothing. */
const IS_INCOMPLETE = {
  name: 'is-incomplete',
  expression:
    `!request.userInfo.username.startsWith(${JSON.stringify(OWN_ACCOUNTS_PREFIX)}) || ` +
    '!has(object.metadata.finalizers) || !has(object.metadata.labels) || !has(object.spec.vmName) || !has(object.spec.cause)',
};

/** Only nodes are asked about: everybody else's writes go on while nobody is there to ask. */
const BY_NODES = {
  name: 'by-nodes',
  expression: `has(request.userInfo.groups) && ${JSON.stringify(NODES_GROUP)} in request.userInfo.groups`,
};

export const WEBHOOKS: readonly WebhookEndpoint[] = [
  {
    ...KUBEVIRT,
    type: 'mutating',
    name: 'virtualmachines-mutator.kubevirt.io',
    path: '/virtualmachines-mutate',
    operations: ['CREATE', 'UPDATE'],
    resources: ['virtualmachines'],
    matchConditions: [SPEC_IS_NEW],
    answer: mutateVirtualMachine,
  },
  {
    ...KUBEVIRT,
    type: 'mutating',
    name: 'virtualmachineinstances-mutator.kubevirt.io',
    path: '/virtualmachineinstances-mutate',
    operations: ['CREATE'],
    resources: ['virtualmachineinstances'],
    answer: mutateVirtualMachineInstance,
  },
  {
    ...KUBEVIRT,
    type: 'mutating',
    name: 'migrations-mutator.kubevirt.io',
    path: '/migration-mutate-create',
    operations: ['CREATE'],
    resources: ['virtualmachineinstancemigrations'],
    matchConditions: [IS_INCOMPLETE],
    answer: mutateMigration,
  },
  {
    ...POLICY,
    type: 'mutating',
    name: 'migration-policies-mutator.godwit.dev',
    path: '/migration-policy-mutate',
    matchConditions: [SPEC_IS_NEW],
    answer: mutateMigrationPolicy,
  },
  {
    ...KUBEVIRT,
    type: 'validating',
    name: 'virtualmachine-validator.kubevirt.io',
    path: '/virtualmachines-validate',
    operations: ['CREATE', 'UPDATE'],
    resources: ['virtualmachines'],
    matchConditions: [SPEC_IS_NEW],
    answer: validateVirtualMachine,
  },
  {
    ...KUBEVIRT,
    type: 'validating',
    name: 'virtualmachineinstances-create-validator.kubevirt.io',
    path: '/virtualmachineinstances-validate-create',
    operations: ['CREATE'],
    resources: ['virtualmachineinstances'],
    answer: validateNewVirtualMachineInstance,
  },
  {
    ...KUBEVIRT,
    type: 'validating',
    name: 'virtualmachineinstances-update-validator.kubevirt.io',
    path: '/virtualmachineinstances-validate-update',
    operations: ['UPDATE'],
    resources: ['virtualmachineinstances'],
    matchConditions: [BY_OTHERS, SPEC_OR_LABELS_CHANGED],
    answer: validateChangedVirtualMachineInstance,
  },
  {
    ...KUBEVIRT,
    type: 'validating',
    name: 'migration-create-validator.kubevirt.io',
    path: '/migration-validate-create',
    operations: ['CREATE'],
    resources: ['virtualmachineinstancemigrations'],
    answer: validateNewMigration,
  },
  {
    ...KUBEVIRT,
    type: 'validating',
    name: 'migration-update-validator.kubevirt.io',
    path: '/migration-validate-update',
    operations: ['UPDATE'],
    resources: ['virtualmachineinstancemigrations'],
    matchConditions: [SPEC_OR_LABELS_CHANGED],
    answer: validateChangedMigration,
  },
  {
    ...POLICY,
    type: 'validating',
    name: 'migration-policy-validator.kubevirt.io',
    path: '/migration-policy-validate-create',
    matchConditions: [SPEC_IS_NEW],
    answer: validateMigrationPolicy,
  },
  {
    ...EVICTION,
    name: 'virt-launcher-eviction-interceptor.kubevirt.io',
    path: '/pod-eviction-validate',
    matchConditions: [isNamed('only-vms', 'virt-launcher')],
    answer: interceptEviction,
  },
  {
    ...EVICTION,
    name: 'hotplug-pod-eviction-interceptor.kubevirt.io',
    path: '/hotplug-pod-eviction-validate',
    matchConditions: [isNamed('only-hotplug-pods', 'hp-volume-')],
    answer: keepHotplugPod,
  },
  {
    ...KUBEVIRT,
    type: 'validating',
    name: 'node-restriction.godwit.dev',
    path: '/node-restriction',
    operations: ['CREATE', 'UPDATE', 'DELETE'],
    resources: [
      'virtualmachineinstances',
      'virtualmachineinstances/status',
      'virtualmachineinstancemigrations',
      'virtualmachineinstancemigrations/status',
      'virtualmachines',
      'virtualmachines/status',
      'kubevirts',
      'kubevirts/status',
    ],
    matchConditions: [BY_NODES],
    answer: restrictNodes,
  },
  {
    ...KUBEVIRT,
    type: 'validating',
    name: 'kubevirt-validator.kubevirt.io',
    path: '/kubevirts-validate',
    operations: ['CREATE', 'UPDATE'],
    resources: ['kubevirts'],
    // Nothing depends on it, and whoever installs anew must be able to while nobody is there to ask.
    failurePolicy: 'Ignore',
    answer: validateKubeVirt,
  },
  {
    ...INSTANCETYPE,
    name: 'virtualmachineinstancetype-validator.instancetype.kubevirt.io',
    path: '/virtualmachineinstancetypes-validate',
    resources: ['virtualmachineinstancetypes'],
    answer: validateInstancetype,
  },
  {
    ...INSTANCETYPE,
    name: 'virtualmachineclusterinstancetype-validator.instancetype.kubevirt.io',
    path: '/virtualmachineclusterinstancetypes-validate',
    resources: ['virtualmachineclusterinstancetypes'],
    answer: validateInstancetype,
  },
  {
    ...INSTANCETYPE,
    name: 'virtualmachinepreference-validator.instancetype.kubevirt.io',
    path: '/virtualmachinepreferences-validate',
    resources: ['virtualmachinepreferences'],
    answer: validatePreference,
  },
  {
    ...INSTANCETYPE,
    name: 'virtualmachineclusterpreference-validator.instancetype.kubevirt.io',
    path: '/virtualmachineclusterpreferences-validate',
    resources: ['virtualmachineclusterpreferences'],
    answer: validatePreference,
  },
];
