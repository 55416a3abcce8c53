import {
  ApiException,
  AppsV1Api,
  AuthenticationV1Api,
  AuthorizationV1Api,
  CoordinationV1Api,
  CoreV1Api,
  CustomObjectsApi,
  type Informer,
  KubeConfig,
  type KubernetesObject,
  KubernetesObjectApi,
  makeInformer,
  type ObjectCache,
  PatchStrategy,
  setHeaderOptions,
  type V1ConfigMap,
  V1MicroTime,
  Watch,
} from '@kubernetes/client-node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { Godwit } from '../support/godwit.ts';

/** The official JavaScript client, as a second one that knows nothing of ours: typed calls, any kind, watches, informers. */

let godwit: Godwit;
let config: KubeConfig;
let core: CoreV1Api;

beforeAll(async () => {
  godwit = await Godwit.start();
  config = new KubeConfig();
  config.loadFromFile(godwit.kubeconfig);
  core = config.makeApiClient(CoreV1Api);
});
afterAll(() => godwit.remove());

const namespace = 'default';

/** What a call is refused with. */
async function refusal(call: Promise<unknown>): Promise<{ code: number; reason?: string }> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof ApiException)) throw new Error(`expected to be refused, not ${String(error)}`);
  // Of a 401 the client keeps the code only.
  if (error.body === undefined) return { code: error.code };
  return { code: error.code, reason: (JSON.parse(error.body as string) as { reason: string }).reason };
}

