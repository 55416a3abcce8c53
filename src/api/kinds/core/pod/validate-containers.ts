/** Validation of a pod's containers of all three sorts. */

import {
  child,
  duplicate,
  type FieldError,
  forbidden,
  invalid,
  notFound,
  notSupported,
  required,
} from '../../../field-error.ts';
import type { JsonObject } from '../../../meta.ts';
import { dnsLabelErrors, portNameErrors, portNumberErrors } from '../../../names.ts';
import { has, numberAt, objectAt, objectsAt, textAt } from '../fields.ts';
import { environmentErrors } from './validate-environment.ts';
import { mountsErrors, type Volumes } from './validate-mounts.ts';
import { probesErrors } from './validate-probes.ts';
import { containerResourcesErrors } from './validate-resources.ts';
import { containerSecurityErrors } from './validate-security.ts';

/** What containers are checked against. */
export interface Surroundings {
  readonly volumes: Volumes;
  /** Names of the pod's resource claims. */
  readonly claims: ReadonlySet<string>;
  readonly graceSeconds: number | undefined;
  readonly restartPolicy: string;
  readonly hostUsers: boolean;
  /** Templates may be looser than pods. */
  readonly isPod: boolean;
}

/** What is wrong with any of the pod's containers. */
export function containersErrors(spec: JsonObject, path: string, surroundings: Surroundings): FieldError[] {
  const containers = objectsAt(spec, 'containers');
  const names = new Set<string>();
  return [
    ...(containers.length === 0 && has(spec, 'containers') ? [required(child(path, 'containers'))] : []),
    ...regularErrors(containers, child(path, 'containers'), surroundings, names),
    ...initErrors(objectsAt(spec, 'initContainers'), child(path, 'initContainers'), surroundings, names),
    ...ephemeralErrors(spec, child(path, 'ephemeralContainers'), surroundings, names),
  ];
}

function regularErrors(
  containers: readonly JsonObject[],
  path: string,
  surroundings: Surroundings,
  names: Set<string>,
): FieldError[] {
  const errors = containers.flatMap((container, index) => {
    const own = child(path, index);
    const found = [
      ...commonErrors(container, own, surroundings),
      ...nameErrors(container, own, names),
      ...probesErrors(container, own, surroundings.graceSeconds),
    ];
    if (has(container, 'restartPolicy')) {
      found.push(forbidden(child(own, 'restartPolicy'), 'may not be set for non-init containers'));
    }
    return found;
  });
  return [...errors, ...hostPortErrors(containers, path)];
}

function initErrors(
  containers: readonly JsonObject[],
  path: string,
  surroundings: Surroundings,
  names: Set<string>,
): FieldError[] {
  return containers.flatMap((container, index) => {
    const own = child(path, index);
    const errors = [...commonErrors(container, own, surroundings), ...nameErrors(container, own, names)];
    const policy = textAt(container, 'restartPolicy');
    if (has(container, 'restartPolicy') && policy !== 'Always') {
      errors.push(notSupported(child(own, 'restartPolicy'), policy, ['Always']));
    }
    // Init containers run one by one, so only their own ports can clash.
    errors.push(...hostPortErrors([container], path));
    if (policy === 'Always') return [...errors, ...probesErrors(container, own, surroundings.graceSeconds)];
    const detail = 'may not be set for init containers without restartPolicy=Always';
    for (const field of ['lifecycle', 'livenessProbe', 'readinessProbe', 'startupProbe']) {
      if (has(container, field)) errors.push(forbidden(child(own, field), detail));
    }
    return errors;
  });
}

const NOT_EPHEMERAL = [
  'ports',
  'resources',
  'resizePolicy',
  'restartPolicy',
  'restartPolicyRules',
  'livenessProbe',
  'readinessProbe',
  'startupProbe',
  'lifecycle',
];

