import { describe, expect, it } from 'vitest';
import { createErrors } from '../test-kinds.ts';
import {
  localSubjectAccessReviewDefinition,
  selfSubjectAccessReviewDefinition,
  subjectAccessReviewDefinition,
} from './reviews.ts';

const nameless = { name: '' };
const resourceAttributes = { verb: 'get', resource: 'pods', namespace: 'y' };
const nonResourceAttributes = { verb: 'get', path: '/' };

describe('access reviews', () => {
  it.each<[object, string[]]>([
    [{ resourceAttributes, user: 'u' }, []],
    [{ nonResourceAttributes, groups: ['g'] }, []],
    [{ resourceAttributes }, ['spec.user: Invalid value: "": at least one of user or group must be specified']],
    [
      { user: 'u' },
      [
        'spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified',
      ],
    ],
    [
      { user: 'u', resourceAttributes, nonResourceAttributes },
      [
        `spec.nonResourceAttributes: Invalid value: ${JSON.stringify(nonResourceAttributes)}: cannot be specified in combination with resourceAttributes`,
      ],
    ],
    [
      { user: 'u', resourceAttributes: { ...resourceAttributes, labelSelector: {} } },
      [
        'spec.resourceAttributes.labelSelector.requirements: Required value: when spec.resourceAttributes.labelSelector is specified, requirements or rawSelector is required',
      ],
    ],
  ])('ask %j', (spec, errors) => {
    expect(createErrors(subjectAccessReviewDefinition, { metadata: nameless, spec })).toEqual(errors);
  });

  it('of oneself need no user', () => {
    expect(
      createErrors(selfSubjectAccessReviewDefinition, { metadata: nameless, spec: { resourceAttributes } }),
    ).toEqual([]);
  });

  it('have no metadata', () => {
    const spec = { resourceAttributes };
    const errors = createErrors(selfSubjectAccessReviewDefinition, { metadata: { name: 'x', labels: {} }, spec });
    expect(errors).toHaveLength(1);
    expect(errors[0]).toMatch(/^metadata: Invalid value: .*: must be empty$/);
  });

  it('in a namespace ask about that namespace', () => {
    const spec = { user: 'u', resourceAttributes };
    expect(createErrors(localSubjectAccessReviewDefinition, { metadata: nameless, spec })).toEqual([]);
    const elsewhere = { user: 'u', resourceAttributes: { ...resourceAttributes, namespace: 'other' } };
    expect(createErrors(localSubjectAccessReviewDefinition, { metadata: nameless, spec: elsewhere })).toEqual([
      'spec.resourceAttributes.namespace: Invalid value: "other": must match metadata.namespace',
    ]);
    expect(
      createErrors(localSubjectAccessReviewDefinition, {
        metadata: nameless,
        spec: { user: 'u', nonResourceAttributes },
      }),
    ).toHaveLength(1);
  });
});
