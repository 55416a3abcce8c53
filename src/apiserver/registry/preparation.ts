import { apiVersionOf, formatTime, type KubeObject, type ObjectMeta } from '../../api/meta.ts';
import type { ResourceDefinition } from '../../api/resource.ts';
import { badRequest, conflict, invalidObject, staleObject } from '../../api/status.ts';
import type { Random } from '../../env/ports.ts';
import { deepEqual } from '../../machinery/equal.ts';
import type { Target } from './contract.ts';

/** What the server itself decides about an object before anyone validates it: identity, times, generation, status. */

/** No vowels and nothing that looks alike, so that random names spell nothing. */
const SUFFIX_ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';
const SUFFIX_LENGTH = 5;
const NAME_LENGTH_MAX = 63;

/** Completes a generateName prefix, cut so that the whole stays a DNS label. */
export function generateName(prefix: string, random: Random): string {
  let suffix = '';
  for (let index = 0; index < SUFFIX_LENGTH; index++)
    suffix += SUFFIX_ALPHABET[Math.floor(random.number() * SUFFIX_ALPHABET.length)];
  return prefix.slice(0, NAME_LENGTH_MAX - SUFFIX_LENGTH) + suffix;
}

/** Makes the object's identity that of the request, or throws 400 where the two disagree. */
export function alignIdentity(target: Target, object: KubeObject): void {
  const { definition, namespace, name } = target;
  object.apiVersion = apiVersionOf(definition.group, definition.version);
  object.kind = definition.kind;
  object.metadata ??= {};
  const { metadata } = object;
  if (!definition.namespaced) delete metadata.namespace;
  else if (metadata.namespace === undefined || metadata.namespace === '') metadata.namespace = namespace;
  else if (metadata.namespace !== namespace)
    throw badRequest(`the namespace of the provided object does not match the namespace sent on the request`);
  if (name === '') return;
  // Not filled in: whoever leaves out the name has likely left out all the rest of the metadata.
  if (metadata.name === undefined || metadata.name === '')
    throw badRequest(`the name of the object (${name} based on URL) was undeterminable: name must be provided`);
  if (metadata.name !== name)
    throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${name})`);
}

/** Gives a new object its server-owned metadata and an empty status. */
export function prepareCreate(definition: ResourceDefinition, object: KubeObject, nowMs: number, random: Random): void {
  const { metadata } = object;
  if (metadata.resourceVersion !== undefined && metadata.resourceVersion !== '')
    throw badRequest('resourceVersion should not be set on objects to be created');
  metadata.uid = random.uuid();
  metadata.creationTimestamp = formatTime(nowMs);
  delete metadata.resourceVersion;
  delete metadata.deletionTimestamp;
  delete metadata.deletionGracePeriodSeconds;
  delete metadata.selfLink;
  delete metadata.generation;
  if (definition.hasGeneration) metadata.generation = 1;
  if (definition.hasStatus && definition.custom) delete object['status'];
  definition.strategy?.prepareForCreate?.(object);
}

const SERVER_OWNED = [
  'uid',
  'creationTimestamp',
  'selfLink',
  'generation',
  'generateName',
] as const satisfies readonly (keyof ObjectMeta)[];

/** Refuses an update that was made for another object or an older version of this one. */
export function checkPreconditions(target: Target, updated: KubeObject, current: KubeObject): void {
  const { definition, name } = target;
  const { resourceVersion = '', uid } = updated.metadata;
  const isUnconditional = resourceVersion === '' || resourceVersion === '0';
  if (isUnconditional && (definition.custom || definition.needsResourceVersion)) {
    // Upstream names the resource where a kind belongs.
    const message = 'Invalid value: 0: must be specified for an update';
    throw invalidObject(definition.group, definition.plural, name, [
      { type: 'FieldValueInvalid', field: 'metadata.resourceVersion', message },
    ]);
  }
  if (uid !== undefined && uid !== '' && uid !== current.metadata.uid) {
    throw conflict(
      definition,
      name,
      `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${current.metadata.uid}`,
    );
  }
  if (!isUnconditional && resourceVersion !== current.metadata.resourceVersion) throw staleObject(definition, name);
}

/** Restores what this endpoint may not change, and counts the generation. */
export function prepareUpdate(target: Target, updated: KubeObject, current: KubeObject): void {
  const { definition, subresource } = target;
  const { strategy } = definition;
  for (const field of SERVER_OWNED) restore(updated.metadata, current.metadata, field);
  // A deletion cannot be taken back; one that was not asked for is left for validation to refuse.
  if (current.metadata.deletionTimestamp !== undefined)
    restore(updated.metadata, current.metadata, 'deletionTimestamp');
  updated.metadata.deletionGracePeriodSeconds ??= current.metadata.deletionGracePeriodSeconds;
  if (updated.metadata.deletionGracePeriodSeconds === undefined) delete updated.metadata.deletionGracePeriodSeconds;
  updated.metadata.resourceVersion = current.metadata.resourceVersion;
  if (subresource === 'status') {
    restoreAllButStatus(definition, updated, current);
    strategy?.prepareForStatusUpdate?.(updated, current);
  } else if (subresource === undefined) {
    if (definition.hasStatus) restore(updated, current, 'status');
    strategy?.prepareForUpdate?.(updated, current);
  } else {
    strategy?.prepareForSubresourceUpdate?.(subresource, updated, current);
  }
  // Where a pod runs is no part of what was asked for.
  const isDesire = subresource !== 'status' && subresource !== 'binding';
  if (definition.hasGeneration && isDesire && !isSameDesire(updated, current)) {
    updated.metadata.generation = (current.metadata.generation ?? 0) + 1;
  }
}

/** What cannot be owned through this endpoint, because it cannot be written through it. */
export function resetFieldsOf(target: Target): readonly string[][] {
  const { hasStatus, group, kind } = target.definition;
  if (!hasStatus) return [];
  if (target.subresource !== 'status') return [['status']];
  // Of the built-in kinds this is the only one whose labels a status cannot bring along.
  return group === 'apps' && kind === 'Deployment' ? [['spec'], ['metadata', 'labels']] : [['spec']];
}

function restore<T extends object>(updated: T, current: T, field: keyof T): void {
  if (current[field] === undefined) delete updated[field];
  else updated[field] = current[field];
}

/** Built-in kinds let a status write touch labels and annotations too; custom ones let it touch nothing else. */
function restoreAllButStatus(definition: ResourceDefinition, updated: KubeObject, current: KubeObject): void {
  for (const field of new Set([...Object.keys(updated), ...Object.keys(current)])) {
    if (field !== 'status' && field !== 'metadata') restore(updated, current, field);
  }
  if (definition.custom) updated.metadata = { ...current.metadata, managedFields: updated.metadata.managedFields };
  else restore(updated.metadata, current.metadata, 'ownerReferences');
}

/** Whether two versions of an object ask for the same: everything but metadata and status is equal. */
function isSameDesire(a: KubeObject, b: KubeObject): boolean {
  const { metadata: _m, status: _s, ...desireA } = a;
  const { metadata: _n, status: _t, ...desireB } = b;
  return deepEqual(desireA, desireB);
}