describe('typed calls', () => {
  it('create, read, replace, list and delete', async () => {
    const made = await core.createNamespacedConfigMap({
      namespace,
      body: { metadata: { name: 'typed', labels: { app: 'x' } }, data: { a: '1' } },
    });
    expect(made.metadata?.creationTimestamp).toBeInstanceOf(Date);
    const read = await core.readNamespacedConfigMap({ namespace, name: 'typed' });
    expect(read).toEqual(made);
    const replaced = await core.replaceNamespacedConfigMap({
      namespace,
      name: 'typed',
      body: Object.assign(read, { data: { a: '2' } }),
    });
    expect(replaced.data).toEqual({ a: '2' });
    // With the resourceVersion that it had before.
    expect(await refusal(core.replaceNamespacedConfigMap({ namespace, name: 'typed', body: read }))).toEqual({
      code: 409,
      reason: 'Conflict',
    });
    const { items } = await core.listNamespacedConfigMap({ namespace, labelSelector: 'app=x' });
    expect(items.map((item) => item.metadata?.name)).toEqual(['typed']);
    const status = await core.deleteNamespacedConfigMap({ namespace, name: 'typed' });
    expect(status).toMatchObject({ kind: 'Status', status: 'Success', details: { name: 'typed', kind: 'configmaps' } });
    expect(await refusal(core.readNamespacedConfigMap({ namespace, name: 'typed' }))).toEqual({
      code: 404,
      reason: 'NotFound',
    });
  });

  it('refuse what is not valid', async () => {
    const body = { metadata: { name: 'Not Valid' } };
    expect(await refusal(core.createNamespacedConfigMap({ namespace, body }))).toEqual({
      code: 422,
      reason: 'Invalid',
    });
    expect(
      await refusal(core.createNamespacedConfigMap({ namespace: 'nowhere', body: { metadata: { name: 'x' } } })),
    ).toEqual({ code: 404, reason: 'NotFound' });
  });

  it.each([
    ['JsonPatch', [{ op: 'add', path: '/data', value: { b: '2' } }]],
    ['MergePatch', { data: { a: null, b: '2' } }],
    ['StrategicMergePatch', { data: { $patch: 'replace', b: '2' } }],
    ['ServerSideApply', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'patched' }, data: { b: '2' } }],
  ] as const)('patch by %s', async (strategy, body) => {
    await core.createNamespacedConfigMap({ namespace, body: { metadata: { name: 'patched' }, data: { a: '1' } } });
    const patched = await core.patchNamespacedConfigMap(
      { namespace, name: 'patched', body, fieldManager: 'client-node' },
      setHeaderOptions('Content-Type', PatchStrategy[strategy]),
    );
    expect(patched.data).toEqual(strategy === 'ServerSideApply' ? { a: '1', b: '2' } : { b: '2' });
    await core.deleteNamespacedConfigMap({ namespace, name: 'patched' });
  });

  it('page through lists', async () => {
    for (let index = 0; index < 5; index++)
      await core.createNamespacedSecret({
        namespace,
        body: { metadata: { name: `page-${index}` }, stringData: { x: 'y' } },
      });
    const names: (string | undefined)[] = [];
    let token: string | undefined;
    do {
      const page = await core.listNamespacedSecret({ namespace, limit: 2, ...(token ? { _continue: token } : {}) });
      expect(page.items.length).toBeLessThanOrEqual(2);
      names.push(...page.items.map((item) => item.metadata?.name));
      token = page.metadata?.['_continue'];
    } while (token);
    expect(names).toEqual(['page-0', 'page-1', 'page-2', 'page-3', 'page-4']);
    await core.deleteCollectionNamespacedSecret({ namespace });
    expect((await core.listNamespacedSecret({ namespace })).items).toEqual([]);
  });

  it('reach subresources', async () => {
    const apps = config.makeApiClient(AppsV1Api);
    const template = {
      metadata: { labels: { app: 'd' } },
      spec: { containers: [{ name: 'main', image: 'example.org/main:1' }] },
    };
    await apps.createNamespacedDeployment({
      namespace,
      body: { metadata: { name: 'd' }, spec: { selector: { matchLabels: { app: 'd' } }, template } },
    });
    const scaled = await apps.patchNamespacedDeploymentScale(
      { namespace, name: 'd', body: { spec: { replicas: 3 } } },
      setHeaderOptions('Content-Type', PatchStrategy.MergePatch),
    );
    expect(scaled.spec?.replicas).toBe(3);
    const withStatus = await apps.patchNamespacedDeploymentStatus(
      { namespace, name: 'd', body: { status: { observedGeneration: 2, replicas: 3 } } },
      setHeaderOptions('Content-Type', PatchStrategy.StrategicMergePatch),
    );
    expect(withStatus.status).toMatchObject({ observedGeneration: 2, replicas: 3 });
    await apps.deleteNamespacedDeployment({ namespace, name: 'd', propagationPolicy: 'Background' });
  });

  it('keep the microseconds of leases', async () => {
    const leases = config.makeApiClient(CoordinationV1Api);
    const renewTime = new V1MicroTime('2026-01-02T03:04:05.678901Z');
    const lease = await leases.createNamespacedLease({
      namespace,
      body: { metadata: { name: 'lead' }, spec: { holderIdentity: 'me', renewTime } },
    });
    expect(lease.spec?.holderIdentity).toBe('me');
    const renewed = await leases.replaceNamespacedLease({
      namespace,
      name: 'lead',
      body: Object.assign(lease, { spec: Object.assign(lease.spec ?? {}, { holderIdentity: 'you' }) }),
    });
    expect(renewed.spec?.holderIdentity).toBe('you');
  });
});

