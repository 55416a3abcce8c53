import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../api/meta.ts';
import type { ResourceDefinition } from '../../../api/resource.ts';
import { attributesOf, configMaps, pods } from '../attributes.fixture.ts';
import { anyDefinition, builtinOf, TestRegistry } from '../../registry/registry.fixture.ts';
import type { Webhook } from './configuration.ts';
import { validatingConfiguration, webhook } from './fake-transport.fixture.ts';
import { WebhookSource } from './source.ts';

const object: KubeObject = { apiVersion: 'v1', kind: 'X', metadata: { name: 'x', namespace: 'ns' } };

async function scene(...webhooks: Webhook[]): Promise<{ registry: TestRegistry; source: WebhookSource }> {
  const registry = await TestRegistry.open();
  if (webhooks.length > 0) await registry.put(validatingConfiguration('main', ...webhooks));
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
  it('orders webhooks by the names of their configurations, then as listed', async () => {
    const { registry, source } = await scene();
    await registry.put(validatingConfiguration('b', webhook('b2'), webhook('b1')));
    await registry.put(validatingConfiguration('a', webhook('a1')));
    expect(found(source, pods)).toEqual(['a1.example.com v1', 'b2.example.com v1', 'b1.example.com v1']);
  });

  it('works the same thing out once', async () => {
    const { source } = await scene(webhook('a'));
    const first = source.invocationsFor(attributesOf(pods, object));
    expect(source.invocationsFor(attributesOf(pods, object))).toBe(first);
  });

  it('sees configurations come, change and go', async () => {
    const { registry, source } = await scene();
    expect(found(source, pods)).toEqual([]);
    await registry.put(validatingConfiguration('main', webhook('a', { rules: rule(['pods']) })));
    expect(found(source, pods)).toEqual(['a.example.com v1']);
    expect(found(source, configMaps)).toEqual([]);
    await registry.put(validatingConfiguration('main', webhook('b', { rules: rule(['configmaps']) })));
    expect(found(source, pods)).toEqual([]);
    expect(found(source, configMaps)).toEqual(['b.example.com v1']);
    await registry.drop(validatingConfiguration('main'));
    expect(found(source, configMaps)).toEqual([]);
  });

  it('keeps what was compiled of configurations that did not change', async () => {
    const { registry, source } = await scene(webhook('a'));
    const [before] = source.invocationsFor(attributesOf(pods, object));
    await registry.put(validatingConfiguration('other', webhook('b')));
    const [after] = source.invocationsFor(attributesOf(pods, object));
    expect(after?.compiled).toBe(before?.compiled);
  });

  it('gives webhooks of the same name different identities', async () => {
    const { source } = await scene(webhook('a'), webhook('a'));
    const ids = source.invocationsFor(attributesOf(pods, object)).map((each) => each.compiled.id);
    expect(new Set(ids).size).toBe(2);
  });

  it.each([
    'validatingwebhookconfigurations',
    'mutatingwebhookconfigurations',
    'validatingadmissionpolicies',
    'mutatingadmissionpolicybindings',
  ])('never stands in the way of %s', async (plural) => {
    const { source } = await scene(webhook('a'));
    expect(found(source, anyDefinition('admissionregistration.k8s.io', 'v1', plural, 'X'))).toEqual([]);
    expect(found(source, anyDefinition('example.com', 'v1', plural, 'X'))).toEqual(['a.example.com v1']);
  });
});

describe('match policy', () => {
  const v1 = anyDefinition('example.com', 'v1', 'things', 'Thing', { subresources: [{ name: 'status', verbs: [] }] });
  const v2 = anyDefinition('example.com', 'v2', 'things', 'Thing');

  async function versioned(matchPolicy: string | undefined, ...versions: string[]): Promise<WebhookSource> {
    const rules = versions.map((version) => ({ ...rule(['*/*'])[0], apiVersions: [version] }));
    const { registry, source } = await scene(webhook('a', { rules, ...(matchPolicy ? { matchPolicy } : {}) }));
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
  ])('%s', async (_, policy, versions, definition, expected) => {
    expect(found(await versioned(policy, ...versions), definition)).toEqual(expected);
  });

  it('needs the other version to have the subresource', async () => {
    const source = await versioned('Equivalent', 'v2');
    expect(found(source, v1)).toEqual(['a.example.com v2']);
    expect(found(source, v1, 'status')).toEqual([]);
  });

  it('knows two faces of one stored kind', async () => {
    const { source } = await scene(webhook('a', { rules: rule(['events'], { apiGroups: [''] }) }));
    const [invocation] = source.invocationsFor(attributesOf(builtinOf('events.k8s.io', 'events'), object));
    expect(invocation?.definition).toBe(builtinOf('', 'events'));
  });

  it('works it out anew when definitions come and go', async () => {
    const { registry, source } = await scene(webhook('a', { rules: rule(['things'], { apiVersions: ['v1'] }) }));
    registry.define(v2);
    expect(found(source, v2)).toEqual([]);
    registry.define(v1);
    expect(found(source, v2)).toEqual(['a.example.com v1']);
  });
});
