import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Anything } from '../support/api.ts';
import { Cluster } from '../support/cluster.ts';
import { itSince, type Kubectl } from '../support/kubectl.ts';
import { configMap, deployment, simpleCrd } from './manifests.ts';

/** `kubectl apply --server-side`: who owns which field, what that refuses, and what it lets go. */

let cluster: Cluster;
let kubectl: Kubectl;
let namespace: string;

beforeAll(async () => {
  cluster = await Cluster.start();
  ({ kubectl, namespace } = await cluster.namespace());
});
afterAll(() => cluster.close());

const stdin = (manifest: unknown): { stdin: string } => ({ stdin: JSON.stringify(manifest) });
const SERVER_SIDE = ['apply', '--server-side', '-f', '-'];

/** What kubectl advises after a conflict. */
const ADVICE = `
Please review the fields above--they currently have other managers. Here
are the ways you can resolve this warning:
* If you intend to manage all of these fields, please re-run the apply
  command with the \`--force-conflicts\` flag.
* If you do not intend to manage all of the fields, please edit your
  manifest to remove references to the fields that should keep their
  current managers.
* You may co-own fields by updating your manifest to match the existing
  value; in this case, you'll become the manager if the other manager(s)
  stop managing the field (remove it from their configuration).
See https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts
`;

interface Manager {
  readonly manager: string;
  readonly operation: string;
  readonly apiVersion: string;
  readonly subresource?: string;
  readonly fieldsV1: Anything;
}

async function managers(kind: string, name: string): Promise<Manager[]> {
  const { metadata } = await kubectl.json(['get', kind, name, '--show-managed-fields']);
  return metadata.managedFields ?? [];
}

async function managerNames(kind: string, name: string): Promise<string[]> {
  return (await managers(kind, name)).map(({ manager, operation }) => `${manager} ${operation}`).sort();
}

