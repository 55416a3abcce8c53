import type { ResourceDefinition } from '../../resource.ts';
import { configMapDefinition } from './config-map.ts';
import { endpointsDefinition } from './endpoints.ts';
import { eventDefinition } from './event.ts';
import { limitRangeDefinition } from './limit-range.ts';
import { namespaceDefinition } from './namespace.ts';
import { nodeDefinition } from './node.ts';
import { persistentVolumeClaimDefinition } from './persistent-volume-claim.ts';
import { persistentVolumeDefinition } from './persistent-volume.ts';
import { podTemplateDefinition } from './pod-template-kind.ts';
import { podDefinition } from './pod/definition.ts';
import { replicationControllerDefinition } from './replication-controller.ts';
import { resourceQuotaDefinition } from './resource-quota.ts';
import { secretDefinition } from './secret.ts';
import { serviceAccountDefinition } from './service-account.ts';
import { serviceDefinition } from './service/definition.ts';

/** Every kind of core/v1 that is served. */
export const coreDefinitions: readonly ResourceDefinition[] = [
  configMapDefinition,
  endpointsDefinition,
  eventDefinition,
  limitRangeDefinition,
  namespaceDefinition,
  nodeDefinition,
  persistentVolumeClaimDefinition,
  persistentVolumeDefinition,
  podDefinition,
  podTemplateDefinition,
  replicationControllerDefinition,
  resourceQuotaDefinition,
  secretDefinition,
  serviceAccountDefinition,
  serviceDefinition,
];
