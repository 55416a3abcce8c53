import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import type { KubeObject } from '../../api/meta.ts';
import { compareQuantities, parseQuantity } from '../../api/quantity.ts';
import { configMaps, secrets } from '../../cluster/resources.ts';
import { persistentVolumeClaims } from '../../control/resources.ts';
import type { Resource } from '../../kube/resource.ts';
import { deepEqual } from '../../machinery/equal.ts';
import type { PersistentVolumeClaim } from '../../migration/fit/objects.ts';
import { copyOf, EPOCH_ANNOTATION, MOVE_LABEL, type MoveMark } from './receiving-machine.ts';
import { type Reference, referencesOf } from './references.ts';
import type { SeenMove, SeenSizing } from './seen.ts';

/** What has to be at the target besides the machine, and what of it is missing. */

/** Something that keeps a move from beginning, and what to do about it. */
export interface Obstacle {
  readonly what: string;
  readonly fix: string;
  /** Whether it will be gone soon, by itself. */
  readonly isPassing?: boolean;
}

/** `missing`: has to be made. `made`: this move made it before. `there`: somebody else's, and used as it is. */
export type ObjectState = 'missing' | 'made' | 'there';

export interface PlannedObject {
  readonly resource: Resource;
  /** As it is to be made, or as it is. */
  readonly object: KubeObject;
  readonly state: ObjectState;
  /** What it is for; for people. */
  readonly about: string;
}

/** A move, and whose an object at the target is that it needs. */
interface Made extends MoveMark {
  readonly stateOf: (object: KubeObject) => ObjectState;
}

/** What is found out about objects, one after the other. */
export interface Findings {
  readonly objects: PlannedObject[];
  readonly obstacles: Obstacle[];
  readonly notes: string[];
}

/**
 * All that the machine at the target needs, before it waits. Whoever made one that waits has seen to that; one that was
 * left has its claims, and may have lost the rest.
 */
export function plannedObjects(seen: SeenMove, mark: MoveMark, machine: ObjectState | 'taken back'): Findings {
  const found: Findings = { objects: [], obstacles: [], notes: [] };
  if (machine === 'there') return found;
  // A machine that still waits has never had a guest, nor has what was made for it, in whichever epoch that was.
  const isOwn = (object: KubeObject): boolean =>
    isOfMove(object, mark.id) && (machine === 'made' || isOfEpoch(object, mark));
  const move: Made = { ...mark, stateOf: (object) => (isOwn(object) ? 'made' : 'there') };
  const references = referencesOf(seen.source.machine);
  for (const reference of references.secrets) copied(seen, move, reference, 'secret', found);
  for (const reference of references.configMaps) copied(seen, move, reference, 'config map', found);
  for (const account of references.serviceAccounts) {
    if (seen.target.serviceAccounts.has(account)) continue;
    found.obstacles.push({
      what: `there is no service account ${account} in ${seen.request.to.namespace}`,
      fix: `kubectl create serviceaccount ${account} -n ${seen.request.to.namespace}`,
    });
  }
  sized(seen.source.instancetype, seen.target.instancetype, 'instance type', seen, move, found);
  sized(seen.source.preference, seen.target.preference, 'preference', seen, move, found);
  if (machine !== 'taken back') claimed(seen, move, found);
  return found;
}

