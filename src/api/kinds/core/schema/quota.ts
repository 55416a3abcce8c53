import { list, map, message, quantity, str } from '../../../schema.ts';
import { CORE } from './package.ts';

/** Schemas of quotas and limits. */

const scopedResourceSelectorRequirement = message(
  `${CORE}.ScopedResourceSelectorRequirement`,
  'Relates a scope to values.',
  {
    scopeName: [1, str(), 'The scope.'],
    operator: [2, str(), 'In, NotIn, Exists or DoesNotExist.'],
    values: [3, list(str()), 'Values, for In and NotIn.'],
  },
  { required: ['scopeName', 'operator'] },
);

const scopeSelector = message(
  `${CORE}.ScopeSelector`,
  'Selects objects by scope.',
  {
    matchExpressions: [1, list(scopedResourceSelectorRequirement), 'Requirements that must hold.'],
  },
  { 'x-kubernetes-map-type': 'atomic' },
);

export const resourceQuotaSpec = message(`${CORE}.ResourceQuotaSpec`, 'How much a namespace may use.', {
  hard: [1, map(quantity()), 'The most of each resource.'],
  scopes: [2, list(str()), 'Scopes that an object must all match to count.'],
  scopeSelector: [3, scopeSelector, 'The same with values.'],
});

export const resourceQuotaStatus = message(`${CORE}.ResourceQuotaStatus`, 'How much a namespace uses.', {
  hard: [1, map(quantity()), 'The most of each resource, as enforced.'],
  used: [2, map(quantity()), 'How much of each is used.'],
});

const limitRangeItem = message(
  `${CORE}.LimitRangeItem`,
  'Limits for one type of object.',
  {
    type: [1, str(), 'Pod, Container or PersistentVolumeClaim.'],
    max: [2, map(quantity()), 'The most that one may ask for.'],
    min: [3, map(quantity()), 'The least that one must ask for.'],
    default: [4, map(quantity()), 'Limits for those that say nothing.'],
    defaultRequest: [5, map(quantity()), 'Requests for those that say nothing.'],
    maxLimitRequestRatio: [6, map(quantity()), 'The most that a limit may be of a request.'],
  },
  { required: ['type'] },
);

export const limitRangeSpec = message(
  `${CORE}.LimitRangeSpec`,
  'Limits for objects of a namespace.',
  {
    limits: [1, list(limitRangeItem), 'The limits, by type.'],
  },
  { required: ['limits'] },
);