describe('who asks', () => {
  it('is known by certificate and by token', async () => {
    const reviews = config.makeApiClient(AuthenticationV1Api);
    const admin = await reviews.createSelfSubjectReview({ body: {} });
    expect(admin.status?.userInfo).toMatchObject({
      username: 'kubernetes-admin',
      groups: expect.arrayContaining(['system:masters']),
    });

    await core.createNamespacedServiceAccount({ namespace, body: { metadata: { name: 'robot' } } });
    const { status } = await core.createNamespacedServiceAccountToken({
      namespace,
      name: 'robot',
      body: { spec: { audiences: [], expirationSeconds: 3600 } },
    });
    const robot = new KubeConfig();
    const cluster = config.getCurrentCluster();
    if (!cluster) throw new Error('the kubeconfig has no cluster');
    robot.loadFromClusterAndUser(cluster, { name: 'robot', token: status?.token ?? '' });
    const asRobot = await robot.makeApiClient(AuthenticationV1Api).createSelfSubjectReview({ body: {} });
    expect(asRobot.status?.userInfo?.username).toBe('system:serviceaccount:default:robot');
    expect(await refusal(robot.makeApiClient(CoreV1Api).listNamespacedConfigMap({ namespace }))).toEqual({
      code: 403,
      reason: 'Forbidden',
    });
    const access = await robot.makeApiClient(AuthorizationV1Api).createSelfSubjectAccessReview({
      body: { spec: { resourceAttributes: { verb: 'list', resource: 'configmaps', namespace } } },
    });
    expect(access.status?.allowed).toBe(false);

    const stranger = new KubeConfig();
    stranger.loadFromClusterAndUser(cluster, { name: 'stranger', token: 'not-a-token' });
    expect(await refusal(stranger.makeApiClient(CoreV1Api).listNamespace())).toEqual({ code: 401 });
  });
});

describe('any kind', () => {
  /** Spelled as this client has it: what is a keyword somewhere gets an underscore. */
  const crd = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'gadgets.example.org' },
    spec: {
      group: 'example.org',
      scope: 'Namespaced',
      names: { plural: 'gadgets', kind: 'Gadget' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: {
            openAPIV3Schema: {
              type: 'object',
              properties: { spec: { type: 'object', properties: { size: { type: 'integer', _default: 1 } } } },
            },
          },
        },
      ],
    },
  };
  type Gadget = KubernetesObject & { spec?: { size?: number } };

  it('through KubernetesObjectApi, custom resources included', async () => {
    const client = KubernetesObjectApi.makeApiClient(config);
    await client.create(crd);
    const header = { apiVersion: 'example.org/v1', kind: 'Gadget', metadata: { name: 'g', namespace } };
    // The client looks the kind up; it is served once the definition is accepted.
    const made = await eventually(() => client.create({ ...header, spec: {} } as Gadget));
    expect(made.spec).toEqual({ size: 1 });
    expect((await client.read<Gadget>(header)).metadata?.uid).toBe(made.metadata?.uid);
    const merged = await client.patch(
      { ...header, spec: { size: 2 } } as Gadget,
      undefined,
      undefined,
      undefined,
      undefined,
      PatchStrategy.MergePatch,
    );
    expect(merged.spec?.size).toBe(2);
    const applied = await client.patch(
      { ...header, spec: { size: 3 } } as Gadget,
      undefined,
      undefined,
      'me',
      true,
      PatchStrategy.ServerSideApply,
    );
    expect(applied.spec?.size).toBe(3);
    const unapplicable = client.patch(
      { ...header, spec: { size: 4 } } as Gadget,
      undefined,
      undefined,
      undefined,
      undefined,
      PatchStrategy.StrategicMergePatch,
    );
    expect(await refusal(unapplicable)).toEqual({ code: 415, reason: 'UnsupportedMediaType' });
    const replaced = await client.replace({ ...applied, spec: { size: 5 } });
    expect(replaced.spec?.size).toBe(5);
    expect((await client.list<Gadget>('example.org/v1', 'Gadget', namespace)).items).toHaveLength(1);
    const custom = config.makeApiClient(CustomObjectsApi);
    const list = (await custom.listNamespacedCustomObject({
      group: 'example.org',
      version: 'v1',
      namespace,
      plural: 'gadgets',
    })) as { items: Gadget[] };
    expect(list.items[0]?.spec?.size).toBe(5);
    await client.delete(header);
    expect((await refusal(client.read(header))).code).toBe(404);
  });
});

