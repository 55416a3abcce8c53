import { describe, expect, it } from 'vitest';
import { deployments, nodes, pods } from '../attributes.fixture.ts';
import type { WebhookRule } from './configuration.ts';
import { type RuleSubject, ruleMatches } from './rules.ts';

const ALL: WebhookRule = { apiGroups: ['*'], apiVersions: ['*'], resources: ['*'], operations: ['*'] };

function subject(definition: RuleSubject['definition'], more: Partial<RuleSubject> = {}): RuleSubject {
  return { definition, subresource: '', operation: 'CREATE', ...more };
}

const pod = subject(pods);
const eviction = subject(pods, { subresource: 'eviction' });

describe('webhook rules', () => {
  it.each<[string, WebhookRule, RuleSubject, boolean]>([
    ['everything', ALL, pod, true],
    ['* is no subresource', ALL, eviction, false],
    ['*/* is resources and subresources', { ...ALL, resources: ['*/*'] }, eviction, true],
    ['*/* is resources too', { ...ALL, resources: ['*/*'] }, pod, true],
    ['pods', { ...ALL, resources: ['pods'] }, pod, true],
    ['pods is no subresource', { ...ALL, resources: ['pods'] }, eviction, false],
    ['pods/* has all subresources', { ...ALL, resources: ['pods/*'] }, eviction, true],
    ['pods/* is pods too', { ...ALL, resources: ['pods/*'] }, pod, true],
    ['pods/eviction', { ...ALL, resources: ['pods/eviction'] }, eviction, true],
    ['pods/eviction is not pods', { ...ALL, resources: ['pods/eviction'] }, pod, false],
    ['*/eviction', { ...ALL, resources: ['*/eviction'] }, eviction, true],
    ['*/status', { ...ALL, resources: ['*/status'] }, eviction, false],
    ['another resource', { ...ALL, resources: ['services'] }, pod, false],
    ['one of several', { ...ALL, resources: ['services', 'pods'] }, pod, true],
    ['the core group', { ...ALL, apiGroups: [''] }, pod, true],
    ['another group', { ...ALL, apiGroups: ['apps'] }, pod, false],
    ['a group', { ...ALL, apiGroups: ['apps'] }, subject(deployments), true],
    ['a version', { ...ALL, apiVersions: ['v1'] }, pod, true],
    ['another version', { ...ALL, apiVersions: ['v2'] }, pod, false],
    ['an operation', { ...ALL, operations: ['CREATE'] }, pod, true],
    ['another operation', { ...ALL, operations: ['UPDATE', 'DELETE'] }, pod, false],
    ['CONNECT', { ...ALL, operations: ['CONNECT'] }, subject(pods, { operation: 'CONNECT' }), true],
    ['scope *', { ...ALL, scope: '*' }, pod, true],
    ['scope Namespaced', { ...ALL, scope: 'Namespaced' }, pod, true],
    ['scope Cluster', { ...ALL, scope: 'Cluster' }, pod, false],
    ['scope Cluster on a node', { ...ALL, scope: 'Cluster' }, subject(nodes), true],
    ['scope Namespaced on a node', { ...ALL, scope: 'Namespaced' }, subject(nodes), false],
    ['scope unheard of', { ...ALL, scope: 'Galaxy' }, pod, false],
    ['an empty rule', {}, pod, false],
  ])('%s', (_, rule, about, expected) => {
    expect(ruleMatches(rule, about)).toBe(expected);
  });
});