function ephemeralErrors(spec: JsonObject, path: string, surroundings: Surroundings, names: Set<string>): FieldError[] {
  const targets = new Set(names);
  return objectsAt(spec, 'ephemeralContainers').flatMap((container, index) => {
    const own = child(path, index);
    const detail = 'cannot be set for an Ephemeral Container';
    const errors = [...commonErrors(container, own, surroundings), ...nameErrors(container, own, names)];
    const target = textAt(container, 'targetContainerName');
    if (target !== '' && !targets.has(target)) errors.push(notFound(child(own, 'targetContainerName'), target));
    for (const field of NOT_EPHEMERAL) {
      if (has(container, field) && !isEmpty(container[field])) errors.push(forbidden(child(own, field), detail));
    }
    for (const [mountIndex, mount] of objectsAt(container, 'volumeMounts').entries()) {
      const mountPath = child(child(own, 'volumeMounts'), mountIndex);
      for (const field of ['subPath', 'subPathExpr']) {
        if (textAt(mount, field) !== '') errors.push(forbidden(child(mountPath, field), detail));
      }
    }
    return errors;
  });
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

function nameErrors(container: JsonObject, path: string, names: Set<string>): FieldError[] {
  const name = textAt(container, 'name');
  if (name === '') return [];
  if (names.has(name)) return [duplicate(child(path, 'name'), name)];
  names.add(name);
  return [];
}

function commonErrors(container: JsonObject, path: string, surroundings: Surroundings): FieldError[] {
  const errors: FieldError[] = [];
  const name = textAt(container, 'name');
  if (container['name'] === '') errors.push(required(child(path, 'name')));
  else if (name !== '') {
    for (const message of dnsLabelErrors(name)) errors.push(invalid(child(path, 'name'), name, message));
  }
  const image = textAt(container, 'image');
  if (!has(container, 'image') || container['image'] === '') errors.push(required(child(path, 'image')));
  if (surroundings.isPod && image !== image.trim()) {
    errors.push(invalid(child(path, 'image'), image, 'must not have leading or trailing whitespace'));
  }
  const context = objectAt(container, 'securityContext');
  return [
    ...errors,
    ...portsErrors(container, child(path, 'ports')),
    ...environmentErrors(container, path),
    ...mountsErrors(container, path, surroundings.volumes),
    ...containerResourcesErrors(objectAt(container, 'resources'), child(path, 'resources'), surroundings.claims),
    ...resizeErrors(container, child(path, 'resizePolicy'), surroundings.restartPolicy),
    ...containerSecurityErrors(context, child(path, 'securityContext'), surroundings.hostUsers),
  ];
}

function portsErrors(container: JsonObject, path: string): FieldError[] {
  const names = new Set<string>();
  return objectsAt(container, 'ports').flatMap((port, index) => {
    const own = child(path, index);
    const errors: FieldError[] = [];
    const name = textAt(port, 'name');
    const messages = name === '' ? [] : portNameErrors(name);
    for (const message of messages) errors.push(invalid(child(own, 'name'), name, message));
    if (name !== '' && messages.length === 0 && names.has(name)) errors.push(duplicate(child(own, 'name'), name));
    names.add(name);
    const number = numberAt(port, 'containerPort');
    if (number === 0) errors.push(required(child(own, 'containerPort')));
    else if (number !== undefined) errors.push(...numberErrors(number, child(own, 'containerPort')));
    const hostPort = numberAt(port, 'hostPort') ?? 0;
    return hostPort === 0 ? errors : [...errors, ...numberErrors(hostPort, child(own, 'hostPort'))];
  });
}

function numberErrors(port: number, path: string): FieldError[] {
  return portNumberErrors(port).map((message) => invalid(path, port, message));
}

/** Two containers cannot have the same port of the host. */
function hostPortErrors(containers: readonly JsonObject[], path: string): FieldError[] {
  const taken = new Set<string>();
  return containers.flatMap((container, index) =>
    objectsAt(container, 'ports').flatMap((port, portIndex) => {
      const hostPort = numberAt(port, 'hostPort') ?? 0;
      if (hostPort === 0) return [];
      const identity = `${textAt(port, 'protocol')}/${textAt(port, 'hostIP')}/${hostPort}`;
      const own = child(child(child(path, index), 'ports'), portIndex);
      if (taken.has(identity)) return [duplicate(child(own, 'hostPort'), identity)];
      taken.add(identity);
      return [];
    }),
  );
}

function resizeErrors(container: JsonObject, path: string, restartPolicy: string): FieldError[] {
  const seen = new Set<string>();
  return objectsAt(container, 'resizePolicy').flatMap((policy, index) => {
    const errors: FieldError[] = [];
    const resource = textAt(policy, 'resourceName');
    if (seen.has(resource)) errors.push(duplicate(child(path, index), resource));
    seen.add(resource);
    if (policy['resourceName'] === '') errors.push(required(path));
    else if (resource !== '' && resource !== 'cpu' && resource !== 'memory') {
      errors.push(notSupported(path, resource, ['cpu', 'memory']));
    }
    const effect = textAt(policy, 'restartPolicy');
    if (restartPolicy === 'Never' && effect !== 'NotRequired') {
      errors.push(invalid(path, effect, "must be 'NotRequired' when `restartPolicy` is 'Never'"));
    }
    return errors;
  });
}