describe('watches', () => {
  it('tell what happens until they are ended', async () => {
    const events: string[] = [];
    let ended: unknown = 'no';
    const request = await new Watch(config).watch(
      `/api/v1/namespaces/${namespace}/configmaps`,
      { labelSelector: 'watched' },
      (type: string, object: V1ConfigMap) => void events.push(`${type} ${object.metadata?.name} ${object.data?.['a']}`),
      (error: unknown) => (ended = error),
    );
    await core.createNamespacedConfigMap({
      namespace,
      body: { metadata: { name: 'w', labels: { watched: 'yes' } }, data: { a: '1' } },
    });
    await core.patchNamespacedConfigMap(
      { namespace, name: 'w', body: { data: { a: '2' } } },
      setHeaderOptions('Content-Type', PatchStrategy.MergePatch),
    );
    await core.deleteNamespacedConfigMap({ namespace, name: 'w' });
    await eventually(() => expect(events).toEqual(['ADDED w 1', 'MODIFIED w 2', 'DELETED w 2']));
    request.abort();
    await eventually(() => expect(ended).not.toBe('no'));
  });
});

describe('informers', () => {
  const RESTART_MS = 50;
  const listed = (): Promise<string[]> =>
    core.listNamespacedConfigMap({ namespace, labelSelector: 'informed' }).then(({ items }) => items.map(stamp).sort());
  const stamp = ({ metadata }: V1ConfigMap): string => `${metadata?.name}@${metadata?.resourceVersion}`;

  function informed(): Informer<V1ConfigMap> & ObjectCache<V1ConfigMap> {
    const informer = makeInformer(
      config,
      `/api/v1/namespaces/${namespace}/configmaps`,
      () => core.listNamespacedConfigMap({ namespace, labelSelector: 'informed' }),
      'informed',
    );
    // As its documentation says: it stops at errors, and has to be started again.
    informer.on('error', () => void setTimeout(() => void informer.start(), RESTART_MS));
    return informer;
  }

  it('lose no object across a server that is killed and started again', async () => {
    const informer = informed();
    const deleted: (string | undefined)[] = [];
    informer.on('delete', ({ metadata }) => void deleted.push(metadata?.name));
    const write = (name: string, a: string): Promise<unknown> =>
      core.createNamespacedConfigMap({
        namespace,
        body: { metadata: { name, labels: { informed: 'yes' } }, data: { a } },
      });
    await write('before', '1');
    await informer.start();
    for (let round = 0; round < 3; round++) {
      await write(`round-${round}`, '1');
      await write(`gone-${round}`, '1');
      await eventually(async () => expect(informer.list().map(stamp).sort()).toEqual(await listed()));
      // The watch may not have seen this before the crash; what was acknowledged it must learn of afterwards.
      await core.deleteNamespacedConfigMap({ namespace, name: `gone-${round}` });
      await core.patchNamespacedConfigMap(
        { namespace, name: `round-${round}`, body: { data: { a: '2' } } },
        setHeaderOptions('Content-Type', PatchStrategy.MergePatch),
      );
      await godwit.kill();
      await godwit.start();
      await write(`after-${round}`, '1');
      await eventually(async () => expect(informer.list().map(stamp).sort()).toEqual(await listed()));
      expect(deleted).toContain(`gone-${round}`);
    }
    expect(informer.get('round-0', namespace)?.data).toEqual({ a: '2' });
    expect(informer.list()).toHaveLength(7);
    await informer.stop();
  });

  it('end with the server that is stopped, and go on with the next', async () => {
    const informer = informed();
    await informer.start();
    const before = await listed();
    await eventually(() => expect(informer.list().map(stamp).sort()).toEqual(before));
    expect(await godwit.terminate()).toBe(0);
    await godwit.start();
    await core.deleteCollectionNamespacedConfigMap({ namespace, labelSelector: 'informed' });
    await eventually(() => expect(informer.list()).toEqual([]));
    await informer.stop();
  });
});
