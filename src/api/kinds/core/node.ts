import { duplicate, type FieldError, forbidden, invalid, notSupported, required, show } from '../../field-error.ts';
import type { JsonObject, KubeObject } from '../../meta.ts';
import { labelValueErrors, qualifiedNameErrors } from '../../names.ts';
import type { Column, Strategy } from '../../resource.ts';
import { ageColumn, column, nameColumn, NONE, wideColumn } from '../columns.ts';
import { objectSchema } from '../meta.ts';
import { isSame } from '../validation.ts';
import { canonicalizeAmounts } from './amounts.ts';
import { isSet, objectAt, objectsAt, textAt, textsAt } from './fields.ts';
import { cidrErrors, cidrFamily, isOnePerFamily } from './ip.ts';
import { coreKind } from './kind.ts';
import { quantityErrors, resourceNameErrors } from './resource-validation.ts';
import { nodeSpec, nodeStatus } from './schema/node.ts';
import { CORE } from './schema/package.ts';

const ROLE_PREFIX = 'node-role.kubernetes.io/';
const ROLE_LABEL = 'kubernetes.io/role';
const TAINT_EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];

const strategy: Strategy = {
  applyDefaults(node) {
    alignRanges(objectAt(node, 'spec'));
    const status = objectAt(node, 'status');
    if (status === undefined) return;
    canonicalizeAmounts(status, 'capacity', 'allocatable');
    const capacity = objectAt(status, 'capacity');
    if (capacity !== undefined && objectAt(status, 'allocatable') === undefined)
      status['allocatable'] = { ...capacity };
  },
  validate(node) {
    const spec = objectAt(node, 'spec');
    return [
      ...taintErrors(objectsAt(spec, 'taints')),
      ...rangeErrors(textsAt(spec, 'podCIDRs')),
      ...statusErrors(node),
    ];
  },
  validateUpdate(node, old) {
    const errors: FieldError[] = [];
    const spec = objectAt(node, 'spec');
    const oldSpec = objectAt(old, 'spec');
    const oldRanges = textsAt(oldSpec, 'podCIDRs');
    if (oldRanges.length > 0 && !isSame(oldRanges, textsAt(spec, 'podCIDRs'))) {
      errors.push(forbidden('spec.podCIDRs', 'node updates may not change podCIDR except from "" to valid'));
    }
    const oldId = textAt(oldSpec, 'providerID');
    if (oldId !== '' && oldId !== textAt(spec, 'providerID')) {
      errors.push(forbidden('spec.providerID', 'node updates may not change providerID except from "" to valid'));
    }
    if (textAt(spec, 'externalID') !== textAt(oldSpec, 'externalID')) {
      errors.push(forbidden('spec.externalID', 'may not be updated'));
    }
    return errors;
  },
};

/** The single range, from when there was but one, says what the first of all says; where they differ, it wins. */
function alignRanges(spec: JsonObject | undefined): void {
  if (spec === undefined) return;
  const single = textAt(spec, 'podCIDR');
  const [first] = textsAt(spec, 'podCIDRs');
  if (single !== '' && single !== first) spec['podCIDRs'] = [single];
  else if (single === '' && first !== undefined) spec['podCIDR'] = first;
}

/** Worded with the path of metadata, as upstream words it. */
function taintErrors(taints: readonly JsonObject[]): FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  for (const [index, taint] of taints.entries()) {
    const path = `metadata.taints[${index}]`;
    const key = textAt(taint, 'key');
    const value = textAt(taint, 'value');
    const effect = textAt(taint, 'effect');
    for (const message of qualifiedNameErrors(key)) errors.push(invalid(`${path}.key`, key, message));
    const valueErrors = labelValueErrors(value);
    if (valueErrors.length > 0) errors.push(invalid(`${path}.value`, value, valueErrors.join(';')));
    if (taint['effect'] === '') errors.push(required(`${path}.effect`));
    else if (effect !== '' && !TAINT_EFFECTS.includes(effect)) {
      errors.push(notSupported(`${path}.effect`, effect, TAINT_EFFECTS));
    }
    const identity = `${effect}\n${key}`;
    if (seen.has(identity)) {
      const repeated = duplicate(path, taint);
      errors.push({ ...repeated, message: `${repeated.message}: taints must be unique by key and effect pair` });
    }
    seen.add(identity);
  }
  return errors;
}

