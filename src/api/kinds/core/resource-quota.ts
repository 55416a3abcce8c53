import { entry, type FieldError, invalid, required } from '../../field-error.ts';
import type { JsonObject } from '../../meta.ts';
import { formatQuantity } from '../../quantity.ts';
import type { Column, Strategy } from '../../resource.ts';
import { FIELD_IMMUTABLE } from '../../validate-meta.ts';
import { ageColumn, column, nameColumn } from '../columns.ts';
import { objectSchema } from '../meta.ts';
import { isSame } from '../validation.ts';
import { amountsAt, canonicalizeAmounts } from './amounts.ts';
import { ensureObject, objectAt, objectsAt, textAt, textsAt } from './fields.ts';
import { coreKind } from './kind.ts';
import { isStandardQuotaResource } from './resource-names.ts';
import { quantityErrors, quotaResourceNameErrors } from './resource-validation.ts';
import { CORE } from './schema/package.ts';
import { resourceQuotaSpec, resourceQuotaStatus } from './schema/quota.ts';

const COMPUTE = ['cpu', 'memory', 'limits.cpu', 'limits.memory', 'requests.cpu', 'requests.memory'];
const OF_PODS = ['pods', ...COMPUTE];
const OF_CLAIMS = ['persistentvolumeclaims', 'requests.storage'];
/** Which standard resources each scope can limit. */
const SCOPES: ReadonlyMap<string, readonly string[]> = new Map([
  ['Terminating', OF_PODS],
  ['NotTerminating', OF_PODS],
  ['BestEffort', ['pods']],
  ['NotBestEffort', OF_PODS],
  ['PriorityClass', OF_PODS],
  ['CrossNamespacePodAffinity', OF_PODS],
  ['VolumeAttributesClass', OF_CLAIMS],
]);
const OPPOSITES = [
  ['BestEffort', 'NotBestEffort'],
  ['Terminating', 'NotTerminating'],
] as const;
const EXISTS_ONLY = ['BestEffort', 'NotBestEffort', 'Terminating', 'NotTerminating', 'CrossNamespacePodAffinity'];

const strategy: Strategy = {
  applyDefaults(quota) {
    canonicalizeAmounts(objectAt(quota, 'spec'), 'hard');
    canonicalizeAmounts(ensureObject(quota, 'status'), 'hard', 'used');
  },
  prepareForCreate(quota) {
    quota['status'] = {};
  },
  validate(quota) {
    const spec = objectAt(quota, 'spec');
    const status = objectAt(quota, 'status');
    return [
      ...listErrors(spec, 'hard', 'spec.hard'),
      ...scopeErrors(spec),
      ...selectorErrors(spec),
      ...listErrors(status, 'hard', 'status.hard'),
      ...listErrors(status, 'used', 'status.used'),
    ];
  },
  validateUpdate(quota, old) {
    const scopes = textsAt(objectAt(quota, 'spec'), 'scopes');
    const oldScopes = textsAt(objectAt(old, 'spec'), 'scopes');
    const isUnchanged = isSame([...new Set(scopes)].sort(), [...new Set(oldScopes)].sort());
    return isUnchanged ? [] : [invalid('spec.scopes', scopes, FIELD_IMMUTABLE)];
  },
};

function listErrors(parent: JsonObject | undefined, field: string, path: string): FieldError[] {
  const list = objectAt(parent, field);
  return Object.keys(list ?? {}).flatMap((name) => [
    ...quotaResourceNameErrors(name, entry(path, name)),
    ...quantityErrors(list, name, entry(path, name)),
  ]);
}

function limitedResources(spec: JsonObject | undefined): string[] {
  return Object.keys(objectAt(spec, 'hard') ?? {}).filter(isStandardQuotaResource);
}

function conflictErrors(scopes: readonly string[], path: string, shown: unknown): FieldError[] {
  return OPPOSITES.filter((pair) => pair.every((scope) => scopes.includes(scope))).map(() =>
    invalid(path, shown, 'conflicting scopes'),
  );
}

