import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../api/meta.ts';
import { attributesOf, configMaps, pods } from '../attributes.fixture.ts';
import { validatingConfiguration, webhook, webhookScene } from './fake-transport.fixture.ts';
import { ValidatingWebhooks } from './validating.ts';

const object: KubeObject = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'c', namespace: 'ns', labels: { app: 'x' } },
  data: { size: '3' },
};

/** Whether the webhook was asked, or the refusal. */
async function outcome(
  expressions: readonly string[],
  failurePolicy = 'Fail',
  attributes = attributesOf(configMaps, object),
): Promise<string> {
  const { registry, transport, options } = await webhookScene();
  const matchConditions = expressions.map((expression, index) => ({ name: `c${index}`, expression }));
  await registry.put(validatingConfiguration('main', webhook('a', { matchConditions, failurePolicy })));
  transport.on('/a', () => ({ allowed: true }));
  try {
    await new ValidatingWebhooks(options).validate(attributes);
    return transport.calls.length === 1 ? 'asked' : 'spared';
  } catch (error) {
    return (error as Error).message;
  }
}

describe('match conditions', () => {
  it.each([
    ['none', [], 'asked'],
    ['a true one', ['true'], 'asked'],
    ['a false one', ['false'], 'spared'],
    ['all of several', ['true', 'object.metadata.name == "c"'], 'asked'],
    ['not all of several', ['true', 'object.metadata.name == "d"'], 'spared'],
    ['labels', ['object.metadata.labels["app"] == "x"'], 'asked'],
    ['who asks', ['request.userInfo.username == "alice"'], 'asked'],
    ['groups', ['!("system:nodes" in request.userInfo.groups)'], 'asked'],
    ['the resource', ['request.resource.resource != "leases"'], 'asked'],
    ['the operation', ['request.operation == "DELETE"'], 'spared'],
    ['an absent old object', ['oldObject == null'], 'asked'],
    ['a guarded field', ['has(request.subResource) && request.subResource == "status"'], 'spared'],
    ['a failure beside a false', ['object.nope.nope == 1', 'false'], 'spared'],
  ])('%s', async (_, expressions, expected) => {
    expect(await outcome(expressions)).toBe(expected);
  });

  it.each([
    ['evaluation', 'object.spec.replicas > 1'],
    ['compilation', 'object.('],
    ['a variable that is not there', 'authorizer.allowed()'],
    ['a result that is no bool', '"text"'],
  ])('a failure of %s follows the failure policy', async (_, expression) => {
    expect(await outcome([expression], 'Fail')).toMatch(/^configmaps "c" is forbidden: /);
    expect(await outcome([expression], 'Ignore')).toBe('spared');
    expect(await outcome([expression, 'false'], 'Fail')).toBe('spared');
  });

  it('lists several failures', async () => {
    expect(await outcome(['object.a == 1', 'object.b == 1'])).toMatch(/^configmaps "c" is forbidden: \[.*, .*\]$/);
  });

  it('sees subresources and old objects', async () => {
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'p', namespace: 'ns' } };
    const evicting = attributesOf(pods, eviction, { subresource: 'eviction' });
    expect(await outcome(['request.subResource == "eviction" && object.kind == "Eviction"'], 'Fail', evicting)).toBe(
      'asked',
    );
    const deleting = attributesOf(configMaps, undefined, { operation: 'DELETE', oldObject: object });
    expect(await outcome(['object == null && oldObject.data.size == "3"'], 'Fail', deleting)).toBe('asked');
  });
});