function copied(seen: SeenMove, move: Made, reference: Reference, what: string, found: Findings): void {
  const { name, isOptional } = reference;
  const { source, target, request } = seen;
  const isSecret = what === 'secret';
  const own = (isSecret ? source.secrets : source.configMaps).get(name);
  const there = (isSecret ? target.secrets : target.configMaps).get(name);
  const resource = (isSecret ? secrets : configMaps) as Resource;
  const { namespace } = request.to;
  if (there) {
    found.objects.push({ resource, object: there, state: move.stateOf(there), about: '' });
    if (own && move.stateOf(there) === 'there' && !isSameContent(own, there))
      found.notes.push(
        `the ${what} ${name} in ${namespace} is not as that in ${request.from.namespace}, and stays as it is: it counts when the machine is started afresh`,
      );
    return;
  }
  if (own)
    found.objects.push({ resource, object: copyOf(own, move, name, namespace), state: 'missing', about: 'a copy' });
  else if (!isOptional)
    found.obstacles.push({
      what: `the ${what} ${name}, which the machine refers to, is neither in ${request.from.namespace} nor in ${namespace}`,
      fix: `create it in ${namespace}, as the machine needs it when it is started afresh`,
    });
}

function isSameContent(one: KubeObject, other: KubeObject): boolean {
  return deepEqual([one['data'] ?? {}, one['binaryData'] ?? {}], [other['data'] ?? {}, other['binaryData'] ?? {}]);
}

/** Whether runs of a move made it, in whichever epoch. */
export function isOfMove({ metadata }: KubeObject, id: string): boolean {
  return metadata.labels?.[MOVE_LABEL] === id;
}

/** Whether the guest has not been anywhere else since it was made. */
function isOfEpoch({ metadata }: KubeObject, { epoch }: MoveMark): boolean {
  return metadata.annotations?.[EPOCH_ANNOTATION] === epoch;
}

function sized<T extends KubeObject>(
  own: SeenSizing<T> | undefined,
  there: SeenSizing<T> | undefined,
  what: string,
  { request }: SeenMove,
  move: Made,
  found: Findings,
): void {
  if (!own) return;
  const resource = own.resource as unknown as Resource;
  const namespace = own.resource.namespaced ? request.to.namespace : undefined;
  if (there?.object) {
    const state = move.stateOf(there.object);
    found.objects.push({ resource, object: there.object, state, about: '' });
    if (state === 'there' && own.object && !deepEqual(own.object['spec'], there.object['spec']))
      found.notes.push(`the ${what} ${own.name} at the target is not the one that the machine was made with`);
    return;
  }
  if (own.object)
    found.objects.push({
      resource,
      object: copyOf(own.object, move, own.name, namespace),
      state: 'missing',
      about: 'a copy',
    });
  else
    found.obstacles.push({
      what: `there is no ${what} ${own.name}, on either side`,
      fix: `create it at the target, with what the machine has`,
    });
}

function claimed(seen: SeenMove, move: Made, found: Findings): void {
  const { source, target, request } = seen;
  const { namespace } = request.to;
  const used = new Set<string>();
  for (const { name, volume, isBelow } of referencesOf(source.machine).claims) {
    const own = source.claims.get(name);
    const there = target.claims.get(name);
    const storageClass = own?.spec?.storageClassName;
    if (storageClass !== undefined) used.add(storageClass);
    if (there && (isBelow || move.stateOf(there) === 'made')) {
      found.objects.push({ resource: claimResource, object: there, state: move.stateOf(there), about: '' });
      if (there.metadata.deletionTimestamp) found.obstacles.push(leaving(`the claim ${name}`, namespace));
    } else if (there)
      found.obstacles.push({
        what: `the claim ${name} is in ${namespace} already, and what is in it would be written over`,
        fix: `delete it, or move to another namespace; who prepared it for this makes the machine that waits, too`,
      });
    else if (!own)
      found.obstacles.push({
        what: `there is no claim ${name}, which the volume ${volume} is on`,
        fix: `see 'kubectl get pvc -n ${request.from.namespace}'`,
      });
    else if (isBelow)
      found.obstacles.push({
        what: `the volume ${volume} only reads the claim ${name}, which does not go along`,
        fix: `copy the claim to ${namespace} under the same name first`,
      });
    else {
      const mapped =
        storageClass === undefined ? undefined : (request.storageClasses.get(storageClass) ?? storageClass);
      const object = blankClaim(own, move, namespace, mapped);
      const text = `blank, ${sizeOf(own) ?? 'of unknown size'}${mapped === undefined ? '' : `, ${mapped}`}, for the volume ${volume}`;
      found.objects.push({ resource: claimResource, object, state: 'missing', about: text });
      if (mapped !== undefined) classed(seen, storageClass ?? '', mapped, found);
    }
  }
  for (const from of request.storageClasses.keys())
    if (!used.has(from))
      found.obstacles.push({
        what: `no claim of the machine has the storage class ${from}`,
        fix: `leave out --map-storage-class ${from}=…${used.size > 0 ? `; it has ${[...used].join(', ')}` : ''}`,
      });
}

