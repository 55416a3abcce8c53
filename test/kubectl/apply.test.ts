import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Cluster } from '../support/cluster.ts';
import { itSince, type Kubectl } from '../support/kubectl.ts';
import { configMap, deployment, simpleCrd } from './manifests.ts';

/** `kubectl apply` that computes its patches itself, with `diff` beside it. */

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

let cluster: Cluster;
let kubectl: Kubectl;
let namespace: string;

beforeAll(async () => {
  cluster = await Cluster.start();
  ({ kubectl, namespace } = await cluster.namespace());
});
afterAll(() => cluster.close());

const stdin = (manifest: unknown): { stdin: string } => ({ stdin: JSON.stringify(manifest) });

describe('apply', () => {
  itSince(28, 'creates, leaves alone what is as it should be, and changes what is not', async () => {
    const manifest = deployment('web');
    expect(await kubectl.apply(manifest)).toBe('deployment.apps/web created\n');
    const created = await kubectl.json('get deployment web');
    const annotation = created.metadata.annotations[LAST_APPLIED];
    expect(annotation.endsWith('\n')).toBe(true);
    expect(JSON.parse(annotation)).toEqual({
      ...manifest,
      metadata: { ...manifest.metadata, annotations: {}, namespace },
    });

    expect(await kubectl.apply(manifest)).toBe('deployment.apps/web unchanged\n');
    expect((await kubectl.json('get deployment web')).metadata.resourceVersion).toBe(created.metadata.resourceVersion);

    manifest.spec.template.spec.containers[0].image = 'main:2';
    expect(await kubectl.apply(manifest)).toBe('deployment.apps/web configured\n');
    const changed = await kubectl.json('get deployment web --show-managed-fields');
    expect(changed.spec.template.spec.containers[0].image).toBe('main:2');
    expect(changed.metadata.generation).toBe(2);
    expect(changed.metadata.managedFields).toHaveLength(1);
    expect(changed.metadata.managedFields[0]).toMatchObject({
      manager: 'kubectl-client-side-apply',
      operation: 'Update',
      apiVersion: 'apps/v1',
      fieldsType: 'FieldsV1',
    });
  });

  it('merges containers, variables and ports by their keys, and keeps what others have added', async () => {
    const manifest = deployment('merged');
    await kubectl.apply(manifest);
    // Somebody injects a sidecar, a variable and a port, and scales.
    await cluster.api.request('PATCH', `/apis/apps/v1/namespaces/${namespace}/deployments/merged`, {
      headers: { 'content-type': 'application/strategic-merge-patch+json' },
      body: {
        spec: {
          template: {
            spec: {
              containers: [
                { name: 'main', env: [{ name: 'X', value: 'x' }], ports: [{ containerPort: 9000 }] },
                { name: 'sidecar', image: 'sidecar:1' },
              ],
            },
          },
        },
      },
    });
    await kubectl.ok('scale deployment merged --replicas=5');

    delete manifest.spec.replicas;
    const main = manifest.spec.template.spec.containers[0];
    main.env = [
      { name: 'B', value: 'two' },
      { name: 'C', value: '3' },
    ];
    main.ports = [{ containerPort: 8080, name: 'http' }];
    manifest.spec.template.spec.containers.push({ name: 'second', image: 'second:1' });
    expect(await kubectl.apply(manifest)).toBe('deployment.apps/merged configured\n');

    const { spec } = await kubectl.json('get deployment merged');
    // Taken out of the manifest means taken out of the object, and the default comes back.
    expect(spec.replicas).toBe(1);
    const containers = spec.template.spec.containers;
    expect(containers.map(({ name, image }: { name: string; image: string }) => [name, image])).toEqual([
      ['main', 'main:1'],
      ['second', 'second:1'],
      ['sidecar', 'sidecar:1'],
    ]);
    expect(containers[0].env).toEqual([
      { name: 'X', value: 'x' },
      { name: 'B', value: 'two' },
      { name: 'C', value: '3' },
    ]);
    expect(containers[0].ports).toEqual([
      { containerPort: 9000, protocol: 'TCP' },
      { containerPort: 8080, name: 'http', protocol: 'TCP' },
    ]);

    manifest.spec.template.spec.containers.pop();
    await kubectl.apply(manifest);
    const after = await kubectl.json('get deployment merged');
    expect(after.spec.template.spec.containers.map(({ name }: { name: string }) => name)).toEqual(['main', 'sidecar']);
  });

  it('takes out of an object what has left its manifest, and no more', async () => {
    await kubectl.apply(configMap('shrinking', { a: '1', b: '2' }, { one: 'x', two: 'y' }));
    await kubectl.ok('patch configmap shrinking --type merge -p {"data":{"c":"3"}}');
    expect(await kubectl.apply(configMap('shrinking', { a: '1' }, { two: 'y' }))).toBe(
      'configmap/shrinking configured\n',
    );
    const { data, metadata } = await kubectl.json('get configmap shrinking');
    expect(data).toEqual({ a: '1', c: '3' });
    expect(metadata.labels).toEqual({ two: 'y' });
  });

  it('patches custom resources by merge patches, where a list is replaced whole', async () => {
    await kubectl.apply(simpleCrd('gadgets', 'Gadget'));
    await kubectl.ok('wait --for condition=Established crd/gadgets.test.example.com');
    const gadget = { apiVersion: 'test.example.com/v1', kind: 'Gadget', metadata: { name: 'g' }, spec: {} };
    expect(await kubectl.apply({ ...gadget, spec: { size: 1, colour: 'red', list: [{ name: 'a' }] } })).toBe(
      'gadget.test.example.com/g created\n',
    );
    await kubectl.ok('patch gadget g --type merge -p {"spec":{"list":[{"name":"a"},{"name":"foreign"}],"by":"other"}}');
    const changed = { ...gadget, spec: { size: 2, list: [{ name: 'a' }, { name: 'b' }] } };
    expect(await kubectl.apply(changed)).toBe('gadget.test.example.com/g configured\n');
    expect((await kubectl.json('get gadget g')).spec).toEqual({
      size: 2,
      list: [{ name: 'a' }, { name: 'b' }],
      by: 'other',
    });
    expect(await kubectl.apply(changed)).toBe('gadget.test.example.com/g unchanged\n');
  });

  it('takes directories and lists, and goes on after one that is refused', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'godwit-apply-'));
    writeFileSync(join(directory, 'a.json'), JSON.stringify(configMap('from-json', { a: '1' })));
    writeFileSync(
      join(directory, 'b.yaml'),
      'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from-yaml}\n---\n' +
        'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not-A-Name}\n---\n' +
        'apiVersion: v1\nkind: Secret\nmetadata: {name: last}\nstringData: {key: value}\n',
    );
    const result = await kubectl.run(['apply', '-f', directory]);
    expect(result.code).toBe(1);
    expect(result.stdout).toBe('configmap/from-json created\nconfigmap/from-yaml created\nsecret/last created\n');
    expect(result.stderr).toBe(
      `The ConfigMap "Not-A-Name" is invalid: metadata.name: Invalid value: "Not-A-Name": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')\n`,
    );
    expect((await kubectl.json('get secret last')).data).toEqual({ key: 'dmFsdWU=' });

    const list = { apiVersion: 'v1', kind: 'List', items: [configMap('l1', { a: '1' }), configMap('l2', { a: '1' })] };
    expect(await kubectl.apply(list)).toBe('configmap/l1 created\nconfigmap/l2 created\n');
  });

  itSince(28, 'prunes what is no longer among the manifests', async () => {
    const labels = { set: 'pruned' };
    await kubectl.apply({
      apiVersion: 'v1',
      kind: 'List',
      items: [configMap('keep', { a: '1' }, labels), configMap('drop', { a: '1' }, labels)],
    });
    // Not applied by anybody, so not to be pruned.
    await kubectl.ok('create configmap by-hand');
    await kubectl.ok('label configmap by-hand set=pruned');
    const output = await kubectl.ok(
      ['apply', '-f', '-', '--prune', '-l', 'set=pruned', '--prune-allowlist', 'core/v1/ConfigMap'],
      stdin(configMap('keep', { a: '1' }, labels)),
    );
    expect(output).toBe('configmap/keep unchanged\nconfigmap/drop pruned\n');
    expect(await kubectl.ok('get configmap -l set=pruned -o name')).toBe('configmap/by-hand\nconfigmap/keep\n');
  });

  it('says that an object was not made by apply, and takes it over', async () => {
    await kubectl.ok('create configmap made --from-literal=a=1 --from-literal=b=2');
    const result = await kubectl.run(['apply', '-f', '-'], stdin(configMap('made', { a: '1' })));
    expect(result.code).toBe(0);
    expect(result.stdout).toBe('configmap/made configured\n');
    expect(result.stderr).toBe(
      'Warning: resource configmaps/made is missing the kubectl.kubernetes.io/last-applied-configuration annotation which is required by kubectl apply. kubectl apply should only be used on resources created declaratively by either kubectl create --save-config or kubectl apply. The missing annotation will be patched automatically.\n',
    );
    expect((await kubectl.json('get configmap made')).data).toEqual({ a: '1', b: '2' });
  });

  it('warns of changes to what is being deleted', async () => {
    const manifest = configMap('going', { a: '1' });
    manifest.metadata.finalizers = ['example.com/hold'];
    await kubectl.apply(manifest);
    await kubectl.ok('delete configmap going --wait=false');
    const result = await kubectl.run(['apply', '-f', '-'], stdin({ ...manifest, data: { a: '2' } }));
    expect(result).toEqual({
      code: 0,
      stdout: 'configmap/going configured\n',
      stderr: 'Warning: Detected changes to resource going which is currently being deleted.\n',
    });
    await kubectl.ok('patch configmap going --type json -p [{"op":"remove","path":"/metadata/finalizers"}]');
  });

  itSince(28, 'refuses unknown and repeated fields, warns of them, or lets them be', async () => {
    const manifest = `apiVersion: apps/v1
kind: Deployment
metadata: {name: strict}
spec:
  replica: 2
  selector: {matchLabels: {app: strict}}
  template:
    metadata: {labels: {app: strict}}
    spec:
      containers: [{name: a, image: a, imagePullPolice: Always}]
`;
    const unknown = 'unknown field "spec.replica", unknown field "spec.template.spec.containers[0].imagePullPolice"';
    expect(await kubectl.run(['apply', '-f', '-'], { stdin: manifest })).toEqual({
      code: 1,
      stdout: '',
      stderr: `Error from server (BadRequest): error when creating "STDIN": Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: ${unknown}\n`,
    });
    expect(await kubectl.run(['apply', '-f', '-', '--validate=warn'], { stdin: manifest })).toEqual({
      code: 0,
      stdout: 'deployment.apps/strict created\n',
      stderr:
        'Warning: unknown field "spec.replica"\nWarning: unknown field "spec.template.spec.containers[0].imagePullPolice"\n',
    });
    // A patch is refused as a whole, and shown as Go shows maps.
    const patched = await kubectl.fails(['apply', '-f', '-'], { stdin: manifest.replace('replica:', 'replicass:') });
    expect(patched).toMatch(
      /^The request is invalid: patch: Invalid value: "map\[metadata:map\[annotations:map\[kubectl/,
    );
    expect(patched).toContain(' spec:map[replica:<nil> replicass:2 template:map[spec:map[');
    expect(patched).toContain(`: strict decoding error: ${unknown.replace('replica', 'replicass')}\n`);
    expect(await kubectl.run(['apply', '-f', '-', '--validate=ignore'], { stdin: manifest })).toEqual({
      code: 0,
      stdout: 'deployment.apps/strict configured\n',
      stderr: '',
    });
  });

  it('shows why a change is refused', async () => {
    const manifest = deployment('fixed');
    await kubectl.apply(manifest);
    manifest.spec.selector.matchLabels = { app: 'other' };
    manifest.spec.template.metadata.labels = { app: 'other' };
    expect(await kubectl.fails(['apply', '-f', '-'], stdin(manifest))).toBe(
      'The Deployment "fixed" is invalid: spec.selector: Invalid value: {"matchLabels":{"app":"other"}}: field is immutable\n',
    );
    manifest.spec.selector.matchLabels = { app: 'fixed' };
    expect(await kubectl.fails(['apply', '-f', '-'], stdin(manifest))).toBe(
      'The Deployment "fixed" is invalid: spec.template.metadata.labels: Invalid value: {"app":"other"}: `selector` does not match template `labels`\n',
    );
  });

  it('rehearses', async () => {
    const manifest = configMap('rehearsed', { a: '1' });
    expect(await kubectl.apply(manifest, '--dry-run=server')).toBe('configmap/rehearsed created (server dry run)\n');
    expect(await kubectl.fails('get configmap rehearsed')).toBe(
      'Error from server (NotFound): configmaps "rehearsed" not found\n',
    );
    expect(await kubectl.apply(manifest, '--dry-run=client')).toBe('configmap/rehearsed created (dry run)\n');
    await kubectl.apply(manifest);
    const { metadata } = await kubectl.json('get configmap rehearsed');
    manifest.data.a = '2';
    expect(await kubectl.apply(manifest, '--dry-run=server')).toBe('configmap/rehearsed configured (server dry run)\n');
    expect(await kubectl.apply(manifest, '--dry-run=server', '-o', 'jsonpath={.data.a}')).toBe('2');
    expect(await kubectl.ok('get configmap rehearsed -o jsonpath={.data.a}/{.metadata.resourceVersion}')).toBe(
      `1/${metadata.resourceVersion}`,
    );
  });

  it('shows and replaces what was last applied', async () => {
    await kubectl.apply(configMap('last', { a: '1' }));
    expect(await kubectl.ok('apply view-last-applied configmap last')).toBe(
      `apiVersion: v1\ndata:\n  a: "1"\nkind: ConfigMap\nmetadata:\n  annotations: {}\n  name: last\n  namespace: ${namespace}\n`,
    );
    const manifest = join(mkdtempSync(join(tmpdir(), 'godwit-apply-')), 'last.json');
    writeFileSync(manifest, JSON.stringify(configMap('last', { a: '2' })));
    expect(await kubectl.ok(['apply', 'set-last-applied', '-f', manifest])).toBe('configmap/last configured\n');
    expect(await kubectl.ok('apply view-last-applied configmap last -o json')).toContain('"a": "2"');
    expect((await kubectl.json('get configmap last')).data).toEqual({ a: '1' });
  });
});