describe('server-side apply', () => {
  itSince(28, 'creates, changes, and takes out what its manager no longer wants', async () => {
    expect(await kubectl.apply(configMap('owned', { a: '1', b: '2' }), '--server-side')).toBe(
      'configmap/owned serverside-applied\n',
    );
    expect(await managers('configmap', 'owned')).toMatchObject([
      {
        manager: 'kubectl',
        operation: 'Apply',
        apiVersion: 'v1',
        fieldsType: 'FieldsV1',
        fieldsV1: { 'f:data': { 'f:a': {}, 'f:b': {} } },
      },
    ]);
    const before = await kubectl.json('get configmap owned');
    expect(before.metadata.managedFields).toBeUndefined();
    expect(before.metadata.annotations).toBeUndefined();
    // The same again is no write at all.
    await kubectl.apply(configMap('owned', { a: '1', b: '2' }), '--server-side');
    expect((await kubectl.json('get configmap owned')).metadata.resourceVersion).toBe(before.metadata.resourceVersion);

    await kubectl.apply(configMap('owned', { a: 'one' }), '--server-side');
    expect((await kubectl.json('get configmap owned')).data).toEqual({ a: 'one' });
    expect((await managers('configmap', 'owned'))[0]?.fieldsV1).toEqual({ 'f:data': { 'f:a': {} } });
  });

  itSince(28, 'refuses to overwrite what another has set, by the name of the other, until forced', async () => {
    await kubectl.apply(configMap('contested', { a: '1', b: '2' }), '--server-side');
    await kubectl.ok('patch configmap contested --type merge -p {"data":{"a":"patched"}}');
    const one = await kubectl.run(SERVER_SIDE, stdin(configMap('contested', { a: 'mine', b: '2' })));
    expect(one).toEqual({
      code: 1,
      stdout: '',
      stderr: `error: Apply failed with 1 conflict: conflict with "kubectl-patch" using v1: .data.a${ADVICE}`,
    });

    const other = await kubectl.run(
      [...SERVER_SIDE, '--field-manager', 'other'],
      stdin(configMap('contested', { a: 'x', b: 'y' })),
    );
    expect(other.stderr).toBe(
      `error: Apply failed with 2 conflicts: conflicts with "kubectl":\n- .data.b\nconflicts with "kubectl-patch" using v1:\n- .data.a${ADVICE}`,
    );
    expect(other.code).toBe(1);

    await kubectl.ok('patch configmap contested --type merge -p {"data":{"b":"patched"}}');
    const both = await kubectl.fails(SERVER_SIDE, stdin(configMap('contested', { a: 'x', b: 'y' })));
    expect(both).toBe(
      `error: Apply failed with 2 conflicts: conflicts with "kubectl-patch" using v1:\n- .data.a\n- .data.b${ADVICE}`,
    );

    expect(
      await kubectl.apply(configMap('contested', { a: 'mine', b: 'mine' }), '--server-side', '--force-conflicts'),
    ).toBe('configmap/contested serverside-applied\n');
    expect((await kubectl.json('get configmap contested')).data).toEqual({ a: 'mine', b: 'mine' });
    // Nothing is left to the one that was overruled.
    expect(await managerNames('configmap', 'contested')).toEqual(['kubectl Apply']);
  });

  itSince(28, 'shares a field that two managers set alike, and lets it go with the last of them', async () => {
    const apply = (manager: string, data: Record<string, string>) =>
      kubectl.apply(configMap('shared', data), '--server-side', '--field-manager', manager);
    await apply('one', { both: 'x', one: '1' });
    await apply('two', { both: 'x', two: '2' });
    expect(await managerNames('configmap', 'shared')).toEqual(['one Apply', 'two Apply']);
    const conflict = await kubectl.fails(
      [...SERVER_SIDE, '--field-manager', 'two'],
      stdin(configMap('shared', { both: 'y', two: '2' })),
    );
    expect(conflict).toContain('Apply failed with 1 conflict: conflict with "one": .data.both');
    await apply('one', { one: '1' });
    expect((await kubectl.json('get configmap shared')).data).toEqual({ both: 'x', one: '1', two: '2' });
    await apply('two', { both: 'y' });
    expect((await kubectl.json('get configmap shared')).data).toEqual({ both: 'y', one: '1' });
    await apply('two', {});
    expect((await kubectl.json('get configmap shared')).data).toEqual({ one: '1' });
  });

  itSince(28, 'merges lists by their keys between managers', async () => {
    await kubectl.apply(deployment('team'), '--server-side');
    const addition = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'team' },
      spec: {
        template: {
          spec: {
            containers: [
              { name: 'main', env: [{ name: 'Z', value: 'z' }] },
              { name: 'sidecar', image: 'sidecar:1' },
            ],
          },
        },
      },
    };
    await kubectl.apply(addition, '--server-side', '--field-manager', 'injector');
    const { spec } = (await kubectl.json('get deployment team')).spec.template;
    expect(spec.containers.map(({ name }: { name: string }) => name)).toEqual(['main', 'sidecar']);
    expect(spec.containers[0].env.map(({ name }: { name: string }) => name)).toEqual(['A', 'B', 'Z']);
    const injected = (await managers('deployment', 'team')).find(({ manager }) => manager === 'injector');
    expect(injected?.fieldsV1).toEqual({
      'f:spec': {
        'f:template': {
          'f:spec': {
            'f:containers': {
              'k:{"name":"main"}': {
                '.': {},
                'f:env': { 'k:{"name":"Z"}': { '.': {}, 'f:name': {}, 'f:value': {} } },
                'f:name': {},
              },
              'k:{"name":"sidecar"}': { '.': {}, 'f:image': {}, 'f:name': {} },
            },
          },
        },
      },
    });
    expect(
      await kubectl.fails(
        [...SERVER_SIDE, '--field-manager', 'injector'],
        stdin({
          ...addition,
          spec: { template: { spec: { containers: [{ name: 'main', image: 'evil' }] } } },
        }),
      ),
    ).toContain(
      'Apply failed with 1 conflict: conflict with "kubectl": .spec.template.spec.containers[name="main"].image',
    );
    // The injector leaves: so does all that only it wanted.
    await kubectl.apply({ ...addition, spec: undefined }, '--server-side', '--field-manager', 'injector');
    const after = (await kubectl.json('get deployment team')).spec.template.spec.containers;
    expect(after).toHaveLength(1);
    expect(after[0].env.map(({ name }: { name: string }) => name)).toEqual(['A', 'B']);
  });

  itSince(28, 'takes over from client-side apply, so that what leaves the manifest leaves the object', async () => {
    await kubectl.apply(configMap('migrating', { a: '1', b: '2' }));
    await kubectl.apply(configMap('migrating', { a: '1' }), '--server-side');
    const { data, metadata } = await kubectl.json('get configmap migrating --show-managed-fields');
    expect(data).toEqual({ a: '1' });
    expect(metadata.managedFields.map(({ manager, operation }: Manager) => [manager, operation])).toEqual([
      ['kubectl-last-applied', 'Apply'],
      ['kubectl', 'Apply'],
    ]);
    // And back again: the annotation was kept up, so client-side apply still knows what it owned.
    expect(await kubectl.apply(configMap('migrating', { c: '3' }))).toBe('configmap/migrating configured\n');
    expect((await kubectl.json('get configmap migrating')).data).toEqual({ c: '3' });
  });

  it('applies custom resources as their schema says', async () => {
    await kubectl.apply(simpleCrd('devices', 'Device'));
    await kubectl.ok('wait --for condition=Established crd/devices.test.example.com');
    const device = (spec: object): object => ({
      apiVersion: 'test.example.com/v1',
      kind: 'Device',
      metadata: { name: 'd' },
      spec,
    });
    expect(await kubectl.apply(device({ on: true, list: ['a'] }), '--server-side')).toBe(
      'device.test.example.com/d serverside-applied\n',
    );
    expect(await kubectl.fails([...SERVER_SIDE, '--field-manager', 'two'], stdin(device({ list: ['b'] })))).toContain(
      'Apply failed with 1 conflict: conflict with "kubectl": .spec.list',
    );
    await kubectl.apply(device({ extra: 1 }), '--server-side', '--field-manager', 'two');
    await kubectl.apply(device({ on: false }), '--server-side');
    expect((await kubectl.json('get device d')).spec).toEqual({ on: false, extra: 1 });
  });

  itSince(28, 'records who wrote the status, apart from the rest', async () => {
    await kubectl.apply(deployment('statused'), '--server-side');
    const status = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'statused' },
      status: { observedGeneration: 1, replicas: 3 },
    };
    await kubectl.apply(status, '--server-side', '--subresource=status', '--field-manager', 'controller');
    expect((await kubectl.json('get deployment statused')).status).toMatchObject({ replicas: 3 });
    expect(await managers('deployment', 'statused')).toContainEqual(
      expect.objectContaining({
        manager: 'controller',
        operation: 'Apply',
        subresource: 'status',
        fieldsV1: { 'f:status': { 'f:observedGeneration': {}, 'f:replicas': {} } },
      }),
    );
    // What comes through the wrong door is not refused, and not taken.
    await kubectl.apply({ ...status, status: { replicas: 9 } }, '--server-side', '--field-manager', 'controller');
    expect((await kubectl.json('get deployment statused')).status).toMatchObject({ replicas: 3 });
  });

  itSince(28, 'refuses what its schema does not know, what has two of one key, and managed fields', async () => {
    // Kubernetes calls these mistakes an error of the server; here they are bad requests. The words are the same.
    const untyped = (complaint: string): string =>
      `failed to create typed patch object (${namespace}/refused; apps/v1, Kind=Deployment): ${complaint}\n`;
    const unknown = deployment('refused');
    unknown.spec.replica = 1;
    expect(await kubectl.fails(SERVER_SIDE, stdin(unknown))).toContain(
      untyped('.spec.replica: field not declared in schema'),
    );
    const twice = deployment('refused');
    twice.spec.template.spec.containers[0].env.push({ name: 'A', value: 'again' });
    expect(await kubectl.fails(SERVER_SIDE, stdin(twice))).toContain(
      untyped('.spec.template.spec.containers[name="main"].env: duplicate entries for key [name="A"]'),
    );
    const mistyped = deployment('refused');
    mistyped.spec.replicas = 'many';
    expect(await kubectl.fails(SERVER_SIDE, stdin(mistyped))).toContain(
      untyped('.spec.replicas: expected numeric (int or float), got string'),
    );
    const nameless = deployment('refused');
    delete nameless.spec.template.spec.containers[0].name;
    expect(await kubectl.fails(SERVER_SIDE, stdin(nameless))).toBe(
      'The Deployment "refused" is invalid: spec.template.spec.containers[0].name: Required value\n',
    );
    const managed = configMap('refused', {});
    managed.metadata.managedFields = [
      { manager: 'me', operation: 'Apply', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1: {} },
    ];
    expect(await kubectl.fails(SERVER_SIDE, stdin(managed))).toBe(
      'Error from server (BadRequest): metadata.managedFields must be nil\n',
    );
    expect(await kubectl.fails(SERVER_SIDE, stdin(configMap('Bad_Name', {})))).toContain(
      'The ConfigMap "Bad_Name" is invalid: metadata.name: Invalid value: "Bad_Name":',
    );
  });

  itSince(28, 'keeps client-side apply and others apart by name', async () => {
    await kubectl.ok('create configmap many --from-literal=a=1');
    await kubectl.ok('label configmap many tier=x');
    await kubectl.ok('annotate configmap many note=x');
    await kubectl.ok('patch configmap many -p {"data":{"b":"2"}}');
    await kubectl.ok('patch configmap many --field-manager=robot -p {"data":{"c":"3"}}');
    expect(await managerNames('configmap', 'many')).toEqual([
      'kubectl-annotate Update',
      'kubectl-create Update',
      'kubectl-label Update',
      'kubectl-patch Update',
      'robot Update',
    ]);
  });

  it('rehearses', async () => {
    expect(await kubectl.apply(configMap('rehearsed', { a: '1' }), '--server-side', '--dry-run=server')).toBe(
      'configmap/rehearsed serverside-applied (server dry run)\n',
    );
    expect(await kubectl.fails('get configmap rehearsed')).toContain('NotFound');
  });
});
