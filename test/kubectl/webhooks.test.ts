import { createServer } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  answer,
  patchFields,
  type Review,
  startWebhookServer,
  type WebhookServer,
} from '../../src/apiserver/admission/webhooks/webhook-server.fixture.ts';
import type { Anything } from '../support/api.ts';
import { Cluster } from '../support/cluster.ts';
import { itSince, type Kubectl } from '../support/kubectl.ts';
import { TestKubelet } from '../support/kubelet.ts';
import { outerAddress } from '../support/network.ts';
import { configMap } from './manifests.ts';

/** Admission webhooks, real ones over TLS, as a user of kubectl gets to know them. */

let cluster: Cluster;
let kubectl: Kubectl;
let namespace: string;
let server: WebhookServer;
/** What the webhook at each path answers; none: it never answers. */
const answers = new Map<string, (review: Review) => Record<string, unknown>>();

beforeAll(async () => {
  cluster = await Cluster.start();
  server = await startWebhookServer(
    (review, response, request) => {
      const respond = answers.get(new URL(request.url ?? '', 'https://x').pathname);
      if (respond) answer(review, response, respond(review));
    },
    ['localhost', 'hook.hooks.svc'],
    '0.0.0.0',
  );
});
afterAll(async () => {
  await server.close();
  await cluster.close();
});
beforeEach(async () => {
  ({ kubectl, namespace } = await cluster.namespace('hooked'));
  await kubectl.ok(`label namespace ${namespace} hooked=${namespace}`);
  answers.clear();
  server.reviews.length = 0;
});
afterEach(async () => {
  await kubectl.ok('delete validatingwebhookconfigurations,mutatingwebhookconfigurations --all');
});

const stdin = (manifest: unknown): { stdin: string } => ({ stdin: JSON.stringify(manifest) });
const requests = (): Anything[] => server.reviews.map(({ request }) => request);

const CONFIG_MAPS = {
  apiGroups: [''],
  apiVersions: ['v1'],
  resources: ['configmaps'],
  operations: ['CREATE', 'UPDATE'],
};

/** A webhook that looks at the config maps of the test's namespace. */
function webhook(path: string, more: object = {}): Anything {
  return {
    name: `${path}.example.com`,
    clientConfig: {
      url: `https://127.0.0.1:${server.port}/${path}`,
      caBundle: Buffer.from(server.caPem).toString('base64'),
    },
    rules: [CONFIG_MAPS],
    namespaceSelector: { matchLabels: { hooked: namespace } },
    sideEffects: 'None',
    admissionReviewVersions: ['v1'],
    ...more,
  };
}

/** Registers webhooks, and waits until they are in force: kube-apiserver looks at its configurations now and then. */
async function register(kind: 'Validating' | 'Mutating', ...webhooks: Anything[]): Promise<void> {
  const marker = `marker-${++markers}`;
  const rules = [{ ...CONFIG_MAPS, resources: ['secrets'] }];
  await kubectl.apply({
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: `${kind}WebhookConfiguration`,
    metadata: { name: 'test' },
    webhooks: [...webhooks, webhook(marker, { rules })],
  });
  answers.set(`/${marker}`, () => ({ allowed: false }));
  await expect
    .poll(
      () => kubectl.run(['create', 'secret', 'generic', 'marker', '--dry-run=server']).then(({ stderr }) => stderr),
      {
        timeout: 20_000,
      },
    )
    .toContain(marker);
  server.reviews.length = 0;
}

let markers = 0;

