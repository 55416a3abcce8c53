import { child, type FieldError, forbidden } from '../../../field-error.ts';
import type { JsonObject } from '../../../meta.ts';
import { has, objectAt, objectsAt, textAt } from '../fields.ts';

const POD_FIELDS = ['hostUsers', 'hostPID', 'hostIPC', 'shareProcessNamespace'];
const POD_CONTEXT_FIELDS = [
  'appArmorProfile',
  'seLinuxOptions',
  'seccompProfile',
  'fsGroup',
  'fsGroupChangePolicy',
  'sysctls',
  'runAsUser',
  'runAsGroup',
  'supplementalGroups',
  'supplementalGroupsPolicy',
  'seLinuxChangePolicy',
];
const CONTAINER_CONTEXT_FIELDS = [
  'appArmorProfile',
  'seLinuxOptions',
  'seccompProfile',
  'capabilities',
  'readOnlyRootFilesystem',
  'privileged',
  'allowPrivilegeEscalation',
  'procMount',
  'runAsUser',
  'runAsGroup',
];

/** Refuses settings of one operating system in a pod that says it is of the other. */
export function operatingSystemErrors(spec: JsonObject, path: string): FieldError[] {
  const name = textAt(objectAt(spec, 'os'), 'name');
  if (name === 'linux') {
    return contexts(spec, path).flatMap(([context, own]) =>
      refuse(context, own, ['windowsOptions'], 'windows options cannot be set for a linux pod'),
    );
  }
  if (name !== 'windows') return [];
  const detail = 'cannot be set for a windows pod';
  const [pod, ...containers] = contexts(spec, path);
  return [
    ...refuse(spec, path, POD_FIELDS, detail),
    ...(pod === undefined ? [] : refuse(pod[0], pod[1], POD_CONTEXT_FIELDS, detail)),
    ...containers.flatMap(([context, own]) => refuse(context, own, CONTAINER_CONTEXT_FIELDS, detail)),
  ];
}

/** The pod's security context, then each container's, with their paths. */
function contexts(spec: JsonObject, path: string): [context: JsonObject | undefined, path: string][] {
  const all: [JsonObject | undefined, string][] = [[objectAt(spec, 'securityContext'), child(path, 'securityContext')]];
  for (const list of ['initContainers', 'containers', 'ephemeralContainers']) {
    for (const [index, container] of objectsAt(spec, list).entries()) {
      const own = child(child(child(path, list), index), 'securityContext');
      all.push([objectAt(container, 'securityContext'), own]);
    }
  }
  return all;
}

function refuse(parent: JsonObject | undefined, path: string, fields: readonly string[], detail: string): FieldError[] {
  return fields.filter((field) => has(parent, field)).map((field) => forbidden(child(path, field), detail));
}
