import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Cluster } from '../support/cluster.ts';
import { type Kubectl, kubectlHas } from '../support/kubectl.ts';
import { configMap } from './manifests.ts';

/** `kubectl create -f`: what may be in a file, and what is said of files that are wrong. */

let cluster: Cluster;
let kubectl: Kubectl;
let namespace: string;
let directory: string;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'godwit-create-'));
  cluster = await Cluster.start();
  ({ kubectl, namespace } = await cluster.namespace('create-files'));
});
afterAll(async () => {
  await cluster.close();
  rmSync(directory, { recursive: true, force: true });
});

function file(name: string, content: string | object): string {
  const path = join(directory, name);
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

const lines = (text: string): string[] => text.trimEnd().split('\n');

describe('files', () => {
  it('takes JSON, and tells what it has made', async () => {
    const path = file('one.json', configMap('json', { a: 'b' }));
    expect(await kubectl.ok(['create', '-f', path])).toBe('configmap/json created\n');
    expect(await kubectl.json('get configmap json')).toMatchObject({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'json', namespace, uid: expect.stringMatching(/^[0-9a-f-]{36}$/) },
      data: { a: 'b' },
    });
  });

  it('takes YAML of several documents, empty ones and lists among them', async () => {
    const path = file(
      'many.yaml',
      `# a comment
apiVersion: v1
kind: ConfigMap
metadata: {name: first}
data:
  number: "1"
  text: |
    two
    lines
---
---
# nothing but a comment
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: second}
- apiVersion: v1
  kind: Secret
  metadata: {name: third}
  stringData: {key: value}
---
apiVersion: v1
kind: ConfigMapList
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: fourth}
`,
    );
    expect(lines(await kubectl.ok(['create', '-f', path]))).toEqual([
      'configmap/first created',
      'configmap/second created',
      'secret/third created',
      'configmap/fourth created',
    ]);
    expect((await kubectl.json('get configmap first')).data).toEqual({ number: '1', text: 'two\nlines\n' });
    // What is written as text is kept as base64 alone.
    const secret = await kubectl.json('get secret third');
    expect(secret.data).toEqual({ key: Buffer.from('value').toString('base64') });
    expect(secret).not.toHaveProperty('stringData');
    expect(secret.type).toBe('Opaque');
  });

  it('goes on after a failure, and fails for it', async () => {
    const path = file('partly.yaml', JSON.stringify(configMap('taken', {})));
    await kubectl.ok(['create', '-f', path]);
    const document = (name: string): string => `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${name}}\n`;
    const both = file('both.yaml', `${document('taken')}---\n${document('free')}`);
    const { code, stdout, stderr } = await kubectl.run(['create', '-f', both]);
    expect(code).toBe(1);
    expect(stdout).toBe('configmap/free created\n');
    expect(stderr).toBe(
      `Error from server (AlreadyExists): error when creating "${both}": configmaps "taken" already exists\n`,
    );
  });

  it('takes whole directories, standard input, and answers in any form', async () => {
    const folder = join(directory, 'folder');
    mkdirSync(folder);
    writeFileSync(join(folder, 'a.yaml'), JSON.stringify(configMap('from-folder-a', {})));
    writeFileSync(join(folder, 'b.json'), JSON.stringify(configMap('from-folder-b', {})));
    writeFileSync(join(folder, 'ignored.txt'), 'not a manifest');
    expect(lines(await kubectl.ok(['create', '-f', folder]))).toEqual([
      'configmap/from-folder-a created',
      'configmap/from-folder-b created',
    ]);
    const stdin = JSON.stringify(configMap('piped', { a: 'b' }));
    const created = JSON.parse(await kubectl.ok('create -f - -o json', { stdin }));
    expect(created).toMatchObject({ metadata: { name: 'piped', namespace }, data: { a: 'b' } });
    expect(created.metadata.resourceVersion).toMatch(/^\d+$/);
  });

  it('completes a name', async () => {
    const manifest = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { generateName: 'generated-' } };
    const names = new Set<string>();
    for (let attempt = 0; attempt < 3; attempt++) {
      const output = await kubectl.ok('create -f -', { stdin: JSON.stringify(manifest) });
      expect(output).toMatch(/^configmap\/generated-[bcdfghjklmnpqrstvwxz2456789]{5} created\n$/);
      names.add(output);
    }
    expect(names.size).toBe(3);
    expect(await kubectl.fails('apply -f -', { stdin: JSON.stringify(manifest) })).toBe(
      'error: from generated-: cannot use generate name with apply\n',
    );
  });

  it('keeps to the namespace that it is told', async () => {
    const stdin = JSON.stringify({
      ...configMap('elsewhere', {}),
      metadata: { name: 'elsewhere', namespace: 'default' },
    });
    expect(await kubectl.fails('create -f -', { stdin })).toBe(
      `error: the namespace from the provided object "default" does not match the namespace "${namespace}". You must pass '--namespace=default' to perform this operation.\n`,
    );
    expect(
      await cluster.kubectl.fails('create -n nowhere -f -', { stdin: JSON.stringify(configMap('lost', {})) }),
    ).toBe('Error from server (NotFound): error when creating "STDIN": namespaces "nowhere" not found\n');
  });

  it('records who created what, unless told not to show it', async () => {
    await kubectl.ok('create -f - --field-manager=tests', { stdin: JSON.stringify(configMap('managed', { a: 'b' })) });
    expect((await kubectl.json('get configmap managed')).metadata).not.toHaveProperty('managedFields');
    const { managedFields } = (await kubectl.json('get configmap managed --show-managed-fields')).metadata;
    expect(managedFields).toEqual([
      {
        manager: 'tests',
        operation: 'Update',
        apiVersion: 'v1',
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
        fieldsType: 'FieldsV1',
        fieldsV1: { 'f:data': { '.': {}, 'f:a': {} } },
      },
    ]);
  });

  it('can save what apply will need', async () => {
    const manifest = configMap('saved', { a: 'b' });
    await kubectl.ok('create -f - --save-config', { stdin: JSON.stringify(manifest) });
    const { annotations } = (await kubectl.json('get configmap saved')).metadata;
    expect(JSON.parse(annotations['kubectl.kubernetes.io/last-applied-configuration'])).toMatchObject({
      data: { a: 'b' },
    });
    expect(await kubectl.apply(manifest)).toBe('configmap/saved unchanged\n');
  });
});

