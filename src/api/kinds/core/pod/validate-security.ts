/** Validation of security contexts. */

import { child, duplicate, type FieldError, forbidden, invalid, required, tooLong } from '../../../field-error.ts';
import type { JsonObject } from '../../../meta.ts';
import { byteLength, rangeMessage } from '../../../names.ts';
import { has, isSet, numberAt, objectAt, objectsAt, textAt, textsAt } from '../fields.ts';
import { descendingPathErrors } from '../paths.ts';

const ID_MAX = 2 ** 31 - 1;
const PROFILE_BYTES_MAX = 4095;
const SYSCTL_LENGTH_MAX = 253;
const SYSCTL = '([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?';

/** What is wrong with the security context of the pod. */
export function podSecurityErrors(spec: JsonObject, path: string): FieldError[] {
  const context = objectAt(spec, 'securityContext');
  const own = child(path, 'securityContext');
  const errors = idErrors(context, own, 'fsGroup', 'runAsUser', 'runAsGroup');
  for (const [index, group] of numbersAt(context, 'supplementalGroups').entries()) {
    if (!isId(group))
      errors.push(invalid(child(child(own, 'supplementalGroups'), index), group, rangeMessage(0, ID_MAX)));
  }
  if (isSet(spec, 'shareProcessNamespace') && isSet(spec, 'hostPID')) {
    const detail = 'ShareProcessNamespace and HostPID cannot both be enabled';
    errors.push(invalid(child(own, 'shareProcessNamespace'), true, detail));
  }
  errors.push(...sysctlErrors(spec, context, child(own, 'sysctls')));
  return [...errors, ...profileErrors(context, own), ...hostUserErrors(spec, path)];
}

/** What is wrong with the security context of a container. */
export function containerSecurityErrors(
  context: JsonObject | undefined,
  path: string,
  hostUsers: boolean,
): FieldError[] {
  if (context === undefined) return [];
  const errors = idErrors(context, path, 'runAsUser', 'runAsGroup');
  if (hostUsers && textAt(context, 'procMount') === 'Unmasked') {
    errors.push(invalid(child(path, 'procMount'), 'Unmasked', '`hostUsers` must be false to use `Unmasked`'));
  }
  if (context['allowPrivilegeEscalation'] === false) {
    if (isSet(context, 'privileged')) {
      const detail = 'cannot set `allowPrivilegeEscalation` to false and `privileged` to true';
      errors.push(invalid(path, context, detail));
    }
    if (textsAt(objectAt(context, 'capabilities'), 'add').includes('CAP_SYS_ADMIN')) {
      const detail = 'cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN';
      errors.push(invalid(path, context, detail));
    }
  }
  return [...errors, ...profileErrors(context, path)];
}

function isId(id: number): boolean {
  return id >= 0 && id <= ID_MAX;
}

function idErrors(context: JsonObject | undefined, path: string, ...fields: readonly string[]): FieldError[] {
  return fields.flatMap((field) => {
    const id = numberAt(context, field);
    return id === undefined || isId(id) ? [] : [invalid(child(path, field), id, rangeMessage(0, ID_MAX))];
  });
}

function numbersAt(parent: JsonObject | undefined, field: string): number[] {
  const value = parent?.[field];
  return Array.isArray(value) ? value.filter((item) => typeof item === 'number') : [];
}

function profileErrors(context: JsonObject | undefined, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const seccomp = objectAt(context, 'seccompProfile');
  const seccompPath = child(child(path, 'seccompProfile'), 'localhostProfile');
  if (textAt(seccomp, 'type') === 'Localhost') {
    if (!has(seccomp, 'localhostProfile')) {
      errors.push(required(seccompPath, 'must be set when seccomp type is Localhost'));
    } else errors.push(...descendingPathErrors(textAt(seccomp, 'localhostProfile'), seccompPath));
  } else if (has(seccomp, 'localhostProfile')) {
    errors.push(invalid(seccompPath, seccomp, 'can only be set when seccomp type is Localhost'));
  }
  const appArmor = objectAt(context, 'appArmorProfile');
  return appArmor === undefined ? errors : [...errors, ...appArmorErrors(appArmor, child(path, 'appArmorProfile'))];
}

function appArmorErrors(profile: JsonObject, path: string): FieldError[] {
  const own = child(path, 'localhostProfile');
  const name = textAt(profile, 'localhostProfile');
  if (textAt(profile, 'type') !== 'Localhost') {
    const detail = 'can only be set when AppArmor type is Localhost';
    return has(profile, 'localhostProfile') ? [invalid(own, name, detail)] : [];
  }
  const errors: FieldError[] = [];
  if (name !== name.trim()) errors.push(invalid(own, name, 'must not be padded with whitespace'));
  else if (name === '') errors.push(required(own, 'must be set when AppArmor type is Localhost'));
  if (byteLength(name) > PROFILE_BYTES_MAX) errors.push(tooLong(own, PROFILE_BYTES_MAX));
  return errors;
}

function sysctlErrors(spec: JsonObject, context: JsonObject | undefined, path: string): FieldError[] {
  const seen = new Set<string>();
  return objectsAt(context, 'sysctls').flatMap((sysctl, index) => {
    const name = textAt(sysctl, 'name');
    const namePath = child(child(path, index), 'name');
    const errors: FieldError[] = [];
    if (sysctl['name'] === '') errors.push(required(namePath));
    else if (name !== '' && !isSysctlName(name)) {
      const detail = `must have at most ${SYSCTL_LENGTH_MAX} characters and match regex ^${SYSCTL}$`;
      errors.push(invalid(namePath, name, detail));
    } else if (seen.has(name)) errors.push(duplicate(namePath, name));
    seen.add(name);
    const space = name.replaceAll('/', '.');
    if (isSet(spec, 'hostNetwork') && space.startsWith('net.')) {
      errors.push(invalid(namePath, name, "may not be specified when 'hostNetwork' is true"));
    } else if (isSet(spec, 'hostIPC') && /^(kernel\.(shm|msg|sem)|fs\.mqueue\.)/.test(space)) {
      errors.push(invalid(namePath, name, "may not be specified when 'hostIPC' is true"));
    }
    return errors;
  });
}

function isSysctlName(name: string): boolean {
  return (
    name.length <= SYSCTL_LENGTH_MAX &&
    name.split(/[./]/).every((segment) => /^[a-z0-9]$|^[a-z0-9][-_a-z0-9]*[a-z0-9]$/.test(segment))
  );
}

function hostUserErrors(spec: JsonObject, path: string): FieldError[] {
  if (spec['hostUsers'] !== false) return [];
  const detail = 'when `hostUsers` is false';
  const spaces: [field: string, shown: string][] = [
    ['hostNetwork', 'hostNetwork'],
    ['hostPID', 'HostPID'],
    ['hostIPC', 'HostIPC'],
  ];
  const errors = spaces
    .filter(([field]) => isSet(spec, field))
    .map(([, shown]) => forbidden(child(path, shown), detail));
  for (const list of ['initContainers', 'containers']) {
    for (const [index, container] of objectsAt(spec, list).entries()) {
      if (objectsAt(container, 'volumeDevices').length === 0) continue;
      errors.push(forbidden(child(child(child(path, list), index), 'volumeDevices'), detail));
    }
  }
  return errors;
}
