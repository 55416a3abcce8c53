/** What a kubelet, or whoever plays one, may say of a pod. */

import { child, type FieldError, forbidden, invalid } from '../../../field-error.ts';
import type { JsonObject, KubeObject } from '../../../meta.ts';
import { dnsSubdomainErrors, qualifiedNameErrors } from '../../../names.ts';
import { immutableErrors } from '../../validation.ts';
import { ensureObject, has, numberAt, objectAt, objectsAt, setDefault, setDefaultNumber, textAt } from '../fields.ts';
import { ipErrors, ipFamily, isOnePerFamily } from '../ip.ts';

/** Keeps what a writer left out but cannot take away. */
export function prepareStatus(pod: KubeObject, old: KubeObject): void {
  const status = ensureObject(pod, 'status');
  const oldStatus = objectAt(old, 'status');
  if (status === undefined || oldStatus === undefined) return;
  const qosClass = textAt(oldStatus, 'qosClass');
  if (qosClass !== '') setDefault(status, 'qosClass', qosClass);
  const generation = numberAt(oldStatus, 'observedGeneration');
  if (generation !== undefined) setDefaultNumber(status, 'observedGeneration', generation);
}

/** Forbidden changes of the status. */
export function podStatusUpdateErrors(pod: KubeObject, old: KubeObject): FieldError[] {
  const status = objectAt(pod, 'status');
  const oldStatus = objectAt(old, 'status');
  const spec = objectAt(old, 'spec');
  const errors = [...conditionErrors(status), ...nominationErrors(status, oldStatus, spec)];
  if ((numberAt(status, 'observedGeneration') ?? 0) < 0) {
    const generation = numberAt(status, 'observedGeneration');
    errors.push(invalid('status.observedGeneration', generation, 'must be a non-negative integer'));
  }
  errors.push(...immutableErrors(status?.['qosClass'], oldStatus?.['qosClass'], 'status.qosClass'));
  for (const list of ['containerStatuses', 'initContainerStatuses', 'ephemeralContainerStatuses']) {
    errors.push(...transitionErrors(status, oldStatus, spec, list));
  }
  return [...errors, ...addressErrors(status, 'podIPs', 'podIP'), ...addressErrors(status, 'hostIPs', 'hostIP')];
}

const SYSTEM_CONDITIONS = ['PodScheduled', 'Ready', 'Initialized'];

function conditionErrors(status: JsonObject | undefined): FieldError[] {
  return objectsAt(status, 'conditions').flatMap((condition, index) => {
    const path = child('status.conditions', index);
    const errors: FieldError[] = [];
    const generation = numberAt(condition, 'observedGeneration') ?? 0;
    if (generation < 0) {
      errors.push(invalid(child(path, 'observedGeneration'), generation, 'must be a non-negative integer'));
    }
    const type = textAt(condition, 'type');
    if (SYSTEM_CONDITIONS.includes(type)) return errors;
    return [...errors, ...qualifiedNameErrors(type).map((message) => invalid(child(path, 'Type'), type, message))];
  });
}

function nominationErrors(
  status: JsonObject | undefined,
  oldStatus: JsonObject | undefined,
  spec: JsonObject | undefined,
): FieldError[] {
  const path = 'status.nominatedNodeName';
  const node = textAt(status, 'nominatedNodeName');
  if (node === '' || node === textAt(oldStatus, 'nominatedNodeName')) return [];
  const errors = dnsSubdomainErrors(node).map((message) => invalid(path, node, message));
  if (textAt(spec, 'nodeName') !== '') {
    errors.push(forbidden(path, 'may not be set on pods that are already bound to a node'));
  }
  return errors;
}

/** A container that has ended for good does not come back. */
function transitionErrors(
  status: JsonObject | undefined,
  oldStatus: JsonObject | undefined,
  spec: JsonObject | undefined,
  list: string,
): FieldError[] {
  const policy = textAt(spec, 'restartPolicy');
  const isEphemeral = list === 'ephemeralContainerStatuses';
  if (policy === 'Always' && !isEphemeral) return [];
  const sidecars = new Set(
    objectsAt(spec, 'initContainers')
      .filter((container) => textAt(container, 'restartPolicy') === 'Always')
      .map((container) => textAt(container, 'name')),
  );
  const updated = new Map(objectsAt(status, list).map((container) => [textAt(container, 'name'), container]));
  return objectsAt(oldStatus, list).flatMap((container, index) => {
    const name = textAt(container, 'name');
    const ended = objectAt(objectAt(container, 'state'), 'terminated');
    if (ended === undefined) return [];
    const mayRestart = !isEphemeral && policy === 'OnFailure' && numberAt(ended, 'exitCode') !== 0;
    if (mayRestart || (list === 'initContainerStatuses' && sidecars.has(name))) return [];
    const now = updated.get(name);
    if (now === undefined || has(objectAt(now, 'state'), 'terminated')) return [];
    const path = child(child(child('status', list), index), 'state');
    return [forbidden(path, 'may not be transitioned to non-terminated state')];
  });
}

/** The list holds at most one address of each family, and the single field is its first. */
function addressErrors(status: JsonObject | undefined, list: string, single: string): FieldError[] {
  const path = child('status', list);
  const addresses = objectsAt(status, list).map((address) => textAt(address, 'ip'));
  const [first] = addresses;
  if (first === undefined) return [];
  const errors: FieldError[] = [];
  if (list === 'hostIPs' && textAt(status, single) !== first) {
    errors.push(invalid(child(child(path, 0), 'ip'), first, `must be equal to \`${single}\``));
  }
  addresses.forEach((address, index) => errors.push(...ipErrors(address, child(path, index))));
  if (!isOnePerFamily(addresses.map(ipFamily))) {
    errors.push(invalid(path, objectsAt(status, list), 'may specify no more than one IP for each IP family'));
  }
  return errors;
}