function scopeErrors(spec: JsonObject | undefined): FieldError[] {
  const path = 'spec.scopes';
  const scopes = textsAt(spec, 'scopes');
  const errors: FieldError[] = [];
  for (const scope of scopes) {
    const supported = SCOPES.get(scope);
    if (supported === undefined) errors.push(invalid(path, scopes, 'unsupported scope'));
    for (const name of limitedResources(spec)) {
      if (supported !== undefined && !supported.includes(name)) {
        errors.push(invalid(path, scopes, 'unsupported scope applied to resource'));
      }
    }
  }
  return [...errors, ...conflictErrors(scopes, path, scopes)];
}

function selectorErrors(spec: JsonObject | undefined): FieldError[] {
  const selector = objectAt(spec, 'scopeSelector');
  const requirements = objectsAt(selector, 'matchExpressions');
  const path = 'spec.scopeSelector.matchExpressions';
  const errors: FieldError[] = [];
  for (const requirement of requirements) {
    const scope = textAt(requirement, 'scopeName');
    const supported = SCOPES.get(scope);
    if (supported === undefined) errors.push(invalid(`${path}.scopeName`, scope, 'unsupported scope'));
    for (const name of limitedResources(spec)) {
      if (supported !== undefined && !supported.includes(name)) {
        errors.push(invalid(path, selector, 'unsupported scope applied to resource'));
      }
    }
    errors.push(...operatorErrors(requirement, scope, path));
  }
  const scopes = requirements.map((requirement) => textAt(requirement, 'scopeName'));
  return [...errors, ...conflictErrors(scopes, path, textsAt(spec, 'scopes'))];
}

function operatorErrors(requirement: JsonObject, scope: string, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const operator = textAt(requirement, 'operator');
  const values = textsAt(requirement, 'values');
  if (EXISTS_ONLY.includes(scope) && operator !== 'Exists') {
    const detail =
      "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
    errors.push(invalid(`${path}.operator`, operator, detail));
  }
  if (operator === 'In' || operator === 'NotIn') {
    const detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
    if (values.length === 0) errors.push(required(`${path}.values`, detail));
  } else if (operator === 'Exists' || operator === 'DoesNotExist') {
    const detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
    if (values.length > 0) errors.push(invalid(`${path}.values`, values, detail));
  } else if (operator !== '') {
    errors.push(invalid(`${path}.operator`, operator, 'not a valid selector operator'));
  }
  return errors;
}

/** `cpu: 1/2, memory: 1Gi/2Gi`, of the limits or of the rest. */
function usage(status: JsonObject | undefined, ofLimits: boolean): string {
  const used = amountsAt(status, 'used');
  return [...amountsAt(status, 'hard')]
    .filter(([name]) => name.startsWith('limits.') === ofLimits)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, hard]) => {
      const amount = used.get(name);
      return `${name}: ${amount === undefined ? '0' : formatQuantity(amount)}/${formatQuantity(hard)}`;
    })
    .join(', ');
}

const columns: readonly Column[] = [
  nameColumn,
  column('Request', 'string', 'Requests used of those allowed.', (_spec, status) => usage(status, false)),
  column('Limit', 'string', 'Limits used of those allowed.', (_spec, status) => usage(status, true)),
  ageColumn,
];

/** core/v1 ResourceQuota. */
export const resourceQuotaDefinition = coreKind({
  plural: 'resourcequotas',
  kind: 'ResourceQuota',
  namespaced: true,
  shortNames: ['quota'],
  hasStatus: true,
  schema: objectSchema(`${CORE}.ResourceQuota`, 'A limit on what a namespace uses in all.', {
    spec: [2, resourceQuotaSpec, 'How much may be used.'],
    status: [3, resourceQuotaStatus, 'How much is used.'],
  }),
  columns,
  strategy,
});
