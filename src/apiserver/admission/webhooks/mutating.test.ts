import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../api/meta.ts';
import type { ResourceDefinition } from '../../../api/resource.ts';
import { ApiError } from '../../../api/status.ts';
import type { AdmissionAttributes, AdmissionPlugin } from '../../registry/contract.ts';
import { AdmissionChain } from '../chain.ts';
import { attributesOf, configMaps, pods } from '../attributes.fixture.ts';
import { anyDefinition, userContext } from '../../registry/registry.fixture.ts';
import type { Webhook } from './configuration.ts';
import { mutatingConfiguration, webhook, type WebhookScene, webhookScene } from './fake-transport.fixture.ts';
import { type AfterMutation, MutatingWebhooks } from './mutating.ts';
import { patchFields, type Review } from './webhook-server.fixture.ts';

function object(data: Record<string, string> = {}): KubeObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'c', namespace: 'ns' }, data };
}

const dataOf = (subject: KubeObject | undefined) => subject?.['data'] as Record<string, string>;
const shown = (review: Review) => dataOf(review.request['object'] as KubeObject);
/** Sets one key. */
const set = (key: string, value: string) => patchFields([{ op: 'add', path: `/data/${key}`, value }]);

type Scene = WebhookScene & {
  readonly shaped: string[];
  admit(attributes: AdmissionAttributes): Promise<ApiError | undefined>;
};

async function scene(
  webhooks: Webhook[],
  before: AdmissionPlugin[] = [],
  afterMutation?: AfterMutation,
): Promise<Scene> {
  const base = await webhookScene();
  const shaped: string[] = [];
  await base.registry.put(mutatingConfiguration('main', ...webhooks));
  const plugin = new MutatingWebhooks({
    ...base.options,
    afterMutation: (definition, subject) => {
      shaped.push(`${definition.group}/${definition.version} ${subject.kind}`);
      afterMutation?.(definition, subject);
    },
  });
  const chain = new AdmissionChain([...before, plugin]);
  return {
    ...base,
    shaped,
    admit: async (attributes) => {
      const error: unknown = await Promise.resolve(chain.mutate(attributes)).then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      if (error !== undefined) expect(error).toBeInstanceOf(ApiError);
      return error as ApiError | undefined;
    },
  };
}