describe('a webhook that denies', () => {
  it('is quoted, with its name', async () => {
    answers.set('/deny', () => ({ allowed: false, status: { message: 'not on my watch' } }));
    await register('Validating', webhook('deny'));
    expect(await kubectl.run(['create', '-f', '-'], stdin(configMap('denied', {})))).toEqual({
      code: 1,
      stdout: '',
      stderr:
        'Error from server: error when creating "STDIN": admission webhook "deny.example.com" denied the request: not on my watch\n',
    });
    expect(await kubectl.fails('get configmap denied')).toContain('NotFound');
    expect(requests()).toMatchObject([
      {
        kind: { group: '', version: 'v1', kind: 'ConfigMap' },
        resource: { group: '', version: 'v1', resource: 'configmaps' },
        requestKind: { group: '', version: 'v1', kind: 'ConfigMap' },
        name: 'denied',
        namespace,
        operation: 'CREATE',
        userInfo: { groups: expect.arrayContaining(['system:masters']) },
        object: { metadata: { name: 'denied' } },
        oldObject: null,
        dryRun: false,
        options: { kind: 'CreateOptions', apiVersion: 'meta.k8s.io/v1' },
      },
    ]);
  });

  it('may say why, with a code and a reason, or nothing at all', async () => {
    await register('Validating', webhook('deny'));
    const denied = (status: object): Promise<string> => {
      answers.set('/deny', () => ({ allowed: false, status }));
      return kubectl.fails(['create', '-f', '-'], stdin(configMap('denied', {})));
    };
    expect(await denied({ code: 403, reason: 'Forbidden', message: 'no' })).toBe(
      'Error from server (Forbidden): error when creating "STDIN": admission webhook "deny.example.com" denied the request: no\n',
    );
    expect(await denied({ reason: 'TooManyCooks' })).toBe(
      'Error from server (TooManyCooks): error when creating "STDIN": admission webhook "deny.example.com" denied the request: TooManyCooks\n',
    );
    expect(await denied({})).toBe(
      'Error from server: error when creating "STDIN": admission webhook "deny.example.com" denied the request without explanation\n',
    );
  });

  it('is asked about changes and deletions where its rules say so, and sees both sides', async () => {
    await kubectl.ok('create configmap kept --from-literal=a=1');
    answers.set('/deny', ({ request }) => ({
      allowed: request['operation'] !== 'DELETE',
      status: { message: 'stays' },
    }));
    await register('Validating', webhook('deny', { rules: [{ ...CONFIG_MAPS, operations: ['UPDATE', 'DELETE'] }] }));
    await kubectl.ok(['patch', 'configmap', 'kept', '-p', '{"data":{"a":"2"}}']);
    expect(await kubectl.fails('delete configmap kept')).toBe(
      'Error from server: admission webhook "deny.example.com" denied the request: stays\n',
    );
    expect(requests().map(({ operation, object, oldObject }) => [operation, object?.data, oldObject?.data])).toEqual([
      ['UPDATE', { a: '2' }, { a: '1' }],
      ['DELETE', undefined, { a: '2' }],
    ]);
  });
});

describe('a webhook that warns', () => {
  it('is heard by the user', async () => {
    answers.set('/warn', () => ({ allowed: true, warnings: ['mind the gap', 'and the "step"'] }));
    await register('Validating', webhook('warn'));
    expect(await kubectl.run(['create', '-f', '-'], stdin(configMap('warned', {})))).toEqual({
      code: 0,
      stdout: 'configmap/warned created\n',
      stderr: 'Warning: mind the gap\nWarning: and the "step"\n',
    });
  });
});

describe('a webhook that changes', () => {
  itSince(28, 'changes what is created and what is updated', async () => {
    answers.set('/mutate', () =>
      patchFields([
        { op: 'add', path: '/metadata/labels', value: { injected: 'yes' } },
        { op: 'add', path: '/data', value: { by: 'webhook' } },
      ]),
    );
    await register('Mutating', webhook('mutate'));
    await kubectl.ok(['create', '-f', '-'], stdin(configMap('mutated', { a: '1' })));
    const { data, metadata } = await kubectl.json('get configmap mutated --show-managed-fields');
    expect(data).toEqual({ by: 'webhook' });
    expect(metadata.labels).toEqual({ injected: 'yes' });
    // What the user sent is the user's; what a webhook adds is nobody's.
    expect(metadata.managedFields).toMatchObject([
      { manager: 'kubectl-create', fieldsV1: { 'f:data': { 'f:a': {} } } },
    ]);
  });

  it('is followed by those that validate, which see its changes', async () => {
    answers.set('/mutate', () => patchFields([{ op: 'add', path: '/data', value: { by: 'webhook' } }]));
    answers.set('/validate', () => ({ allowed: false, status: { message: 'seen' } }));
    await register('Mutating', webhook('mutate'));
    await kubectl.apply({
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name: 'after' },
      webhooks: [webhook('validate')],
    });
    await expect
      .poll(() =>
        kubectl.run(['create', '--dry-run=server', '-f', '-'], stdin(configMap('x', {}))).then(({ stderr }) => stderr),
      )
      .toContain('denied the request: seen');
    expect(requests().at(-1).object.data).toEqual({ by: 'webhook' });
  });

  it('must send a patch that fits', async () => {
    answers.set('/mutate', () => patchFields([{ op: 'remove', path: '/nothing' }]));
    await register('Mutating', webhook('mutate'));
    expect(await kubectl.fails(['create', '-f', '-'], stdin(configMap('unfit', {})))).toContain(
      'Error from server (InternalError): error when creating "STDIN": Internal error occurred: ',
    );
    answers.set('/mutate', () => patchFields([{ op: 'add', path: '/data', value: { 'not a key': 'x' } }]));
    expect(await kubectl.fails(['create', '-f', '-'], stdin(configMap('unfit', {})))).toContain(
      'The ConfigMap "unfit" is invalid: data[not a key]: Invalid value: "not a key": a valid config key must consist of',
    );
  });

  it('is asked again after others, where it wants to be', async () => {
    const seen: string[] = [];
    const note = (name: string, fields: Record<string, unknown>) => (review: Review) => {
      seen.push(`${name}:${Object.keys((review.request as Anything).object.data ?? {}).join('+')}`);
      return fields;
    };
    answers.set('/first', note('first', { allowed: true }));
    answers.set('/second', note('second', patchFields([{ op: 'add', path: '/data', value: { b: '2' } }])));
    await register('Mutating', webhook('first', { reinvocationPolicy: 'IfNeeded' }), webhook('second'));
    seen.length = 0;
    await kubectl.ok(['create', '-f', '-'], stdin(configMap('again', { a: '1' })));
    expect(seen).toEqual(['first:a', 'second:a', 'first:b']);
  });
});

