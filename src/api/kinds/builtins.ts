import { apiVersionOf } from '../meta.ts';
import type { ResourceDefinition } from '../resource.ts';
import type { Schema } from '../schema.ts';
import {
  mutatingWebhookConfigurationDefinition,
  validatingWebhookConfigurationDefinition,
} from './admissionregistration/webhook-configurations.ts';
import { customResourceDefinitionDefinition } from './apiextensions/custom-resource-definition.ts';
import { apiServiceDefinition } from './apiregistration/api-service.ts';
import { controllerRevisionDefinition } from './apps/controller-revision.ts';
import { daemonSetDefinition } from './apps/daemon-set.ts';
import { deploymentDefinition } from './apps/deployment.ts';
import { replicaSetDefinition } from './apps/replica-set.ts';
import { statefulSetDefinition } from './apps/stateful-set.ts';
import { selfSubjectReviewDefinition, tokenReviewDefinition } from './authentication/reviews.ts';
import {
  localSubjectAccessReviewDefinition,
  selfSubjectAccessReviewDefinition,
  selfSubjectRulesReviewDefinition,
  subjectAccessReviewDefinition,
} from './authorization/reviews.ts';
import { cronJobDefinition } from './batch/cron-job.ts';
import { jobDefinition } from './batch/job.ts';
import { certificateSigningRequestDefinition } from './certificates/certificate-signing-request.ts';
import { leaseDefinition } from './coordination/lease.ts';
import { coreDefinitions } from './core/definitions.ts';
import { endpointSliceDefinition } from './discovery/endpoint-slice.ts';
import { eventsEventDefinition } from './events/event.ts';
import { bindingSchema, deleteOptionsSchema, evictionSchema, scaleSchema, tokenRequestSchema } from './meta-options.ts';
import { ingressDefinition } from './networking/ingress.ts';
import { networkPolicyDefinition } from './networking/network-policy.ts';
import { runtimeClassDefinition } from './node/runtime-class.ts';
import { podDisruptionBudgetDefinition } from './policy/pod-disruption-budget.ts';
import { clusterRoleBindingDefinition, roleBindingDefinition } from './rbac/bindings.ts';
import { clusterRoleDefinition, roleDefinition } from './rbac/roles.ts';
import { priorityClassDefinition } from './scheduling/priority-class.ts';
import { storageClassDefinition } from './storage/storage-class.ts';

/** Every built-in kind. */
export const builtinDefinitions: readonly ResourceDefinition[] = [
  ...coreDefinitions,
  eventsEventDefinition,
  deploymentDefinition,
  replicaSetDefinition,
  statefulSetDefinition,
  daemonSetDefinition,
  controllerRevisionDefinition,
  jobDefinition,
  cronJobDefinition,
  podDisruptionBudgetDefinition,
  leaseDefinition,
  priorityClassDefinition,
  storageClassDefinition,
  roleDefinition,
  clusterRoleDefinition,
  roleBindingDefinition,
  clusterRoleBindingDefinition,
  tokenReviewDefinition,
  selfSubjectReviewDefinition,
  subjectAccessReviewDefinition,
  localSubjectAccessReviewDefinition,
  selfSubjectAccessReviewDefinition,
  selfSubjectRulesReviewDefinition,
  certificateSigningRequestDefinition,
  validatingWebhookConfigurationDefinition,
  mutatingWebhookConfigurationDefinition,
  customResourceDefinitionDefinition,
  apiServiceDefinition,
  runtimeClassDefinition,
  networkPolicyDefinition,
  ingressDefinition,
  endpointSliceDefinition,
];

const bodies: ReadonlyMap<string, Schema> = new Map([
  ...builtinDefinitions.map((definition): [string, Schema] => [
    `${apiVersionOf(definition.group, definition.version)} ${definition.kind}`,
    definition.schema,
  ]),
  ['policy/v1 Eviction', evictionSchema],
  ['v1 Binding', bindingSchema],
  ['autoscaling/v1 Scale', scaleSchema],
  ['authentication.k8s.io/v1 TokenRequest', tokenRequestSchema],
]);

/** The schema of anything built in that a request may carry; DeleteOptions come under any apiVersion. */
export function bodySchemaOf(apiVersion: string, kind: string): Schema | undefined {
  return kind === 'DeleteOptions' ? deleteOptionsSchema : bodies.get(`${apiVersion} ${kind}`);
}