describe('diff', () => {
  it('answers 0 where nothing would change and 1 with the changes where something would', async () => {
    const manifest = deployment('differs');
    expect(await kubectl.run(['diff', '-f', '-'], stdin(manifest))).toMatchObject({ code: 1 });
    await kubectl.apply(manifest);
    expect(await kubectl.run(['diff', '-f', '-'], stdin(manifest))).toEqual({ code: 0, stdout: '', stderr: '' });

    manifest.spec.template.spec.containers[0].image = 'main:2';
    const changed = await kubectl.run(['diff', '-f', '-'], stdin(manifest));
    expect(changed.code).toBe(1);
    const lines = changed.stdout.split('\n').filter((line) => /^[-+] /.test(line));
    expect(lines).toEqual(['-  generation: 1', '+  generation: 2', '-        image: main:1', '+        image: main:2']);
    expect((await kubectl.json('get deployment differs')).spec.template.spec.containers[0].image).toBe('main:1');
  });

  itSince(28, 'hides the data of secrets', async () => {
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'hidden' }, data: { key: 'b2xk' } };
    await kubectl.apply(secret);
    const { code, stdout } = await kubectl.run(['diff', '-f', '-'], stdin({ ...secret, data: { key: 'bmV3' } }));
    expect(code).toBe(1);
    expect(stdout).toContain("-  key: '*** (before)'");
    expect(stdout).toContain("+  key: '*** (after)'");
    expect(stdout).not.toContain('bmV3');
  });

  it('does so by server-side apply too, and answers more than 1 for what the server refuses', async () => {
    const manifest = configMap('server-diff', { a: '1' });
    await kubectl.apply(manifest, '--server-side');
    expect((await kubectl.run(['diff', '-f', '-', '--server-side'], stdin(manifest))).code).toBe(0);
    const { code, stdout } = await kubectl.run(
      ['diff', '-f', '-', '--server-side'],
      stdin(configMap('server-diff', { a: '2' })),
    );
    expect(code).toBe(1);
    expect(stdout).toContain('-  a: "1"\n+  a: "2"\n');
    const refused = await kubectl.run(['diff', '-f', '-'], stdin(configMap('No-Such-Name', {})));
    expect(refused.code).toBeGreaterThan(1);
    expect(refused.stderr).toContain('The ConfigMap "No-Such-Name" is invalid');
  });
});