function rangeErrors(ranges: readonly string[]): FieldError[] {
  const errors = ranges.flatMap((range, index) => cidrErrors(range, `spec.podCIDRs[${index}]`));
  if (!isOnePerFamily(ranges.map(cidrFamily))) {
    errors.push(invalid('spec.podCIDRs', ranges, 'may specify no more than one CIDR for each IP family'));
  }
  return errors;
}

function statusErrors(node: KubeObject): FieldError[] {
  const errors: FieldError[] = [];
  const status = objectAt(node, 'status');
  for (const field of ['capacity', 'allocatable']) {
    for (const name of Object.keys(objectAt(status, field) ?? {})) {
      const path = `status.${field}.${name}`;
      errors.push(...resourceNameErrors(name, path), ...quantityErrors(objectAt(status, field), name, path));
    }
  }
  const seen = new Set<string>();
  for (const [index, address] of objectsAt(status, 'addresses').entries()) {
    const text = show([address['type'], address['address']]);
    if (seen.has(text)) errors.push(duplicate(`status.addresses[${index}]`, address));
    seen.add(text);
  }
  return errors;
}

function statusText(node: KubeObject): string {
  const ready = objectsAt(objectAt(node, 'status'), 'conditions').findLast((each) => textAt(each, 'type') === 'Ready');
  const words = [ready === undefined ? 'Unknown' : textAt(ready, 'status') === 'True' ? 'Ready' : 'NotReady'];
  if (isSet(objectAt(node, 'spec'), 'unschedulable')) words.push('SchedulingDisabled');
  return words.join(',');
}

function roles(node: KubeObject): string {
  const found = new Set<string>();
  for (const [key, value] of Object.entries(node.metadata.labels ?? {})) {
    if (key.startsWith(ROLE_PREFIX) && key !== ROLE_PREFIX) found.add(key.slice(ROLE_PREFIX.length));
    else if (key === ROLE_LABEL && value !== '') found.add(value);
  }
  return [...found].sort().join(',') || NONE;
}

function address(status: JsonObject | undefined, type: string): string {
  const found = objectsAt(status, 'addresses').find((each) => textAt(each, 'type') === type);
  return found === undefined ? NONE : textAt(found, 'address');
}

function infoColumn(name: string, description: string, field: string): Column {
  return wideColumn(
    name,
    'string',
    description,
    (_spec, status) => textAt(objectAt(status, 'nodeInfo'), field) || '<unknown>',
  );
}

const columns: readonly Column[] = [
  nameColumn,
  column('Status', 'string', 'Whether the node is ready and takes pods.', (_spec, _status, node) => statusText(node)),
  column('Roles', 'string', 'The roles of the node.', (_spec, _status, node) => roles(node)),
  ageColumn,
  column('Version', 'string', 'Version of the kubelet.', (_spec, status) =>
    textAt(objectAt(status, 'nodeInfo'), 'kubeletVersion'),
  ),
  wideColumn('Internal-IP', 'string', 'Address within the cluster.', (_spec, status) => address(status, 'InternalIP')),
  wideColumn('External-IP', 'string', 'Address outside the cluster.', (_spec, status) => address(status, 'ExternalIP')),
  infoColumn('OS-Image', "Name of the operating system's release.", 'osImage'),
  infoColumn('Kernel-Version', 'Version of the kernel.', 'kernelVersion'),
  infoColumn('Container-Runtime', 'Version of the container runtime.', 'containerRuntimeVersion'),
];

/** core/v1 Node. */
export const nodeDefinition = coreKind({
  plural: 'nodes',
  kind: 'Node',
  namespaced: false,
  shortNames: ['no'],
  hasStatus: true,
  schema: objectSchema(`${CORE}.Node`, 'A machine of the cluster.', {
    spec: [2, nodeSpec, 'What the node is to be.'],
    status: [3, nodeStatus, 'The observed state.'],
  }),
  subresources: [{ name: 'proxy', kind: 'NodeProxyOptions', verbs: ['create', 'delete', 'get', 'patch', 'update'] }],
  selectableFields: ['spec.unschedulable'],
  columns,
  strategy,
});
