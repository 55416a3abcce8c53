import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../api/meta.ts';
import type { ResourceDefinition } from '../../../api/resource.ts';
import { attributesOf, configMaps, FakeRegistry, fakeDefinition, pods } from '../fake-registry.fixture.ts';
import type { Webhook } from './configuration.ts';
import { configuration, webhook } from './fake-transport.fixture.ts';
import { WebhookSource } from './source.ts';

const BUCKET = 'validatingwebhookconfigurations.admissionregistration.k8s.io';
const object: KubeObject = { apiVersion: 'v1', kind: 'X', metadata: { name: 'x', namespace: 'ns' } };

function scene(...webhooks: Webhook[]): { registry: FakeRegistry; source: WebhookSource } {
  const registry = new FakeRegistry();
  if (webhooks.length > 0) registry.put(BUCKET, configuration('main', ...webhooks));
  return { registry, source: new WebhookSource(registry, 'validatingwebhookconfigurations') };
}

const found = (source: WebhookSource, definition: ResourceDefinition, subresource?: string) =>
  source
    .invocationsFor(attributesOf(definition, object, subresource === undefined ? {} : { subresource }))
    .map((each) => `${each.compiled.webhook.name} ${each.definition.version}`);

const rule = (resources: string[], more: object = {}) => [
  { apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources, ...more },
];

describe('WebhookSource', () => {
  it('orders webhooks by the names of their configurations, then as listed', () => {
    const { registry, source } = scene();
    registry.put(BUCKET, configuration('b', webhook('b2'), webhook('b1')));
    registry.put(BUCKET, configuration('a', webhook('a1')));
    expect(found(source, pods)).toEqual(['a1.example.com v1', 'b2.example.com v1', 'b1.example.com v1']);
  });

  it('works the same thing out once', () => {
    const { source } = scene(webhook('a'));
    const first = source.invocationsFor(attributesOf(pods, object));
    expect(source.invocationsFor(attributesOf(pods, object))).toBe(first);
  });

  it('sees configurations come, change and go', () => {
    const { registry, source } = scene();
    expect(found(source, pods)).toEqual([]);
    registry.put(BUCKET, configuration('main', webhook('a', { rules: rule(['pods']) })));
    expect(found(source, pods)).toEqual(['a.example.com v1']);
    expect(found(source, configMaps)).toEqual([]);
    registry.put(BUCKET, configuration('main', webhook('b', { rules: rule(['configmaps']) })));
    expect(found(source, pods)).toEqual([]);
    expect(found(source, configMaps)).toEqual(['b.example.com v1']);
    registry.drop(BUCKET, '', 'main');
    expect(found(source, configMaps)).toEqual([]);
  });

  it('keeps what was compiled of configurations that did not change', () => {
    const { registry, source } = scene(webhook('a'));
    const [before] = source.invocationsFor(attributesOf(pods, object));
    registry.put(BUCKET, configuration('other', webhook('b')));
    const [after] = source.invocationsFor(attributesOf(pods, object));
    expect(after?.compiled).toBe(before?.compiled);
  });

  it('gives webhooks of the same name different identities', () => {
    const { source } = scene(webhook('a'), webhook('a'));
    const ids = source.invocationsFor(attributesOf(pods, object)).map((each) => each.compiled.id);
    expect(new Set(ids).size).toBe(2);
  });

  it.each([
    'validatingwebhookconfigurations',
    'mutatingwebhookconfigurations',
    'validatingadmissionpolicies',
    'mutatingadmissionpolicybindings',
  ])('never stands in the way of %s', (plural) => {
    const { source } = scene(webhook('a'));
    expect(found(source, fakeDefinition('admissionregistration.k8s.io', 'v1', plural, 'X'))).toEqual([]);
    expect(found(source, fakeDefinition('example.com', 'v1', plural, 'X'))).toEqual(['a.example.com v1']);
  });
});

describe('match policy', () => {
  const v1 = fakeDefinition('example.com', 'v1', 'things', 'Thing', { subresources: [{ name: 'status', verbs: [] }] });
  const v2 = fakeDefinition('example.com', 'v2', 'things', 'Thing');

  function versioned(matchPolicy: string | undefined, ...versions: string[]): WebhookSource {
    const rules = versions.map((version) => ({ ...rule(['*/*'])[0], apiVersions: [version] }));
    const { registry, source } = scene(webhook('a', { rules, ...(matchPolicy ? { matchPolicy } : {}) }));
    registry.define(v1);
    registry.define(v2);
    return source;
  }

  it.each([
    ['the version itself', 'Exact', ['v1'], v1, ['a.example.com v1']],
    ['Exact: no other version', 'Exact', ['v1'], v2, []],
    ['Equivalent: another version', 'Equivalent', ['v1'], v2, ['a.example.com v1']],
    ['Equivalent by default', undefined, ['v1'], v2, ['a.example.com v1']],
    ['Equivalent: the version itself first', 'Equivalent', ['v1', 'v2'], v2, ['a.example.com v2']],
    ['Equivalent: unheard versions', 'Equivalent', ['v9'], v2, []],
  ])('%s', (_, policy, versions, definition, expected) => {
    expect(found(versioned(policy, ...versions), definition)).toEqual(expected);
  });

  it('needs the other version to have the subresource', () => {
    const source = versioned('Equivalent', 'v2');
    expect(found(source, v1)).toEqual(['a.example.com v2']);
    expect(found(source, v1, 'status')).toEqual([]);
  });

  it('knows two faces of one stored kind', () => {
    const core = fakeDefinition('', 'v1', 'events', 'Event');
    const storage = { group: '', plural: 'events', toStorage: () => undefined, fromStorage: () => undefined };
    const face = fakeDefinition('events.k8s.io', 'v1', 'events', 'Event', { storage });
    const { registry, source } = scene(webhook('a', { rules: rule(['events'], { apiGroups: [''] }) }));
    registry.define(core);
    registry.define(face);
    const [invocation] = source.invocationsFor(attributesOf(face, object));
    expect(invocation?.definition).toBe(core);
  });

  it('works it out anew when definitions come and go', () => {
    const { registry, source } = scene(webhook('a', { rules: rule(['things'], { apiVersions: ['v1'] }) }));
    registry.define(v2);
    expect(found(source, v2)).toEqual([]);
    registry.define(v1);
    expect(found(source, v2)).toEqual(['a.example.com v1']);
  });
});
