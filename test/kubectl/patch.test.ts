import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Cluster } from '../support/cluster.ts';
import { itSince, type Kubectl } from '../support/kubectl.ts';
import { configMap, deployment, simpleCrd } from './manifests.ts';

/** `kubectl patch` in its four languages, and what becomes of patches that make no sense. */

let cluster: Cluster;
let kubectl: Kubectl;
let namespace: string;

beforeAll(async () => {
  cluster = await Cluster.start();
  ({ kubectl, namespace } = await cluster.namespace());
  await kubectl.apply(deployment('web'));
});
afterAll(() => cluster.close());

const patch = (target: string, type: string, body: unknown, ...more: string[]): string[] => [
  'patch',
  ...target.split('/'),
  '--type',
  type,
  '-p',
  typeof body === 'string' ? body : JSON.stringify(body),
  ...more,
];

describe('a strategic patch', () => {
  it('merges by key, deletes by directive, and is the default', async () => {
    const containers = [
      {
        name: 'main',
        env: [
          { name: 'A', $patch: 'delete' },
          { name: 'C', value: '3' },
        ],
      },
      { name: 'other', image: 'other:1' },
    ];
    expect(
      await kubectl.ok([
        'patch',
        'deployment',
        'web',
        '-p',
        JSON.stringify({ spec: { template: { spec: { containers } } } }),
      ]),
    ).toBe('deployment.apps/web patched\n');
    const { spec } = (await kubectl.json('get deployment web')).spec.template;
    expect(spec.containers.map(({ name }: { name: string }) => name)).toEqual(['main', 'other']);
    expect(spec.containers[0].env).toEqual([
      { name: 'C', value: '3' },
      { name: 'B', value: '2' },
    ]);

    await kubectl.ok(
      patch('deployment/web', 'strategic', {
        spec: { template: { spec: { containers: [{ $patch: 'replace' }, { name: 'only', image: 'only:1' }] } } },
      }),
    );
    const replaced = await kubectl.json('get deployment web');
    expect(replaced.spec.template.spec.containers).toMatchObject([{ name: 'only', image: 'only:1' }]);

    await kubectl.ok(
      patch('deployment/web', 'strategic', {
        spec: { strategy: { $retainKeys: ['type'], type: 'Recreate' } },
      }),
    );
    expect((await kubectl.json('get deployment web')).spec.strategy).toEqual({ type: 'Recreate' });
  });

  it('says that nothing has changed', async () => {
    await kubectl.ok(patch('deployment/web', 'strategic', { metadata: { labels: { x: 'y' } } }));
    expect(await kubectl.ok(patch('deployment/web', 'strategic', { metadata: { labels: { x: 'y' } } }))).toBe(
      'deployment.apps/web patched (no change)\n',
    );
  });

  itSince(28, 'is not for custom resources', async () => {
    await kubectl.apply(simpleCrd('boxes', 'Box'));
    await kubectl.ok('wait --for condition=Established crd/boxes.test.example.com');
    await kubectl.apply({ apiVersion: 'test.example.com/v1', kind: 'Box', metadata: { name: 'b' }, spec: { a: 1 } });
    expect(await kubectl.fails(patch('box/b', 'strategic', { spec: { a: 2 } }))).toBe(
      'error: application/strategic-merge-patch+json is not supported by test.example.com/v1, Kind=Box: the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml\n',
    );
    expect(await kubectl.ok(patch('box/b', 'merge', { spec: { a: null, b: [1] } }))).toBe(
      'box.test.example.com/b patched\n',
    );
    expect((await kubectl.json('get box b')).spec).toEqual({ b: [1] });
  });
});

