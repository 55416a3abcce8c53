import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../api/meta.ts';
import type { ResourceDefinition } from '../../../api/resource.ts';
import { ApiError } from '../../../api/status.ts';
import { attributesOf, configMaps, namespaces, nodes, pods } from '../attributes.fixture.ts';
import { anyDefinition, userContext } from '../../registry/registry.fixture.ts';
import type { Webhook } from './configuration.ts';
import {
  validatingConfiguration,
  jsonAnswer,
  webhook,
  type WebhookScene,
  webhookScene,
} from './fake-transport.fixture.ts';
import { DEADLINE_EXCEEDED, TransportError } from './transport.ts';
import { ValidatingWebhooks } from './validating.ts';

function object(name: string, labels?: Record<string, string>, namespace = 'ns'): KubeObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace, ...(labels ? { labels } : {}) } };
}

type Scene = WebhookScene & { readonly plugin: ValidatingWebhooks };

async function scene(...webhooks: Webhook[]): Promise<Scene> {
  const base = await webhookScene();
  await base.registry.put(validatingConfiguration('main', ...webhooks));
  return { ...base, plugin: new ValidatingWebhooks(base.options) };
}

type Request = [ResourceDefinition, KubeObject | undefined, Parameters<typeof attributesOf>[2]?];

/** What becomes of a request, by default the creation of a config map. */
async function verdict({ plugin }: Scene, ...request: Request | []): Promise<ApiError | undefined> {
  const [definition, subject, more] = request.length === 0 ? [configMaps, object('c')] : request;
  const attributes = attributesOf(definition, subject, more);
  if (!plugin.handles(attributes)) return undefined;
  const error = await plugin.validate(attributes).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error !== undefined) expect(error).toBeInstanceOf(ApiError);
  return error as ApiError | undefined;
}

describe('ValidatingWebhooks: the review', () => {
  it('asks about an eviction as kube-apiserver does', async () => {
    const made = await scene(webhook('a'));
    made.transport.on('/a', () => ({ allowed: true }));
    const eviction: KubeObject = {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name: 'p', namespace: 'ns' },
    };
    const context = userContext({
      user: { username: 'bob', uid: '7', groups: ['g'], extra: { scopes: ['s'] } },
      dryRun: true,
    });
    const options = { apiVersion: 'meta.k8s.io/v1', kind: 'CreateOptions', metadata: {}, dryRun: ['All'] };
    await verdict(made, pods, eviction, { subresource: 'eviction', context, options });
    expect(made.transport.calls[0]?.review).toEqual({
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      request: {
        uid: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
        kind: { group: 'policy', version: 'v1', kind: 'Eviction' },
        resource: { group: '', version: 'v1', resource: 'pods' },
        subResource: 'eviction',
        requestKind: { group: 'policy', version: 'v1', kind: 'Eviction' },
        requestResource: { group: '', version: 'v1', resource: 'pods' },
        requestSubResource: 'eviction',
        name: 'p',
        namespace: 'ns',
        operation: 'CREATE',
        userInfo: { username: 'bob', uid: '7', groups: ['g'], extra: { scopes: ['s'] } },
        object: eviction,
        oldObject: null,
        dryRun: true,
        options,
      },
    });
  });

  it('shows the old object of a deletion, and a namespace as its own', async () => {
    const made = await scene(webhook('a'));
    made.transport.on('/a', () => ({ allowed: true }));
    const oldObject: KubeObject = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'ns' } };
    await verdict(made, namespaces, undefined, { operation: 'DELETE', oldObject });
    expect(made.transport.calls[0]?.review.request).toMatchObject({
      operation: 'DELETE',
      name: 'ns',
      namespace: 'ns',
      object: null,
      oldObject,
      options: null,
    });
  });

  it('sends where and how the configuration says', async () => {
    const caBundle = Buffer.from('PEM').toString('base64');
    const made = await scene(webhook('a', { timeoutSeconds: 3, clientConfig: { url: 'https://h:1/a', caBundle } }));
    made.transport.on('/a', () => ({ allowed: true }));
    await verdict(made);
    expect(made.transport.requests[0]).toMatchObject({
      url: 'https://h:1/a?timeout=3s',
      caBundle: 'PEM',
      timeoutMs: 3000,
    });
  });

  it('shows the object in the version that the rule names', async () => {
    const storage = {
      group: '',
      plural: 'things',
      toStorage: (each: KubeObject) => void (each['stored'] = true),
      fromStorage: (each: KubeObject) => void delete each['stored'],
    };
    const stored = anyDefinition('', 'v1', 'things', 'Thing');
    const face = anyDefinition('example.com', 'v2', 'things', 'Thing', { storage });
    const rules = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['things'], operations: ['*'] }];
    const made = await scene(webhook('a', { rules }));
    made.registry.define(stored);
    made.registry.define(face);
    made.transport.on('/a', () => ({ allowed: true }));
    const subject = { ...object('t'), apiVersion: 'example.com/v2', kind: 'Thing' };
    await verdict(made, face, subject);
    expect(made.transport.calls[0]?.review.request).toMatchObject({
      kind: { group: '', version: 'v1', kind: 'Thing' },
      resource: { group: '', version: 'v1', resource: 'things' },
      requestKind: { group: 'example.com', version: 'v2', kind: 'Thing' },
      requestResource: { group: 'example.com', version: 'v2', resource: 'things' },
      object: { apiVersion: 'v1', kind: 'Thing', stored: true },
    });
    expect(subject).not.toHaveProperty('stored');
  });

  it('speaks v1beta1 to webhooks that speak nothing newer, and nothing to those that speak neither', async () => {
    const made = await scene(webhook('a', { admissionReviewVersions: ['v7', 'v1beta1'] }));
    made.transport.on('/a', () => ({ allowed: true }));
    expect(await verdict(made)).toBeUndefined();
    expect(made.transport.calls[0]?.review.apiVersion).toBe('admission.k8s.io/v1beta1');
    const neither = await scene(webhook('a', { admissionReviewVersions: ['v7'] }));
    expect((await verdict(neither))?.message).toBe(
      'Internal error occurred: failed calling webhook "a.example.com": could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)',
    );
  });
});

