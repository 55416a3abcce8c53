import { type FieldError, invalid } from '../field-error.ts';
import type { Json, JsonObject } from '../meta.ts';

/**
 * Fields of migrations between two control planes that have two names: the one that was proposed, which our code reads,
 * and the one that KubeVirt ships, which users' manifests and tools have. Both are stored and say the same. A webhook
 * fills in a spec's, and refuses two that differ; whoever writes one of a status writes its twin in the same patch.
 */

/** Paths of the same value, the proposed one first. */
export type Twins = readonly [proposed: string, shipped: string];

/** In the spec of a migration. */
export const MIGRATION_SPEC_TWINS: readonly Twins[] = [
  ['vmName', 'vmiName'],
  ['sendTo.key', 'sendTo.migrationID'],
  ['receive.key', 'receive.migrationID'],
];

/** In the status of a migration. */
export const MIGRATION_STATUS_TWINS: readonly Twins[] = [['syncEndpoint', 'synchronizationAddresses.0']];

const side = (proposed: string, shipped: string): Twins[] => [
  [`${proposed}.migrationConfiguration`, 'migrationState.migrationConfiguration'],
  [`${proposed}.migrationNetworkType`, 'migrationState.migrationNetworkType'],
  [`${proposed}.mode`, 'migrationState.mode'],
  [`${proposed}.migrationUid`, `${shipped}.migrationUID`],
  [`${proposed}.node`, `${shipped}.node`],
  [`${proposed}.pod`, `${shipped}.pod`],
  [`${proposed}.vmiUID`, `${shipped}.virtualMachineInstanceUID`],
  [`${proposed}.namespace`, `${shipped}.domainNamespace`],
  [`${proposed}.domainName`, `${shipped}.domainName`],
  [`${proposed}.syncAddress`, `${shipped}.syncAddress`],
  [`${proposed}.persistentStatePVCName`, `${shipped}.persistentStatePVCName`],
  [`${proposed}.selinuxContext`, `${shipped}.selinuxContext`],
];

/** In the status of a guest that has halves of a migration; others have none of the proposed fields. */
export const GUEST_STATUS_TWINS: readonly Twins[] = [
  ...side('sourceMigrationState', 'migrationState.sourceState'),
  ['sourceMigrationState.nodeLabelSelectors', 'migrationState.sourceState.nodeSelectors'],
  ...side('targetMigrationState', 'migrationState.targetState'),
  ['targetMigrationState.nodeAddress', 'migrationState.targetState.nodeAddress'],
  ['targetMigrationState.directMigrationNodePorts', 'migrationState.targetState.directMigrationNodePorts'],
  ['targetMigrationState.nodeDomainDetected', 'migrationState.targetState.domainDetected'],
  ['targetMigrationState.nodeDomainReadyTimestamp', 'migrationState.targetState.domainReadyTimestamp'],
  ['targetMigrationState.attachmentPodUID', 'migrationState.targetState.attachmentPodUID'],
  ['targetMigrationState.cpuSet', 'migrationState.targetState.cpuSet'],
  ['targetMigrationState.nodeTopology', 'migrationState.targetState.nodeTopology'],
];

/** The same object with what is under one name only under both; itself where nothing was missing. */
export function withTwins<T extends object>(object: T, twins: readonly Twins[]): T {
  let filled = object as unknown as Json;
  for (const [proposed, shipped] of twins) {
    const [one, other] = [at(filled, proposed), at(filled, shipped)];
    if (one === undefined && other !== undefined) filled = withAt(filled, proposed, other);
    if (other === undefined && one !== undefined) filled = withAt(filled, shipped, one);
  }
  return filled as unknown as T;
}

/** What is said differently under two names. */
export function twinErrors(object: object, twins: readonly Twins[], path: string): FieldError[] {
  return twins.flatMap(([proposed, shipped]) => {
    const [one, other] = [at(object as Json, proposed), at(object as Json, shipped)];
    if (one === undefined || other === undefined || one === other) return [];
    return [invalid(`${path}.${proposed}`, one, `must be the same as ${path}.${shipped}, ${JSON.stringify(other)}`)];
  });
}

/** What is at a path; undefined also for what says nothing, as Go's clients write it. */
function at(value: Json, path: string): Json | undefined {
  let found: Json | undefined = value;
  for (const step of path.split('.')) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, step)) return undefined;
    found = (found as JsonObject)[step];
  }
  return found === null || found === '' ? undefined : found;
}

/** A copy with another value at a path, whose missing parents are made. A step that is a number is into a list. */
function withAt(value: Json | undefined, path: string, leaf: Json): Json {
  const [step = '', ...rest] = path.split('.');
  const next =
    rest.length === 0 ? leaf : withAt(isContainer(value) ? childOf(value, step) : undefined, rest.join('.'), leaf);
  if (!/^\d+$/.test(step)) return { ...(isContainer(value) && !Array.isArray(value) ? value : {}), [step]: next };
  const items = Array.isArray(value) ? [...value] : [];
  items[Number(step)] = next;
  return items;
}

function isContainer(value: Json | undefined): value is JsonObject | Json[] {
  return typeof value === 'object' && value !== null;
}

function childOf(container: JsonObject | Json[], step: string): Json | undefined {
  return Object.hasOwn(container, step) ? (container as JsonObject)[step] : undefined;
}