describe('rehearsals', () => {
  it('asks the server, which checks, completes and keeps nothing', async () => {
    const stdin = JSON.stringify({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'rehearsed' },
      spec: { containers: [{ name: 'main', image: 'main:1' }] },
    });
    expect(await kubectl.ok('create -f - --dry-run=server', { stdin })).toBe(
      'pod/rehearsed created (server dry run)\n',
    );
    const pod = JSON.parse(await kubectl.ok('create -f - --dry-run=server -o json', { stdin }));
    expect(pod.spec).toMatchObject({
      restartPolicy: 'Always',
      dnsPolicy: 'ClusterFirst',
      schedulerName: 'default-scheduler',
    });
    expect(pod.metadata.uid).toMatch(/^[0-9a-f-]{36}$/);
    expect(pod.metadata).not.toHaveProperty('resourceVersion');
    expect(await kubectl.fails('get pod rehearsed')).toBe('Error from server (NotFound): pods "rehearsed" not found\n');
  });

  it('can stay at home', async () => {
    const stdin = JSON.stringify(configMap('at-home', { a: 'b' }));
    expect(await kubectl.ok('create -f - --dry-run=client', { stdin })).toBe('configmap/at-home created (dry run)\n');
    expect(await kubectl.ok('create -f - --dry-run=client -o name', { stdin })).toBe('configmap/at-home\n');
    expect(await kubectl.fails('get configmap at-home')).toContain('not found');
  });

  it('refuses on the server what would be refused', async () => {
    await kubectl.ok('create configmap there');
    const stdin = JSON.stringify(configMap('there', {}));
    expect(await kubectl.fails('create -f - --dry-run=server', { stdin })).toBe(
      'Error from server (AlreadyExists): error when creating "STDIN": configmaps "there" already exists\n',
    );
  });
});

