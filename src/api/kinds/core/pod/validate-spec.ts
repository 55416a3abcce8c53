/** Validation of a pod's desired state, in pods and in templates. */

import {
  child,
  duplicate,
  type FieldError,
  forbidden,
  invalid,
  notFound,
  required,
  tooLong,
} from '../../../field-error.ts';
import type { JsonObject, ObjectMeta } from '../../../meta.ts';
import { byteLength, dnsLabelErrors, dnsSubdomainErrors, qualifiedNameErrors, rangeMessage } from '../../../names.ts';
import { labelsErrors } from '../../../validate-meta.ts';
import { has, isSet, numberAt, objectAt, objectsAt, textAt, textMapAt, textsAt } from '../fields.ts';
import { ipErrors } from '../ip.ts';
import { containersErrors } from './validate-containers.ts';
import { containerResourcesErrors, podResourcesErrors } from './validate-resources.ts';
import { affinityErrors, spreadErrors, tolerationErrors } from './validate-scheduling.ts';
import { podSecurityErrors } from './validate-security.ts';
import { checkVolumes } from './validate-volumes.ts';
import { operatingSystemErrors } from './validate-windows.ts';

const DEADLINE_SECONDS_MAX = 2 ** 31 - 1;
const NAME_SERVERS_MAX = 3;
const SEARCHES_MAX = 32;
const SEARCHES_LENGTH_MAX = 2048;
const HOSTNAME_BYTES_MAX = 64;

/** What is wrong with a spec at `path`. `pod` is the metadata of the pod, absent for a template. */
export function podSpecErrors(spec: JsonObject, path: string, pod: ObjectMeta | undefined): FieldError[] {
  const { volumes, errors } = checkVolumes(spec, child(path, 'volumes'), pod);
  const claims = new Set(objectsAt(spec, 'resourceClaims').map((claim) => textAt(claim, 'name')));
  const surroundings = {
    volumes,
    claims,
    graceSeconds: numberAt(spec, 'terminationGracePeriodSeconds'),
    restartPolicy: textAt(spec, 'restartPolicy'),
    hostUsers: spec['hostUsers'] !== false,
    isPod: pod !== undefined,
  };
  return [
    ...errors,
    ...resourceClaimErrors(spec, child(path, 'resourceClaims')),
    ...containersErrors(spec, path, surroundings),
    ...podResourcesErrors(spec, path),
    ...hostNetworkErrors(spec, path, pod !== undefined),
    ...labelsErrors(textMapAt(spec, 'nodeSelector'), child(path, 'nodeSelector')),
    ...podSecurityErrors(spec, path),
    ...affinityErrors(objectAt(spec, 'affinity'), child(path, 'affinity')),
    ...dnsErrors(spec, child(path, 'dnsConfig')),
    ...gateErrors(spec, path),
    ...spreadErrors(objectsAt(spec, 'topologySpreadConstraints'), child(path, 'topologySpreadConstraints')),
    ...nameErrors(spec, path),
    ...deadlineErrors(spec, path),
    ...tolerationErrors(objectsAt(spec, 'tolerations'), child(path, 'tolerations')),
    ...hostAliasErrors(spec, child(path, 'hostAliases')),
    ...containerResourcesErrors(overheadOf(spec), child(path, 'overhead'), new Set()),
    ...operatingSystemErrors(spec, path),
    ...fileVariableErrors(spec, path),
  ];
}

/** Overhead is checked as if it were a container's limits. */
function overheadOf(spec: JsonObject): JsonObject | undefined {
  const overhead = objectAt(spec, 'overhead');
  return overhead === undefined ? undefined : { limits: overhead };
}