describe('ValidatingWebhooks: the answer', () => {
  it('passes a denial on, its code and details included', async () => {
    const made = await scene(webhook('a'));
    made.transport.on('/a', () => ({
      allowed: false,
      status: { code: 429, reason: 'TooManyRequests', message: 'Eviction triggered evacuation of VMI "default/vm"' },
    }));
    expect((await verdict(made))?.toStatus()).toEqual({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      code: 429,
      reason: 'TooManyRequests',
      message:
        'admission webhook "a.example.com" denied the request: Eviction triggered evacuation of VMI "default/vm"',
    });
    expect(made.observations).toMatchObject([{ name: 'a.example.com', type: 'validating', outcome: 'denied' }]);
  });

  it.each<[string, unknown, string]>([
    [
      'a deadline',
      new TransportError(DEADLINE_EXCEEDED),
      'failed to call webhook: Post "https://hooks.example.com/a?timeout=10s": context deadline exceeded',
    ],
    [
      'a slow body',
      new TransportError(DEADLINE_EXCEEDED, { duringBody: true }),
      'failed to call webhook: unexpected error when reading response body. Please retry. Original error: context deadline exceeded',
    ],
    [
      'a closed port',
      new TransportError('dial tcp 1.2.3.4:443: connect: connection refused'),
      'failed to call webhook: Post "https://hooks.example.com/a?timeout=10s": dial tcp 1.2.3.4:443: connect: connection refused',
    ],
    [
      'an unexpected failure of the transport',
      new RangeError('surprise'),
      'failed to call webhook: Post "https://hooks.example.com/a?timeout=10s": surprise',
    ],
    ['404', jsonAnswer({}, 404), 'failed to call webhook: the server could not find the requested resource'],
    [
      '500',
      { status: 500, body: Buffer.from('boom\n') },
      'failed to call webhook: an error on the server ("boom") has prevented the request from succeeding',
    ],
    [
      '302',
      { status: 302, body: Buffer.from('') },
      'failed to call webhook: the server responded with the status code 302 but did not return more information',
    ],
    ['403', { status: 403, body: Buffer.from('go away') }, 'failed to call webhook: go away'],
    ['a wrong uid', { uid: 'x', allowed: true }, 'received invalid webhook response: expected response.uid='],
    ['an empty answer', jsonAnswer({}), 'received invalid webhook response: webhook response was absent'],
  ])('%s: fails closed with 500, or open', async (_, answer, reason) => {
    const closed = await scene(webhook('a', { failurePolicy: 'Fail' }));
    closed.transport.on('/a', () => answer as Error);
    const error = await verdict(closed);
    expect([error?.code, error?.reason]).toEqual([500, 'InternalError']);
    expect(error?.message).toContain(`Internal error occurred: failed calling webhook "a.example.com": ${reason}`);
    expect(closed.observations.map((each) => each.outcome)).toEqual(['failed-closed']);
    const open = await scene(webhook('a', { failurePolicy: 'Ignore' }));
    open.transport.on('/a', () => answer as Error);
    expect(await verdict(open)).toBeUndefined();
    expect(open.observations.map((each) => each.outcome)).toEqual(['failed-open']);
  });

  it('names a service by its name where it cannot be reached', async () => {
    const clientConfig = { service: { name: 'hook', namespace: 'ns', path: '/x' } };
    expect((await verdict(await scene(webhook('a', { clientConfig }))))?.message).toBe(
      'Internal error occurred: failed calling webhook "a.example.com": failed to call webhook: Post "https://hook.ns.svc:443/x?timeout=10s": service "hook" not found',
    );
    expect((await verdict(await scene(webhook('a', { clientConfig: {} }))))?.message).toBe(
      'Internal error occurred: failed calling webhook "a.example.com": could not get REST client: webhook configuration must have either service or URL',
    );
  });

  it('asks all at once and answers with the first refusal in order', async () => {
    const made = await scene(webhook('a'), webhook('b'), webhook('c'));
    let open = (): void => undefined;
    const all = new Promise<void>((resolve) => {
      open = resolve;
    });
    // None answers before all were asked.
    const answered = (fields: Record<string, unknown>) => async () => {
      if (made.transport.calls.length === 3) open();
      await all;
      return fields;
    };
    made.transport.on('/a', answered({ allowed: true }));
    made.transport.on('/b', answered({ allowed: false, status: { message: 'b' } }));
    made.transport.on('/c', answered({ allowed: false, status: { message: 'c' } }));
    expect((await verdict(made))?.message).toBe('admission webhook "b.example.com" denied the request: b');
  });

  it('collects warnings, each once and not without end', async () => {
    const made = await scene(webhook('a'), webhook('b'));
    const long = Array.from({ length: 40 }, (_, index) => `${index}${'x'.repeat(300)}`);
    made.transport.on('/a', () => ({ allowed: true, warnings: ['one', 'one', '', 'two'] }));
    made.transport.on('/b', () => ({ allowed: false, warnings: long }));
    const context = userContext();
    await verdict(made, configMaps, object('c'), { context });
    expect(context.warnings.slice(0, 2)).toEqual(['one', 'two']);
    expect(context.warnings.join('').length).toBeLessThan(4096 + 256);
    expect(context.warnings.at(-1)?.length).toBe(256);
  });

  it('says 504 when the client is gone', async () => {
    const abort = new AbortController();
    const made = await scene(webhook('a', { failurePolicy: 'Ignore' }));
    made.transport.on('/a', () => {
      abort.abort();
      return new TransportError('context canceled');
    });
    const error = await verdict(made, configMaps, object('c'), { context: userContext({ signal: abort.signal }) });
    expect([error?.code, error?.message]).toEqual([504, 'Timeout: request did not complete within requested timeout']);
  });
});