describe('a webhook that does not answer', () => {
  it('fails the request after its time, or is passed over', async () => {
    await register('Validating', webhook('slow', { timeoutSeconds: 1 }));
    expect(await kubectl.fails(['create', '-f', '-'], stdin(configMap('slow', {})))).toBe(
      `Error from server (InternalError): error when creating "STDIN": Internal error occurred: failed calling webhook "slow.example.com": failed to call webhook: Post "https://127.0.0.1:${server.port}/slow?timeout=1s": context deadline exceeded\n`,
    );
    await register('Validating', webhook('slow', { timeoutSeconds: 1, failurePolicy: 'Ignore' }));
    expect(await kubectl.ok(['create', '-f', '-'], stdin(configMap('slow', {})))).toBe('configmap/slow created\n');
  });

  it('fails the request when nobody is there, or is passed over', async () => {
    const closed = createServer();
    await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve));
    const { port } = closed.address() as { port: number };
    await new Promise((resolve) => closed.close(resolve));
    const nobody = { clientConfig: { url: `https://127.0.0.1:${port}/x` } };
    await register('Validating', webhook('absent', nobody));
    expect(await kubectl.fails(['create', '-f', '-'], stdin(configMap('closed', {})))).toBe(
      `Error from server (InternalError): error when creating "STDIN": Internal error occurred: failed calling webhook "absent.example.com": failed to call webhook: Post "https://127.0.0.1:${port}/x?timeout=10s": dial tcp 127.0.0.1:${port}: connect: connection refused\n`,
    );
    await register('Validating', webhook('absent', { ...nobody, failurePolicy: 'Ignore' }));
    expect(await kubectl.ok(['create', '-f', '-'], stdin(configMap('closed', {})))).toBe('configmap/closed created\n');
  });

  it('fails the request when it is not who it says', async () => {
    answers.set('/any', () => ({ allowed: true }));
    await register('Validating', webhook('any', { clientConfig: { url: `https://127.0.0.1:${server.port}/any` } }));
    expect(await kubectl.fails(['create', '-f', '-'], stdin(configMap('untrusted', {})))).toContain(
      `failed calling webhook "any.example.com": failed to call webhook: Post "https://127.0.0.1:${server.port}/any?timeout=10s": tls: failed to verify certificate: x509: certificate signed by unknown authority\n`,
    );
  });
});

describe('a webhook is asked only', () => {
  it('about objects that its conditions, its object selector and its namespace selector let through', async () => {
    for (const path of ['condition', 'objects', 'elsewhere']) {
      answers.set(`/${path}`, () => ({ allowed: false, status: { message: path } }));
    }
    await register(
      'Validating',
      webhook('condition', {
        matchConditions: [
          { name: 'named', expression: 'object.metadata.name.startsWith("c")' },
          { name: 'not-nodes', expression: '!("system:nodes" in request.userInfo.groups)' },
        ],
      }),
      webhook('objects', { objectSelector: { matchExpressions: [{ key: 'strict', operator: 'Exists' }] } }),
      webhook('elsewhere', { namespaceSelector: { matchLabels: { hooked: 'nowhere' } } }),
    );
    expect(await kubectl.ok(['create', '-f', '-'], stdin(configMap('plain', {})))).toBe('configmap/plain created\n');
    expect(await kubectl.fails(['create', '-f', '-'], stdin(configMap('c1', {})))).toContain('request: condition\n');
    expect(await kubectl.fails(['create', '-f', '-'], stdin(configMap('strict', {}, { strict: '' })))).toContain(
      'request: objects\n',
    );
    expect(requests().map(({ name }) => name)).toEqual(['c1', 'strict']);
  });

  it('with conditions that make sense', async () => {
    const configuration = (expression: string): Anything => ({
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name: 'senseless' },
      webhooks: [webhook('x', { matchConditions: [{ name: 'c', expression }] })],
    });
    expect(await kubectl.fails(['create', '-f', '-'], stdin(configuration('object.x +')))).toContain(
      'webhooks[0].matchConditions[0].expression: Invalid value: "object.x +": compilation failed: ERROR: <input>:1:11: Syntax error: ',
    );
    expect(await kubectl.fails(['create', '-f', '-'], stdin(configuration('1')))).toBe(
      'The ValidatingWebhookConfiguration "senseless" is invalid: webhooks[0].matchConditions[0].expression: Invalid value: "1": must evaluate to bool but got int\n',
    );
  });

  it('in a rehearsal if it leaves no traces', async () => {
    answers.set('/clean', () => ({ allowed: true }));
    await register('Validating', webhook('clean', { sideEffects: 'NoneOnDryRun' }));
    await kubectl.ok(['create', '--dry-run=server', '-f', '-'], stdin(configMap('dry', {})));
    expect(requests().map(({ dryRun, options }) => [dryRun, options.dryRun])).toEqual([[true, ['All']]]);
  });
});