const claimResource = persistentVolumeClaims as unknown as Resource;

/** What is going away, and in the way until it is gone. */
export function leaving(what: string, namespace: string): Obstacle {
  const fix = 'wait until it is gone, and try again';
  return { what: `${what} in ${namespace} is being deleted`, fix, isPassing: true };
}

function classed({ target }: SeenMove, from: string, to: string, found: Findings): void {
  const { storageClasses } = target;
  const what = `there is no storage class ${to} at the target`;
  if (!storageClasses || storageClasses.has(to) || found.obstacles.some((each) => each.what === what)) return;
  const names = [...storageClasses.keys()].toSorted().join(', ');
  found.obstacles.push({
    what,
    fix: names === '' ? 'create it there' : `--map-storage-class ${from}=NAME, with one of ${names}`,
  });
}

/** As large as the other one is, or was asked to be, and with nothing in it. */
function blankClaim(
  claim: PersistentVolumeClaim,
  move: MoveMark,
  namespace: string,
  storageClassName: string | undefined,
): KubeObject {
  const { accessModes, volumeMode } = claim.spec ?? {};
  const size = sizeOf(claim);
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: copyOf(claim, move, claim.metadata.name ?? '', namespace).metadata,
    spec: {
      ...(accessModes ? { accessModes } : {}),
      ...(volumeMode === undefined ? {} : { volumeMode }),
      ...(storageClassName === undefined ? {} : { storageClassName }),
      ...(size === undefined ? {} : { resources: { requests: { storage: size } } }),
    },
  };
}

function sizeOf({ spec, status }: PersistentVolumeClaim): string | undefined {
  const texts = [spec?.resources?.requests?.['storage'], status?.capacity?.['storage']];
  let largest: string | undefined;
  for (const text of texts) {
    const quantity = parseQuantity(text);
    const best = parseQuantity(largest);
    if (typeof text === 'string' && quantity && (!best || compareQuantities(quantity, best) > 0)) largest = text;
  }
  return largest;
}

/** The claims that a machine at the target will be on: those that are there, and those to be made. */
export function claimsAfter(seen: SeenMove, objects: readonly PlannedObject[]): Map<string, PersistentVolumeClaim> {
  const planned = objects
    .filter(({ resource }) => resource.plural === persistentVolumeClaims.plural)
    .map(({ object }) => [object.metadata.name ?? '', object as PersistentVolumeClaim] as const);
  return new Map([...seen.target.claims, ...planned]);
}

/** What is referred to by other machines than this one must stay, whoever made it. */
export function isUsedBy(machines: readonly VirtualMachine[], { resource, object }: PlannedObject): boolean {
  const name = object.metadata.name ?? '';
  return machines.some((machine) => {
    const { claims, secrets: keys, configMaps: maps } = referencesOf(machine);
    const { instancetype, preference } = machine.spec;
    if (resource.group === 'instancetype.kubevirt.io') return instancetype?.name === name || preference?.name === name;
    const named = new Map<string, readonly { readonly name: string }[]>([
      [persistentVolumeClaims.plural, claims],
      [secrets.plural, keys],
      [configMaps.plural, maps],
    ]).get(resource.plural);
    return named?.some((each) => each.name === name) ?? false;
  });
}