describe('a merge patch', () => {
  it('sets, removes with null, and replaces lists', async () => {
    await kubectl.apply(configMap('merged', { a: '1', b: '2' }));
    expect(await kubectl.ok(patch('configmap/merged', 'merge', { data: { a: null, c: '3' } }))).toBe(
      'configmap/merged patched\n',
    );
    expect((await kubectl.json('get configmap merged')).data).toEqual({ b: '2', c: '3' });
  });

  it('honours a resourceVersion', async () => {
    expect(
      await kubectl.fails(patch('configmap/merged', 'merge', { metadata: { resourceVersion: '1' }, data: { z: 'z' } })),
    ).toBe(
      'Error from server (Conflict): Operation cannot be fulfilled on configmaps "merged": the object has been modified; please apply your changes to the latest version and try again\n',
    );
  });

  it('is refused where it leaves no such object', async () => {
    const mistyped = await kubectl.fails(patch('configmap/merged', 'merge', { data: { k: 1 } }));
    expect(mistyped).toMatch(/^The request is invalid: patch: Invalid value: "{/);
    expect(mistyped).toContain(': json: cannot unmarshal number into Go struct field ConfigMap.data of type string\n');
    expect(await kubectl.fails(patch('configmap/merged', 'merge', '{"data":'))).toBe(
      'Error from server (BadRequest): error decoding patch: unexpected end of JSON input\n',
    );
    expect(await kubectl.fails(patch('configmap/merged', 'merge', { metadata: { name: 'other' } }))).toBe(
      'Error from server (BadRequest): the name of the object (other) does not match the name on the URL (merged)\n',
    );
    expect(await kubectl.fails(patch('configmap/merged', 'merge', { metadata: { uid: 'x' } }))).toBe(
      'The ConfigMap "merged" is invalid: metadata.uid: Invalid value: "x": field is immutable\n',
    );
    expect(await kubectl.fails(patch('configmap/absent', 'merge', { data: {} }))).toBe(
      'Error from server (NotFound): configmaps "absent" not found\n',
    );
    expect(await kubectl.fails(patch('deployment/web', 'merge', { spec: { replicas: -1 } }))).toBe(
      'The Deployment "web" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0\n',
    );
  });

  it('leaves what the server keeps as it is', async () => {
    const before = await kubectl.json('get configmap merged');
    const metadata = { creationTimestamp: '2001-01-01T00:00:00Z', generation: 99, selfLink: '/x' };
    await kubectl.ok(patch('configmap/merged', 'merge', { metadata }));
    expect((await kubectl.json('get configmap merged')).metadata).toEqual(before.metadata);
    const deletion = { metadata: { deletionTimestamp: '2001-01-01T00:00:00Z' } };
    expect(await kubectl.fails(patch('configmap/merged', 'merge', deletion))).toBe(
      'The ConfigMap "merged" is invalid: metadata.deletionTimestamp: Invalid value: "2001-01-01T00:00:00Z": field is immutable\n',
    );
  });
});

describe('a JSON patch', () => {
  it('does every operation, in order', async () => {
    await kubectl.apply(configMap('operated', { a: '1', b: '2', c: '3' }));
    await kubectl.ok(
      patch('configmap/operated', 'json', [
        { op: 'test', path: '/data/a', value: '1' },
        { op: 'add', path: '/data/d~1e', value: '4' },
        { op: 'replace', path: '/data/a', value: 'one' },
        { op: 'copy', from: '/data/a', path: '/data/copy' },
        { op: 'move', from: '/data/b', path: '/data/moved' },
        { op: 'remove', path: '/data/c' },
        { op: 'remove', path: '/data/d~1e' },
      ]),
    );
    expect((await kubectl.json('get configmap operated')).data).toEqual({ a: 'one', copy: 'one', moved: '2' });
  });

  itSince(28, 'is refused whole when one operation fails', async () => {
    const cases: [unknown, string][] = [
      [
        [
          { op: 'add', path: '/data/x', value: 'x' },
          { op: 'test', path: '/data/a', value: 'two' },
        ],
        'The request is invalid: the server rejected our request due to an error in our request',
      ],
      [
        [{ op: 'remove', path: '/data/none' }],
        'The request is invalid: the server rejected our request due to an error in our request',
      ],
      [
        [{ op: 'replace', path: '/none/x', value: 1 }],
        'The request is invalid: the server rejected our request due to an error in our request',
      ],
      [
        [{ op: 'twist', path: '/data/a' }],
        'The request is invalid: the server rejected our request due to an error in our request',
      ],
      [
        { op: 'remove', path: '/data/a' },
        'Error from server (BadRequest): error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp',
      ],
    ];
    for (const [body, message] of cases) {
      expect(await kubectl.fails(patch('configmap/operated', 'json', body))).toBe(`${message}\n`);
    }
    expect((await kubectl.json('get configmap operated')).data).toEqual({ a: 'one', copy: 'one', moved: '2' });
  });
});

describe('a patch of a subresource', () => {
  itSince(28, 'reaches the status, and only it', async () => {
    expect(
      await kubectl.ok(
        patch('deployment/web', 'merge', { status: { replicas: 7 }, spec: { replicas: 7 } }, '--subresource=status'),
      ),
    ).toBe('deployment.apps/web patched\n');
    const { spec, status, metadata } = await kubectl.json('get deployment web');
    expect([spec.replicas, status.replicas]).toEqual([1, 7]);
    await kubectl.ok(patch('deployment/web', 'merge', { status: { replicas: 9 } }));
    const after = await kubectl.json('get deployment web');
    expect(after.status.replicas).toBe(7);
    expect(after.metadata.generation).toBe(metadata.generation);
  });

  itSince(28, 'reaches the scale', async () => {
    expect(await kubectl.ok(patch('deployment/web', 'merge', { spec: { replicas: 4 } }, '--subresource=scale'))).toBe(
      'scale.autoscaling/web patched\n',
    );
    expect((await kubectl.json('get deployment web')).spec.replicas).toBe(4);
    const scale = await kubectl.json('get deployment web --subresource=scale');
    expect(scale).toMatchObject({
      kind: 'Scale',
      apiVersion: 'autoscaling/v1',
      metadata: { name: 'web', namespace },
      spec: { replicas: 4 },
      status: { replicas: 7, selector: 'app=web' },
    });
  });

  itSince(28, 'is refused where there is none', async () => {
    expect(await kubectl.fails(patch('configmap/merged', 'merge', { data: {} }, '--subresource=status'))).toContain(
      'Error from server (NotFound): the server could not find the requested resource',
    );
  });
});

describe('rehearsals and local patches', () => {
  it('change nothing', async () => {
    const before = await kubectl.json('get configmap merged');
    expect(
      await kubectl.ok(
        patch('configmap/merged', 'merge', { data: { new: 'x' } }, '--dry-run=server', '-o', 'jsonpath={.data.new}'),
      ),
    ).toBe('x');
    expect(await kubectl.ok(patch('configmap/merged', 'merge', { data: { new: 'x' } }, '--dry-run=client'))).toBe(
      'configmap/merged patched\n',
    );
    expect(await kubectl.json('get configmap merged')).toEqual(before);
  });
});
