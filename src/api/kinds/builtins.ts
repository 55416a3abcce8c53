import type { ResourceDefinition } from '../resource.ts';
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