function resourceClaimErrors(spec: JsonObject, path: string): FieldError[] {
  const seen = new Set<string>();
  return objectsAt(spec, 'resourceClaims').flatMap((claim, index) => {
    const own = child(path, index);
    const name = textAt(claim, 'name');
    const errors: FieldError[] = [];
    if (claim['name'] === '') errors.push(required(child(own, 'name')));
    else if (seen.has(name)) errors.push(duplicate(child(own, 'name'), name));
    else if (name !== '') {
      for (const message of dnsLabelErrors(name)) errors.push(invalid(child(own, 'name'), name, message));
    }
    seen.add(name);
    const sources = ['resourceClaimName', 'resourceClaimTemplateName'].filter((field) => has(claim, field));
    if (sources.length === 2) {
      const detail = 'at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified';
      errors.push(invalid(own, claim, detail));
    }
    if (sources.length === 0) {
      errors.push(invalid(own, claim, 'must specify one of: `resourceClaimName`, `resourceClaimTemplateName`'));
    }
    for (const field of sources) {
      const source = textAt(claim, field);
      for (const message of dnsSubdomainErrors(source)) errors.push(invalid(child(own, field), source, message));
    }
    return errors;
  });
}

/** In the host's network a port is the host's port. Templates may leave that to the pod's defaults. */
function hostNetworkErrors(spec: JsonObject, path: string, isPod: boolean): FieldError[] {
  if (!isSet(spec, 'hostNetwork')) return [];
  return objectsAt(spec, 'containers').flatMap((container, index) =>
    objectsAt(container, 'ports').flatMap((port, portIndex) => {
      const hostPort = numberAt(port, 'hostPort') ?? 0;
      if (hostPort === numberAt(port, 'containerPort') || (hostPort === 0 && !isPod)) return [];
      const own = child(child(child(child(path, 'containers'), index), 'ports'), portIndex);
      const detail = 'must match `containerPort` when `hostNetwork` is true';
      return [invalid(child(own, 'hostPort'), hostPort, detail)];
    }),
  );
}

function dnsErrors(spec: JsonObject, path: string): FieldError[] {
  const config = objectAt(spec, 'dnsConfig');
  const servers = textsAt(config, 'nameservers');
  const serversPath = child(path, 'nameservers');
  if (textAt(spec, 'dnsPolicy') === 'None') {
    if (config === undefined) return [required(path, 'must provide `dnsConfig` when `dnsPolicy` is None')];
    if (servers.length === 0) {
      return [required(serversPath, 'must provide at least one DNS nameserver when `dnsPolicy` is None')];
    }
  }
  const errors: FieldError[] = [];
  if (servers.length > NAME_SERVERS_MAX) {
    errors.push(invalid(serversPath, servers, `must not have more than ${NAME_SERVERS_MAX} nameservers`));
  }
  servers.forEach((server, index) => errors.push(...ipErrors(server, child(serversPath, index))));
  const searches = textsAt(config, 'searches');
  const searchesPath = child(path, 'searches');
  if (searches.length > SEARCHES_MAX) {
    errors.push(invalid(searchesPath, searches, `must not have more than ${SEARCHES_MAX} search paths`));
  }
  if (searches.join(' ').length > SEARCHES_LENGTH_MAX) {
    const detail = `must not have more than ${SEARCHES_LENGTH_MAX} characters (including spaces) in the search list`;
    errors.push(invalid(searchesPath, searches, detail));
  }
  for (const [index, search] of searches.entries()) {
    if (search === '.') continue;
    // Underscores are not host names', but search lists have always had them.
    const name = search.replace(/\.$/, '').replaceAll('_', 'a');
    for (const message of dnsSubdomainErrors(name)) errors.push(invalid(child(searchesPath, index), search, message));
  }
  for (const [index, option] of objectsAt(config, 'options').entries()) {
    if (textAt(option, 'name') === '') errors.push(required(child(child(path, 'options'), index), 'must not be empty'));
  }
  return errors;
}

