import type { Group } from '../request.ts';
import { ACCESS } from './access.ts';
import { ADMISSION } from './admission.ts';
import { READS, WRITES } from './config-maps.ts';
import { CUSTOM_RESOURCES } from './custom-resources.ts';
import { DELETIONS } from './deletions.ts';
import { DISCOVERY } from './discovery.ts';
import { EVICTIONS } from './evictions.ts';
import { NODES_GROUP } from './nodes.ts';
import { PATCHES } from './patches.ts';
import { PODS_GROUP } from './pods.ts';
import { SMALL_KINDS } from './small-kinds.ts';
import { VOLUMES_GROUP } from './volumes.ts';
import { WATCHES } from './watches.ts';
import { WORKLOADS } from './workloads.ts';

/** The whole table. */
export const GROUPS: readonly Group[] = [
  DISCOVERY,
  WRITES,
  READS,
  PATCHES,
  WATCHES,
  DELETIONS,
  PODS_GROUP,
  EVICTIONS,
  NODES_GROUP,
  VOLUMES_GROUP,
  SMALL_KINDS,
  WORKLOADS,
  ACCESS,
  CUSTOM_RESOURCES,
  ADMISSION,
];