describe('MutatingWebhooks: patches', () => {
  it('applies patches one after the other, in place, each reshaped', async () => {
    const made = await scene([webhook('a'), webhook('b')]);
    made.transport.on('/a', () => set('a', '1'));
    made.transport.on('/b', (review) => set('b', String(Object.keys(shown(review)).length)));
    const attributes = attributesOf(configMaps, object());
    const before = attributes.object;
    expect(await made.admit(attributes)).toBeUndefined();
    expect(attributes.object).toBe(before);
    expect(dataOf(attributes.object)).toEqual({ a: '1', b: '1' });
    expect(made.shaped).toEqual(['/v1 ConfigMap', '/v1 ConfigMap']);
    expect(made.observations).toMatchObject([
      { type: 'admit', outcome: 'allowed', operation: 'CREATE' },
      { type: 'admit', outcome: 'allowed' },
    ]);
  });

  it('keeps what afterMutation makes of the object', async () => {
    const made = await scene([webhook('a')], [], (_, subject) => {
      delete dataOf(subject)['unknown'];
      dataOf(subject)['default'] = 'd';
    });
    made.transport.on('/a', () => set('unknown', '1'));
    const attributes = attributesOf(configMaps, object());
    await made.admit(attributes);
    expect(dataOf(attributes.object)).toEqual({ default: 'd' });
  });

  it('removes what a patch removes, top-level fields included', async () => {
    const made = await scene([webhook('a')]);
    made.transport.on('/a', () => patchFields([{ op: 'remove', path: '/data' }]));
    const attributes = attributesOf(configMaps, object({ a: '1' }));
    await made.admit(attributes);
    expect(attributes.object).not.toHaveProperty('data');
  });

  it('leaves the object alone on no patch, an empty one, and one that changes nothing', async () => {
    const made = await scene([webhook('a'), webhook('b'), webhook('c')]);
    made.transport.on('/a', () => ({ allowed: true }));
    made.transport.on('/b', () => patchFields([]));
    made.transport.on('/c', () => set('x', '1'));
    const attributes = attributesOf(configMaps, object({ x: '1' }));
    expect(await made.admit(attributes)).toBeUndefined();
    expect(dataOf(attributes.object)).toEqual({ x: '1' });
    expect(made.transport.paths).toEqual(['/a', '/b', '/c']);
  });

  it.each<[string, Record<string, unknown>, string | RegExp]>([
    ['a patch that does not apply', patchFields([{ op: 'remove', path: '/nope' }]), /^Internal error occurred: /],
    ['a failed test', patchFields([{ op: 'test', path: '/data', value: 7 }]), /^Internal error occurred: /],
    [
      'another kind',
      patchFields([{ op: 'replace', path: '/kind', value: 'Secret' }]),
      'Internal error occurred: a webhook may not change the kind of an object',
    ],
    [
      'no metadata',
      patchFields([{ op: 'replace', path: '/metadata', value: [] }]),
      'Internal error occurred: a webhook may not change the kind of an object',
    ],
  ])('answers 500 on %s, whatever the policy', async (_, fields, message) => {
    const made = await scene([webhook('a', { failurePolicy: 'Ignore' })]);
    made.transport.on('/a', () => fields);
    const attributes = attributesOf(configMaps, object({ a: '1' }));
    const error = await made.admit(attributes);
    expect(error?.code).toBe(500);
    expect(error?.message).toMatch(message);
    expect(attributes.object).toEqual(object({ a: '1' }));
  });

  it.each([
    ['Fail', 500],
    ['Ignore', undefined],
  ])('treats an undecodable patch as a failed call, policy %s', async (failurePolicy, code) => {
    const made = await scene([webhook('a', { failurePolicy })]);
    const patch = Buffer.from('[{').toString('base64');
    made.transport.on('/a', () => ({ allowed: true, patchType: 'JSONPatch', patch }));
    const error = await made.admit(attributesOf(configMaps, object()));
    expect(error?.code).toBe(code);
    if (error) expect(error.message).toContain('"a.example.com": received undecodable patch in webhook response: ');
  });

  it('goes on after a webhook that fails open, and stops at a denial', async () => {
    const made = await scene([webhook('a', { failurePolicy: 'Ignore' }), webhook('b'), webhook('c')]);
    made.transport.on('/a', () => new Error('down'));
    made.transport.on('/b', () => ({ allowed: false, status: { code: 403, reason: 'Forbidden', message: 'no' } }));
    const error = await made.admit(attributesOf(configMaps, object()));
    expect([error?.code, error?.message]).toEqual([403, 'admission webhook "b.example.com" denied the request: no']);
    expect(made.transport.paths).toEqual(['/a', '/b']);
  });

  it('cannot patch a deletion', async () => {
    const made = await scene([webhook('a')]);
    made.transport.on('/a', () => set('a', '1'));
    const error = await made.admit(attributesOf(configMaps, undefined, { operation: 'DELETE', oldObject: object() }));
    expect(error?.message).toBe(
      'Internal error occurred: admission webhook "a.example.com" attempted to modify the object, which is not supported for this operation',
    );
  });

  it('patches an Eviction without shaping it as a pod', async () => {
    const made = await scene([webhook('a')]);
    made.transport.on('/a', () =>
      patchFields([{ op: 'add', path: '/deleteOptions', value: { gracePeriodSeconds: 5 } }]),
    );
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'p', namespace: 'ns' } };
    const attributes = attributesOf(pods, eviction, { subresource: 'eviction' });
    expect(await made.admit(attributes)).toBeUndefined();
    expect(attributes.object).toMatchObject({ deleteOptions: { gracePeriodSeconds: 5 } });
    expect(made.shaped).toEqual([]);
  });

  it('patches in the version that the webhook speaks and brings the result back', async () => {
    const v1 = anyDefinition('example.com', 'v1', 'things', 'Thing');
    const v2 = anyDefinition('example.com', 'v2', 'things', 'Thing');
    const rules = [{ apiGroups: ['example.com'], apiVersions: ['v1'], resources: ['things'], operations: ['*'] }];
    const made = await scene([webhook('a', { rules })]);
    made.registry.define(v1);
    made.registry.define(v2);
    made.transport.on('/a', () => set('a', '1'));
    const attributes = attributesOf(v2 as ResourceDefinition, {
      ...object(),
      apiVersion: 'example.com/v2',
      kind: 'Thing',
    });
    expect(await made.admit(attributes)).toBeUndefined();
    expect(attributes.object).toMatchObject({ apiVersion: 'example.com/v2', data: { a: '1' } });
    expect(made.shaped).toEqual(['example.com/v1 Thing']);
  });

  it('asks nobody who has side effects on a dry run', async () => {
    const made = await scene([webhook('a', { sideEffects: 'Some' })]);
    const error = await made.admit(attributesOf(configMaps, object(), { context: userContext({ dryRun: true }) }));
    expect([error?.code, error?.message]).toEqual([400, 'admission webhook "a.example.com" does not support dry run']);
    expect(made.transport.calls).toEqual([]);
  });

  it('judges by selectors what earlier webhooks made of the object', async () => {
    const made = await scene([webhook('a'), webhook('b', { objectSelector: { matchLabels: { app: 'x' } } })]);
    made.transport.on('/a', () => patchFields([{ op: 'add', path: '/metadata/labels', value: { app: 'x' } }]));
    made.transport.on('/b', () => ({ allowed: true }));
    await made.admit(attributesOf(configMaps, object()));
    expect(made.transport.paths).toEqual(['/a', '/b']);
  });
});