describe('ValidatingWebhooks: dry run', () => {
  it.each([
    ['None', undefined],
    ['NoneOnDryRun', undefined],
    ['Some', 'admission webhook "a.example.com" does not support dry run'],
    ['Unknown', 'admission webhook "a.example.com" does not support dry run'],
  ])('side effects %s', async (sideEffects, message) => {
    // The policy is no excuse: nothing failed, the request is impossible.
    const made = await scene(webhook('a', { sideEffects, failurePolicy: 'Ignore' }));
    made.transport.on('/a', () => ({ allowed: true }));
    const error = await verdict(made, configMaps, object('c'), { context: userContext({ dryRun: true }) });
    expect(error?.message).toBe(message);
    expect(error?.code).toBe(message === undefined ? undefined : 400);
    expect(await verdict(made)).toBeUndefined();
  });
});

describe('ValidatingWebhooks: selectors', () => {
  const asked = async (fields: Partial<Webhook>, ...request: Request): Promise<boolean> => {
    const made = await scene(webhook('a', fields));
    made.transport.on('/a', () => ({ allowed: true }));
    const error = await verdict(made, ...request);
    if (error) throw error;
    return made.transport.calls.length === 1;
  };
  const team = { namespaceSelector: { matchLabels: { team: 'a' } } };
  const named = (name: string, labels?: Record<string, string>): KubeObject => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name, ...(labels ? { labels } : {}) },
  });

  it.each<[string, Partial<Webhook>, Parameters<typeof asked>[1], KubeObject | undefined, object, boolean]>([
    ['a namespace with the label', team, configMaps, object('c'), {}, true],
    ['a namespace without it', team, configMaps, object('c', {}, 'other'), {}, false],
    ['a cluster-scoped object', team, nodes, object('n'), {}, true],
    ['a new namespace, by its own labels', team, namespaces, named('new', { team: 'a' }), {}, true],
    ['a new namespace without them', team, namespaces, named('new'), {}, false],
    ['an update that adds them', team, namespaces, named('other', { team: 'a' }), { operation: 'UPDATE' }, true],
    ['deleting one, as stored', team, namespaces, undefined, { operation: 'DELETE', oldObject: named('ns') }, true],
    ['an empty selector', { namespaceSelector: {} }, configMaps, object('c', {}, 'lost'), {}, true],
  ])('namespaceSelector: %s', async (_, fields, definition, subject, more, expected) => {
    expect(await asked(fields, definition, subject, more)).toBe(expected);
  });

  it('answers 404 for a namespace that is not there', async () => {
    await expect(asked(team, configMaps, object('c', {}, 'lost'))).rejects.toMatchObject({
      code: 404,
      message: 'namespaces "lost" not found',
    });
  });

  it.each<[string, KubeObject | undefined, KubeObject | undefined, boolean]>([
    ['the object has it', object('c', { app: 'x' }), undefined, true],
    ['it has not', object('c', { app: 'y' }), undefined, false],
    ['it had', object('c'), object('c', { app: 'x' }), true],
    ['the deleted one has', undefined, object('c', { app: 'x' }), true],
    ['neither', object('c'), object('c'), false],
  ])('objectSelector: %s', async (_, subject, oldObject, expected) => {
    const operation = subject ? (oldObject ? 'UPDATE' : 'CREATE') : 'DELETE';
    const fields = { objectSelector: { matchLabels: { app: 'x' } } };
    expect(await asked(fields, configMaps, subject, { operation, ...(oldObject ? { oldObject } : {}) })).toBe(expected);
  });

  it('fails the requests that a broken selector would decide on', async () => {
    const broken = { matchExpressions: [{ key: 'a', operator: 'Huh' }] };
    await expect(asked({ namespaceSelector: broken }, configMaps, object('c'))).rejects.toMatchObject({ code: 500 });
    await expect(asked({ objectSelector: broken }, configMaps, object('c'))).rejects.toMatchObject({ code: 500 });
    expect(await asked({ namespaceSelector: broken }, nodes, object('n'))).toBe(true);
  });
});
