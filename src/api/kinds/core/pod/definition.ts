import type { JsonObject, KubeObject } from '../../../meta.ts';
import type { Strategy, SubresourceDefinition } from '../../../resource.ts';
import { objectSchema } from '../../meta.ts';
import { bindingSchema, evictionSchema } from '../../meta-options.ts';
import { objectAt, objectsAt } from '../fields.ts';
import { coreKind } from '../kind.ts';
import { CORE } from '../schema/package.ts';
import { podSpec } from '../schema/pod-spec.ts';
import { podStatus } from '../schema/pod-status.ts';
import { podColumns } from './columns.ts';
import { applyPodDefaults } from './defaults.ts';
import { qosClassOf } from './qos.ts';
import { podErrors } from './validate-pod.ts';
import { podStatusUpdateErrors, prepareStatus } from './validate-status.ts';
import { ephemeralUpdateErrors, podUpdateErrors } from './validate-update.ts';
import { podWarnings } from './warnings.ts';

const strategy: Strategy = {
  applyDefaults: applyPodDefaults,
  prepareForCreate(pod) {
    const spec = objectAt(pod, 'spec') ?? {};
    pod['status'] = { phase: 'Pending', qosClass: qosClassOf(spec) };
    if (objectsAt(spec, 'schedulingGates').length > 0)
      markGated(pod['status'] as JsonObject, pod.metadata.creationTimestamp ?? null);
  },
  prepareForStatusUpdate: prepareStatus,
  prepareForSubresourceUpdate(subresource, pod, old) {
    if (subresource === 'ephemeralcontainers') restoreAllButEphemeral(pod, old);
  },
  validate: podErrors,
  validateUpdate: podUpdateErrors,
  validateStatusUpdate: podStatusUpdateErrors,
  validateSubresourceUpdate: (subresource, pod, old) =>
    subresource === 'ephemeralcontainers' ? ephemeralUpdateErrors(pod, old) : [],
  warnings: podWarnings,
};

/** A write through `ephemeralcontainers` says nothing about the rest of the pod. */
function restoreAllButEphemeral(pod: KubeObject, old: KubeObject): void {
  const containers = objectAt(pod, 'spec')?.['ephemeralContainers'];
  const { ephemeralContainers: _old, ...spec } = objectAt(old, 'spec') ?? {};
  pod['spec'] = containers === undefined ? spec : { ...spec, ephemeralContainers: containers };
  pod['status'] = old['status'];
  const { managedFields } = pod.metadata;
  pod.metadata = { ...old.metadata };
  if (managedFields !== undefined) pod.metadata.managedFields = managedFields;
}

/** Says why nobody schedules the pod. */
function markGated(status: JsonObject, since: string | null): void {
  status['conditions'] = [
    {
      type: 'PodScheduled',
      status: 'False',
      lastProbeTime: null,
      lastTransitionTime: since,
      reason: 'SchedulingGated',
      message: 'Scheduling is blocked due to non-empty scheduling gates',
    },
  ];
}

const subresources: readonly SubresourceDefinition[] = [
  { name: 'binding', kind: 'Binding', verbs: ['create'], schema: bindingSchema },
  { name: 'ephemeralcontainers', verbs: ['get', 'patch', 'update'] },
  { name: 'log', verbs: ['get'] },
  { name: 'eviction', kind: 'Eviction', group: 'policy', version: 'v1', verbs: ['create'], schema: evictionSchema },
];

/** core/v1 Pod. */
export const podDefinition = coreKind({
  plural: 'pods',
  kind: 'Pod',
  namespaced: true,
  shortNames: ['po'],
  categories: ['all'],
  hasStatus: true,
  hasGeneration: true,
  schema: objectSchema(`${CORE}.Pod`, 'Containers that run together on one node.', {
    spec: [2, podSpec, 'What the pod is to run.'],
    status: [3, podStatus, 'The observed state.'],
  }),
  subresources,
  selectableFields: [
    'spec.nodeName',
    'spec.restartPolicy',
    'spec.schedulerName',
    'spec.serviceAccountName',
    'spec.hostNetwork',
    'status.phase',
    'status.podIP',
    'status.nominatedNodeName',
    'spec.host',
  ],
  selectableAliases: { 'spec.host': ['spec.nodeName'] },
  columns: podColumns,
  strategy,
});