describe('strictness', () => {
  const unknown = `apiVersion: v1
kind: Pod
metadata:
  name: strict
  colour: red
spec:
  containers:
  - name: main
    image: main:1
    bogus: 1
    resources: {requests: {cpu: 1}, extra: {}}
  other: true
`;
  const COMPLAINT =
    'unknown field "metadata.colour", unknown field "spec.containers[0].bogus", unknown field "spec.containers[0].resources.extra", unknown field "spec.other"';

  it.each([[[]], [['--validate=strict']], [['--validate=true']], [['--validate']]])(
    'refuses unknown fields with %j',
    async (args) => {
      expect(await kubectl.fails(['create', '-f', '-', ...args], { stdin: unknown })).toBe(
        `Error from server (BadRequest): error when creating "STDIN": Pod in version "v1" cannot be handled as a Pod: strict decoding error: ${COMPLAINT}\n`,
      );
    },
  );

  it('warns of them and leaves them out', async () => {
    const { code, stdout, stderr } = await kubectl.run(['create', '-f', '-', '--validate=warn', '-o', 'json'], {
      stdin: unknown,
    });
    expect(code).toBe(0);
    expect(lines(stderr)).toEqual(COMPLAINT.split(', ').map((each) => `Warning: ${each}`));
    const pod = JSON.parse(stdout);
    expect(pod.metadata).not.toHaveProperty('colour');
    expect(pod.spec).not.toHaveProperty('other');
    expect(pod.spec.containers[0]).not.toHaveProperty('bogus');
    expect(pod.spec.containers[0].resources).toEqual({ requests: { cpu: '1' } });
    await kubectl.ok('delete pod strict --now');
  });

  it('says nothing of them when told to ignore them', async () => {
    const { code, stderr } = await kubectl.run(['create', '-f', '-', '--validate=ignore', '--dry-run=server'], {
      stdin: unknown,
    });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(
      await kubectl.ok(['create', '-f', '-', '--validate=false', '--dry-run=server'], { stdin: unknown }),
    ).toContain('created');
  });

  it('notices a field that is there twice', async () => {
    // kubectl itself drops duplicates on the way from YAML; the server's own word is what curl would see.
    const body = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"twice"},"data":{"a":"1","a":"2"}}';
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const headers = { 'content-type': 'application/json' };
    const strict = await cluster.api.request('POST', `${path}?fieldValidation=Strict`, { body, headers });
    expect(strict.expect(400).json.message).toBe(
      'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: duplicate field "data.a"',
    );
    const warned = await cluster.api.request('POST', `${path}?fieldValidation=Warn`, { body, headers });
    expect(warned.expect(201).warnings).toEqual(['duplicate field "data.a"']);
    expect(warned.json.data).toEqual({ a: '2' });
    const yaml = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: twice-yaml\n  name: twice-again\n';
    const refused = await cluster.api.request('POST', `${path}?fieldValidation=Strict`, {
      body: yaml,
      headers: { 'content-type': 'application/yaml' },
    });
    expect(refused.expect(400).json.message).toBe(
      'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: yaml: unmarshal errors:\n  line 5: key "name" already set in map',
    );
  });

  it('holds custom resources to the same', async () => {
    const definition = {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'stricts.create.example.com' },
      spec: {
        group: 'create.example.com',
        scope: 'Namespaced',
        names: { plural: 'stricts', kind: 'Strict' },
        versions: [
          {
            name: 'v1',
            served: true,
            storage: true,
            schema: {
              openAPIV3Schema: {
                type: 'object',
                properties: { spec: { type: 'object', properties: { size: { type: 'integer', maximum: 3 } } } },
              },
            },
          },
        ],
      },
    };
    const [version] = definition.spec.versions;
    const schema = { ...version?.schema.openAPIV3Schema, propertys: {} };
    const misspelt = {
      ...definition,
      spec: { ...definition.spec, versions: [{ ...version, schema: { openAPIV3Schema: schema } }] },
    };
    expect(await kubectl.fails('create -f -', { stdin: JSON.stringify(misspelt) })).toBe(
      'Error from server (BadRequest): error when creating "STDIN": CustomResourceDefinition in version "v1" cannot be handled as a CustomResourceDefinition: strict decoding error: unknown field "spec.versions[0].schema.openAPIV3Schema.propertys"\n',
    );
    await kubectl.apply(definition);
    await kubectl.ok('wait --for=condition=Established crd/stricts.create.example.com');
    const strict = (spec: object): { stdin: string } => ({
      stdin: JSON.stringify({ apiVersion: 'create.example.com/v1', kind: 'Strict', metadata: { name: 's' }, spec }),
    });
    expect(await kubectl.fails('create -f -', strict({ size: 1, colour: 'red' }))).toBe(
      'Error from server (BadRequest): error when creating "STDIN": Strict in version "v1" cannot be handled as a Strict: strict decoding error: unknown field "spec.colour"\n',
    );
    expect(await kubectl.fails('create -f -', strict({ size: 7 }))).toBe(
      'The Strict "s" is invalid: spec.size: Invalid value: 7: spec.size in body should be less than or equal to 3\n',
    );
    expect(await kubectl.fails('create -f -', strict({ size: 'big' }))).toBe(
      'The Strict "s" is invalid: spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"\n',
    );
    const { stderr, stdout } = await kubectl.run(
      ['create', '-f', '-', '--validate=warn'],
      strict({ size: 1, colour: 'red' }),
    );
    expect({ stderr, stdout }).toEqual({
      stderr: 'Warning: unknown field "spec.colour"\n',
      stdout: 'strict.create.example.com/s created\n',
    });
    expect((await kubectl.json('get stricts s')).spec).toEqual({ size: 1 });
  });
});