function gateErrors(spec: JsonObject, path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const [index, gate] of objectsAt(spec, 'readinessGates').entries()) {
    const type = textAt(gate, 'conditionType');
    const own = child(child(child(path, 'readinessGates'), index), 'conditionType');
    if (!has(gate, 'conditionType')) continue;
    for (const message of qualifiedNameErrors(type)) errors.push(invalid(own, type, message));
  }
  const seen = new Set<string>();
  for (const [index, gate] of objectsAt(spec, 'schedulingGates').entries()) {
    const name = textAt(gate, 'name');
    const own = child(child(path, 'schedulingGates'), index);
    if (has(gate, 'name')) for (const message of qualifiedNameErrors(name)) errors.push(invalid(own, name, message));
    if (seen.has(name)) errors.push(duplicate(own, name));
    seen.add(name);
  }
  return errors;
}

function nameErrors(spec: JsonObject, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const check = (field: string, rule: (name: string) => string[]): void => {
    const name = textAt(spec, field);
    if (name === '') return;
    for (const message of rule(name)) errors.push(invalid(child(path, field), name, message));
  };
  for (const field of ['serviceAccountName', 'nodeName', 'priorityClassName', 'runtimeClassName']) {
    check(field, dnsSubdomainErrors);
  }
  for (const field of ['hostname', 'subdomain']) check(field, dnsLabelErrors);
  if (!has(spec, 'hostnameOverride')) return errors;
  const overridePath = child(path, 'hostnameOverride');
  if (isSet(spec, 'setHostnameAsFQDN')) {
    errors.push(forbidden(overridePath, 'may not be specified when setHostnameAsFQDN is true'));
  }
  if (isSet(spec, 'hostNetwork')) {
    errors.push(forbidden(overridePath, 'may not be specified when hostNetwork is true'));
  }
  if (byteLength(textAt(spec, 'hostnameOverride')) > HOSTNAME_BYTES_MAX) {
    errors.push(tooLong(overridePath, HOSTNAME_BYTES_MAX));
  }
  check('hostnameOverride', dnsSubdomainErrors);
  return errors;
}

function deadlineErrors(spec: JsonObject, path: string): FieldError[] {
  const seconds = numberAt(spec, 'activeDeadlineSeconds');
  if (seconds === undefined || (seconds >= 1 && seconds <= DEADLINE_SECONDS_MAX)) return [];
  return [invalid(child(path, 'activeDeadlineSeconds'), seconds, rangeMessage(1, DEADLINE_SECONDS_MAX))];
}

function hostAliasErrors(spec: JsonObject, path: string): FieldError[] {
  return objectsAt(spec, 'hostAliases').flatMap((alias, index) => {
    const own = child(path, index);
    const errors = has(alias, 'ip') ? ipErrors(textAt(alias, 'ip'), child(own, 'ip')) : [];
    for (const [nameIndex, name] of textsAt(alias, 'hostnames').entries()) {
      const namePath = child(child(own, 'hostnames'), nameIndex);
      for (const message of dnsSubdomainErrors(name)) errors.push(invalid(namePath, name, message));
    }
    return errors;
  });
}

/** Variables are read only from files of empty directories. */
function fileVariableErrors(spec: JsonObject, path: string): FieldError[] {
  const volumes = new Map(objectsAt(spec, 'volumes').map((volume) => [textAt(volume, 'name'), volume]));
  const errors: FieldError[] = [];
  for (const list of ['initContainers', 'containers', 'ephemeralContainers']) {
    for (const [index, container] of objectsAt(spec, list).entries()) {
      for (const [variableIndex, variable] of objectsAt(container, 'env').entries()) {
        const reference = objectAt(objectAt(variable, 'valueFrom'), 'fileKeyRef');
        if (reference === undefined) continue;
        const name = textAt(reference, 'volumeName');
        const own = `${child(child(path, list), index)}.env[${variableIndex}].valueFrom.fileKeyRef.volumeName`;
        const volume = volumes.get(name);
        if (volume === undefined) errors.push(notFound(own, name));
        else if (!has(volume, 'emptyDir')) {
          errors.push(invalid(own, name, 'referenced volume must be of type emptyDir'));
        }
      }
    }
  }
  return errors;
}