describe('a webhook on evictions', () => {
  it('can put a drain off, with a code that kubectl waits for', async () => {
    let isAllowed = false;
    answers.set('/evict', () =>
      isAllowed
        ? { allowed: true }
        : { allowed: false, status: { code: 429, reason: 'TooManyRequests', message: 'moving house' } },
    );
    const rule = { apiGroups: [''], apiVersions: ['v1'], resources: ['pods/eviction'], operations: ['CREATE'] };
    await register('Validating', webhook('evict', { rules: [rule] }));
    const node = `node-${namespace}`;
    await kubectl.apply({ apiVersion: 'v1', kind: 'Node', metadata: { name: node } });
    await cluster.create(`/api/v1/namespaces/${namespace}/pods`, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'settled' },
      spec: { nodeName: node, containers: [{ name: 'main', image: 'main' }] },
    });
    const drain = kubectl.start(['drain', node, '--force']);
    await expect
      .poll(drain.output, { timeout: 20_000 })
      .toContain(
        `error when evicting pods/"settled" -n "${namespace}" (will retry after 5s): admission webhook "evict.example.com" denied the request: moving house\n`,
      );
    expect(requests()[0]).toMatchObject({
      kind: { group: 'policy', version: 'v1', kind: 'Eviction' },
      resource: { group: '', version: 'v1', resource: 'pods' },
      subResource: 'eviction',
      operation: 'CREATE',
      name: 'settled',
      object: { kind: 'Eviction', metadata: { name: 'settled', namespace } },
    });
    isAllowed = true;
    const kubelet = new TestKubelet(cluster, namespace);
    await kubelet.start();
    expect(await drain.ended).toBe(0);
    await kubelet.stop();
  });
});

describe('a webhook behind a service', () => {
  it('is found through its endpoints, by the name on its certificate', async () => {
    const address = outerAddress('a webhook behind a service');
    if (address === undefined) return;
    answers.set('/svc', () => ({ allowed: false, status: { message: 'through the service' } }));
    await cluster.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'hooks' } });
    await cluster.kubectl.apply({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'hook', namespace: 'hooks' },
      spec: { ports: [{ name: 'https', port: 8443, targetPort: server.port }] },
    });
    const service = {
      clientConfig: {
        ...webhook('svc').clientConfig,
        url: undefined,
        service: { name: 'hook', namespace: 'hooks', path: '/svc', port: 8443 },
      },
    };
    await register('Validating', webhook('svc', service));
    expect(await kubectl.fails(['create', '-f', '-'], stdin(configMap('early', {})))).toContain(
      'failed calling webhook "svc.example.com": failed to call webhook: Post "https://hook.hooks.svc:8443/svc?timeout=10s": ',
    );
    const ports = [{ name: 'https', port: server.port }];
    await cluster.create('/api/v1/namespaces/hooks/endpoints', {
      apiVersion: 'v1',
      kind: 'Endpoints',
      metadata: { name: 'hook' },
      subsets: [{ addresses: [{ ip: address }], ports }],
    });
    // Kubernetes looks at slices instead, where it has them.
    await cluster.api.request('POST', '/apis/discovery.k8s.io/v1/namespaces/hooks/endpointslices', {
      body: {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: { name: 'hook', labels: { 'kubernetes.io/service-name': 'hook' } },
        addressType: 'IPv4',
        endpoints: [{ addresses: [address] }],
        ports,
      },
    });
    await expect
      .poll(() => kubectl.fails(['create', '-f', '-'], stdin(configMap('found', {}))), { timeout: 20_000 })
      .toContain('admission webhook "svc.example.com" denied the request: through the service\n');
  });
});