describe('what is wrong with a manifest', () => {
  it('is listed whole, with the path of each field', async () => {
    const stdin = JSON.stringify({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'Wrong_Name', labels: { 'a b': 'c' } },
      spec: {
        restartPolicy: 'Sometimes',
        containers: [
          { name: 'Main', imagePullPolicy: 'Never' },
          { name: 'x', image: 'x' },
          { name: 'x', image: 'x' },
        ],
      },
    });
    const output = lines(await kubectl.fails('create -f -', { stdin }));
    expect(output[0]).toBe('The Pod "Wrong_Name" is invalid: ');
    const subdomain =
      "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    const label =
      "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
    const name =
      "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    // In whichever order: what a schema says comes before what code says here, and not there.
    expect(new Set(output.slice(1))).toEqual(
      new Set([
        `* metadata.name: Invalid value: "Wrong_Name": ${subdomain}`,
        `* metadata.labels: Invalid value: "a b": ${name}`,
        `* spec.containers[0].name: Invalid value: "Main": ${label}`,
        '* spec.containers[0].image: Required value',
        '* spec.containers[2].name: Duplicate value: "x"',
        '* spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"',
      ]),
    );
  });

  it('is one thing on one line', async () => {
    const stdin = JSON.stringify({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'empty' },
      spec: { containers: [] },
    });
    expect(await kubectl.fails('create -f -', { stdin })).toBe(
      'The Pod "empty" is invalid: spec.containers: Required value\n',
    );
  });

  it('may be a type that Go cannot read', async () => {
    const stdin = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: typed}\ndata: {number: 1}\n';
    expect(await kubectl.fails('create -f -', { stdin })).toBe(
      'Error from server (BadRequest): error when creating "STDIN": ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type string\n',
    );
    const nested =
      'apiVersion: v1\nkind: Pod\nmetadata: {name: typed}\nspec: {containers: [{name: main, image: true}]}\n';
    expect(await kubectl.fails('create -f -', { stdin: nested })).toBe(
      'Error from server (BadRequest): error when creating "STDIN": Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal bool into Go struct field Container.spec.containers.image of type string\n',
    );
  });

  it('may be that nothing like it is served', async () => {
    const stdin = 'apiVersion: nothing.example.com/v1\nkind: Nothing\nmetadata: {name: nothing}\n';
    expect(await kubectl.fails('create -f -', { stdin })).toBe(
      'error: resource mapping not found for name: "nothing" namespace: "" from "STDIN": no matches for kind "Nothing" in version "nothing.example.com/v1"\nensure CRDs are installed first\n',
    );
  });
});

describe('create --raw', () => {
  it('posts a file as it is', async () => {
    if (!kubectlHas(22, 'create --raw')) return;
    const path = file('raw.json', configMap('raw', { a: 'b' }));
    const created = JSON.parse(
      await kubectl.ok(['create', '--raw', `/api/v1/namespaces/${namespace}/configmaps`, '-f', path]),
    );
    expect(created.data).toEqual({ a: 'b' });
  });
});
