/** Validation of probes and lifecycle hooks. */

import { child, type FieldError, forbidden, invalid, required } from '../../../field-error.ts';
import type { JsonObject } from '../../../meta.ts';
import { patternMessage } from '../../../names.ts';
import { nonNegativeErrors } from '../../validation.ts';
import { has, isObject, numberAt, objectAt, objectsAt, textAt, textsAt } from '../fields.ts';
import { portErrors } from '../ports.ts';

const PROBE_HANDLERS = ['exec', 'httpGet', 'tcpSocket', 'grpc'];
const HOOK_HANDLERS = ['exec', 'httpGet', 'tcpSocket', 'sleep'];
const HEADER = '[-A-Za-z0-9]+';

/** What is wrong with the probes and hooks of a container. `graceSeconds` is the pod's grace period. */
export function probesErrors(container: JsonObject, path: string, graceSeconds: number | undefined): FieldError[] {
  const errors: FieldError[] = [];
  const lifecycle = objectAt(container, 'lifecycle');
  for (const field of ['postStart', 'preStop']) {
    const hook = objectAt(lifecycle, field);
    const hookPath = child(child(path, 'lifecycle'), field);
    if (hook !== undefined) errors.push(...handlerErrors(hook, hookPath, HOOK_HANDLERS, graceSeconds));
  }
  for (const field of ['livenessProbe', 'readinessProbe', 'startupProbe']) {
    const probe = objectAt(container, field);
    if (probe !== undefined) errors.push(...probeErrors(probe, child(path, field), field));
  }
  return errors;
}

function probeErrors(probe: JsonObject, path: string, field: string): FieldError[] {
  const errors = handlerErrors(probe, path, PROBE_HANDLERS, undefined);
  const numbers = ['initialDelaySeconds', 'timeoutSeconds', 'periodSeconds', 'successThreshold', 'failureThreshold'];
  errors.push(...nonNegativeErrors(probe, path, ...numbers));
  const grace = numberAt(probe, 'terminationGracePeriodSeconds');
  const gracePath = child(path, 'terminationGracePeriodSeconds');
  if (grace !== undefined && grace <= 0) errors.push(invalid(gracePath, grace, 'must be greater than 0'));
  if (field === 'readinessProbe') {
    if (grace !== undefined) errors.push(invalid(gracePath, grace, 'must not be set for readinessProbes'));
    return errors;
  }
  const successes = numberAt(probe, 'successThreshold');
  if (successes !== undefined && successes !== 1) {
    errors.push(invalid(child(path, 'successThreshold'), successes, 'must be 1'));
  }
  return errors;
}

function handlerErrors(
  handler: JsonObject,
  path: string,
  names: readonly string[],
  graceSeconds: number | undefined,
): FieldError[] {
  const present = names.filter((name) => has(handler, name));
  if (present.length === 0) return [required(path, 'must specify a handler type')];
  return present.flatMap((name, index) => {
    const actionPath = child(path, name);
    if (index > 0) return [forbidden(actionPath, 'may not specify more than 1 handler type')];
    const action = handler[name];
    return isObject(action) ? actionErrors(name, action, actionPath, graceSeconds) : [];
  });
}

function actionErrors(name: string, action: JsonObject, path: string, graceSeconds: number | undefined): FieldError[] {
  switch (name) {
    case 'exec':
      return textsAt(action, 'command').length === 0 ? [required(child(path, 'command'))] : [];
    case 'httpGet':
      return [...portErrors(action['port'], child(path, 'port')), ...headerErrors(action, path)];
    case 'sleep': {
      const seconds = numberAt(action, 'seconds');
      if (seconds === undefined || graceSeconds === undefined) return [];
      if (seconds >= 0 && seconds <= graceSeconds) return [];
      const detail = `must be non-negative and less than terminationGracePeriodSeconds (${graceSeconds})`;
      return [invalid(path, seconds, detail)];
    }
    default:
      return portErrors(action['port'], child(path, 'port'));
  }
}

function headerErrors(action: JsonObject, path: string): FieldError[] {
  const rule = "a valid HTTP header must consist of alphanumeric characters or '-'";
  return objectsAt(action, 'httpHeaders')
    .map((header) => textAt(header, 'name'))
    .filter((name) => !/^[-A-Za-z0-9]+$/.test(name))
    .map((name) => invalid(child(path, 'httpHeaders'), name, patternMessage(rule, HEADER, 'X-Header-Name')));
}