describe('MutatingWebhooks: reinvocation', () => {
  const ifNeeded = { reinvocationPolicy: 'IfNeeded' };

  it('asks again, once, who was asked before another changed the object', async () => {
    const made = await scene([webhook('a', ifNeeded), webhook('b', ifNeeded)]);
    made.transport.on('/a', () => ({ allowed: true }));
    made.transport.on('/b', (review) => (shown(review)['b'] ? { allowed: true } : set('b', '1')));
    await made.admit(attributesOf(configMaps, object()));
    expect(made.transport.paths).toEqual(['/a', '/b', '/a']);
  });

  it('never asks a third time, even if everyone keeps changing it', async () => {
    const made = await scene([webhook('a', ifNeeded), webhook('b', ifNeeded)]);
    let count = 0;
    made.transport.on('/a', () => set('a', String(count++)));
    made.transport.on('/b', () => set('b', String(count++)));
    await made.admit(attributesOf(configMaps, object()));
    expect(made.transport.paths).toEqual(['/a', '/b', '/a', '/b']);
  });

  it('does not ask again with policy Never, or when nothing changed', async () => {
    const never = await scene([webhook('a'), webhook('b')]);
    never.transport.on('/a', () => ({ allowed: true }));
    never.transport.on('/b', () => set('b', '1'));
    await never.admit(attributesOf(configMaps, object()));
    expect(never.transport.paths).toEqual(['/a', '/b']);
    const unchanged = await scene([webhook('a', ifNeeded), webhook('b', ifNeeded)]);
    unchanged.transport.on('/a', () => ({ allowed: true }));
    unchanged.transport.on('/b', () => ({ allowed: true }));
    await unchanged.admit(attributesOf(configMaps, object()));
    expect(unchanged.transport.paths).toEqual(['/a', '/b']);
  });

  it('asks the last one again only when plug-ins changed what it left', async () => {
    let rounds = 0;
    const builtIn: AdmissionPlugin = {
      name: 'x',
      handles: () => true,
      mutate: async ({ object: subject }) => {
        if (++rounds === 2) dataOf(subject)['builtIn'] = '1';
      },
    };
    const made = await scene([webhook('a', ifNeeded)], [builtIn]);
    made.transport.on('/a', (review) => (shown(review)['a'] ? { allowed: true } : set('a', '1')));
    const attributes = attributesOf(configMaps, object());
    await made.admit(attributes);
    expect(rounds).toBe(2);
    expect(made.transport.paths).toEqual(['/a', '/a']);
    expect(dataOf(attributes.object)).toEqual({ a: '1', builtIn: '1' });
    const alone = await scene([webhook('a', ifNeeded)]);
    alone.transport.on('/a', () => set('a', '1'));
    await alone.admit(attributesOf(configMaps, object()));
    expect(alone.transport.paths).toEqual(['/a']);
  });

  it('asks nobody for the first time in the second round', async () => {
    const made = await scene([
      webhook('a', { ...ifNeeded, objectSelector: { matchLabels: { app: 'x' } } }),
      webhook('b', ifNeeded),
    ]);
    made.transport.on('/a', () => ({ allowed: true }));
    made.transport.on('/b', () => patchFields([{ op: 'add', path: '/metadata/labels', value: { app: 'x' } }]));
    await made.admit(attributesOf(configMaps, object()));
    expect(made.transport.paths).toEqual(['/b']);
  });
});
