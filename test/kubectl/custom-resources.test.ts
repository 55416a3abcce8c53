import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Anything } from '../support/api.ts';
import { Cluster } from '../support/cluster.ts';
import { itSince, type Kubectl } from '../support/kubectl.ts';
import { simpleCrd } from './manifests.ts';

/** Custom resources from their definition to their end. */

let cluster: Cluster;
let kubectl: Kubectl;
let namespace: string;

const stdin = (manifest: unknown): { stdin: string } => ({
  stdin: typeof manifest === 'string' ? manifest : JSON.stringify(manifest),
});

/** A definition with everything that one can say. */
const MACHINES = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: machines.fleet.example.com
spec:
  group: fleet.example.com
  scope: Namespaced
  names:
    plural: machines
    singular: machine
    kind: Machine
    shortNames: [mc, mcs]
    categories: [fleet]
  versions:
  - name: v1alpha1
    served: true
    storage: false
    deprecated: true
    deprecationWarning: fleet.example.com/v1alpha1 Machine is deprecated; use v1
    schema:
      openAPIV3Schema:
        type: object
        x-kubernetes-preserve-unknown-fields: true
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns:
    - {name: Phase, type: string, jsonPath: .status.phase, description: What it is doing.}
    - {name: Cores, type: integer, jsonPath: .spec.cores}
    - {name: Ready, type: boolean, jsonPath: .status.ready}
    - {name: Load, type: number, jsonPath: .status.load}
    - {name: Booted, type: date, jsonPath: .status.bootedAt}
    - {name: Image, type: string, priority: 1, jsonPath: .spec.image}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    selectableFields:
    - jsonPath: .spec.mode
    subresources:
      status: {}
      scale:
        specReplicasPath: .spec.replicas
        statusReplicasPath: .status.replicas
        labelSelectorPath: .status.selector
    schema:
      openAPIV3Schema:
        description: A machine of the fleet.
        type: object
        required: [spec]
        properties:
          spec:
            description: What is wanted.
            type: object
            required: [image]
            x-kubernetes-validations:
            - rule: self.cores * 2 >= self.replicas
              message: there must be a core for every two replicas
            - rule: "!has(self.serial) || self.serial.startsWith(self.mode)"
              messageExpression: "'serial ' + self.serial + ' is not of mode ' + self.mode"
              fieldPath: .serial
              reason: FieldValueForbidden
            properties:
              image:
                description: What it runs.
                type: string
                pattern: '^[a-z]+:[0-9]+$'
                x-kubernetes-validations:
                - {rule: self == oldSelf, message: image is immutable}
              mode: {type: string, enum: [fast, safe], default: safe}
              cores: {type: integer, format: int32, minimum: 1, maximum: 64, default: 1}
              replicas: {type: integer, minimum: 0, default: 1}
              port: {x-kubernetes-int-or-string: true, default: 80}
              serial: {type: string, maxLength: 20}
              note: {type: string, nullable: true}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
              labels: {type: object, additionalProperties: {type: string}}
              tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
              disks:
                type: array
                maxItems: 4
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name, size]
                  properties:
                    name: {type: string, maxLength: 20}
                    size: {type: string}
                    boot: {type: boolean, default: false}
          status:
            type: object
            properties:
              phase: {type: string}
              ready: {type: boolean}
              load: {type: number}
              bootedAt: {type: string, format: date-time}
              replicas: {type: integer}
              selector: {type: string}
`;

function machine(name: string, spec: object = {}): Anything {
  return {
    apiVersion: 'fleet.example.com/v1',
    kind: 'Machine',
    metadata: { name },
    spec: { image: 'linux:1', ...spec },
  };
}

beforeAll(async () => {
  cluster = await Cluster.start();
  ({ kubectl, namespace } = await cluster.namespace());
  expect(await kubectl.apply(MACHINES)).toBe(
    'customresourcedefinition.apiextensions.k8s.io/machines.fleet.example.com created\n',
  );
  await kubectl.ok('wait --for=condition=Established crd/machines.fleet.example.com');
});
afterAll(() => cluster.close());

describe('a definition', () => {
  it('is established under the names it asks for', async () => {
    const { status, spec } = await kubectl.json('get crd machines.fleet.example.com');
    expect(status.acceptedNames).toEqual({
      plural: 'machines',
      singular: 'machine',
      kind: 'Machine',
      listKind: 'MachineList',
      shortNames: ['mc', 'mcs'],
      categories: ['fleet'],
    });
    expect(status.storedVersions).toEqual(['v1']);
    expect(status.conditions.map(({ type, status: value }: Anything) => `${type}=${value}`)).toEqual([
      'NamesAccepted=True',
      'Established=True',
    ]);
    expect(spec.conversion).toEqual({ strategy: 'None' });
    const row = (await kubectl.ok('get crd machines.fleet.example.com')).trim().split('\n');
    expect(row[0]).toMatch(/^NAME +CREATED AT$/);
    expect(row[1]).toMatch(/^machines\.fleet\.example\.com +\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$/);
  });

  itSince(28, 'is found in discovery', async () => {
    expect(await kubectl.ok('api-resources --api-group=fleet.example.com --no-headers')).toMatch(
      /^machines +mc,mcs +fleet\.example\.com\/v1 +true +Machine\n$/,
    );
    expect(await kubectl.ok('api-resources --api-group=fleet.example.com -o wide --no-headers')).toContain(
      'delete,deletecollection,get,list,patch,create,update,watch   fleet',
    );
    expect((await kubectl.ok('api-versions')).split('\n').filter((line) => line.startsWith('fleet'))).toEqual([
      'fleet.example.com/v1',
      'fleet.example.com/v1alpha1',
    ]);
    expect(await kubectl.ok('get apiservice v1.fleet.example.com --no-headers')).toMatch(
      /^v1\.fleet\.example\.com +Local +True +/,
    );
  });

  itSince(28, 'is explained', async () => {
    // kube-apiserver publishes schemas a moment after it serves them.
    await expect.poll(async () => (await kubectl.run(['explain', 'machine'])).code, { timeout: 20_000 }).toBe(0);
    expect(await kubectl.ok('explain machine.spec.image')).toBe(
      `GROUP:      fleet.example.com
KIND:       Machine
VERSION:    v1

FIELD: image <string>


DESCRIPTION:
    What it runs.
    

`,
    );
    expect(await kubectl.ok('explain machines')).toContain('DESCRIPTION:\n    A machine of the fleet.\n');
    expect(await kubectl.ok('explain mc.spec --recursive')).toContain('  disks\t<[]Object>\n    boot\t<boolean>\n');
    expect(await kubectl.ok('explain machine.spec.mode')).toContain('ENUM:\n    fast\n    safe\n');
    expect(await kubectl.fails('explain machine.spec.nothing')).toContain('error: field "nothing" does not exist\n');
  });
});

describe('objects', () => {
  itSince(28, 'are defaulted, and shown in the columns of their definition', async () => {
    await kubectl.apply(machine('one', { disks: [{ name: 'root', size: '1Gi' }] }));
    const { spec } = await kubectl.json('get machine one');
    expect(spec).toEqual({
      image: 'linux:1',
      mode: 'safe',
      cores: 1,
      replicas: 1,
      port: 80,
      disks: [{ name: 'root', size: '1Gi', boot: false }],
    });
    const bootedAt = new Date(Date.now() - 3 * 24 * 3600 * 1000).toISOString().replace(/\.\d+/, '');
    const status = { phase: 'Running', ready: true, load: 0.5, bootedAt };
    await kubectl.ok(['patch', 'mc', 'one', '--subresource=status', '--type=merge', '-p', JSON.stringify({ status })]);
    const [header = '', row = ''] = (await kubectl.ok('get mc one')).trim().split('\n');
    expect(header.split(/ +/)).toEqual(['NAME', 'PHASE', 'CORES', 'READY', 'LOAD', 'BOOTED', 'AGE']);
    expect(row.split(/ +/).slice(0, 6)).toEqual(['one', 'Running', '1', 'true', '0.5', '3d']);
    const [wide = '', wideRow = ''] = (await kubectl.ok('get mc one -o wide')).trim().split('\n');
    expect(wide.split(/ +/)).toEqual(['NAME', 'PHASE', 'CORES', 'READY', 'LOAD', 'BOOTED', 'IMAGE', 'AGE']);
    expect(wideRow.split(/ +/)[6]).toBe('linux:1');
    expect(await kubectl.ok('get fleet -o name')).toBe('machine.fleet.example.com/one\n');
  });

  it('show nothing where they have nothing', async () => {
    await kubectl.apply(machine('blank'));
    const [, row = ''] = (await kubectl.ok('get mc blank')).trim().split('\n');
    expect(row).toMatch(/^blank {8,}1 {5,}\S+$/);
  });

  itSince(28, 'keep unknown fields only where told to', async () => {
    const odd = machine('odd', {
      extra: 1,
      free: { any: [{ thing: true }] },
      disks: [{ name: 'a', size: '1', odd: 1 }],
    });
    expect(await kubectl.fails(['apply', '-f', '-'], stdin(odd))).toBe(
      'Error from server (BadRequest): error when creating "STDIN": Machine in version "v1" cannot be handled as a Machine: strict decoding error: unknown field "spec.disks[0].odd", unknown field "spec.extra"\n',
    );
    expect(await kubectl.run(['apply', '--validate=warn', '-f', '-'], stdin(odd))).toEqual({
      code: 0,
      stdout: 'machine.fleet.example.com/odd created\n',
      stderr: 'Warning: unknown field "spec.disks[0].odd"\nWarning: unknown field "spec.extra"\n',
    });
    const { spec } = await kubectl.json('get machine odd');
    expect(spec.extra).toBeUndefined();
    expect(spec.free).toEqual({ any: [{ thing: true }] });
    expect(spec.disks).toEqual([{ name: 'a', size: '1', boot: false }]);
  });

  it('may be null where that is allowed, and take a number or a text', async () => {
    // Not by apply: it leaves nulls out of what it creates.
    await kubectl.ok(['create', '-f', '-'], stdin(machine('nullable', { note: null, port: 'http' })));
    const { spec } = await kubectl.json('get machine nullable');
    expect(spec.note).toBeNull();
    expect(spec.port).toBe('http');
    // Elsewhere a null means nothing, and the default comes in.
    await kubectl.ok(['create', '-f', '-'], stdin(machine('not-null', { mode: null })));
    expect((await kubectl.json('get machine not-null')).spec.mode).toBe('safe');
  });

  const INVALID: [what: string, spec: Anything, complaint: string][] = [
    ['a missing field', { image: undefined }, 'spec.image: Required value'],
    [
      'a text that does not match',
      { image: 'Linux' },
      'spec.image: Invalid value: "Linux": spec.image in body should match \'^[a-z]+:[0-9]+$\'',
    ],
    [
      'another type',
      { cores: 'many' },
      'spec.cores: Invalid value: "string": spec.cores in body must be of type integer: "string"',
    ],
    ['too much', { cores: 65 }, 'spec.cores: Invalid value: 65: spec.cores in body should be less than or equal to 64'],
    [
      'too little',
      { cores: 0 },
      'spec.cores: Invalid value: 0: spec.cores in body should be greater than or equal to 1',
    ],
    ['none of the values', { mode: 'slow' }, 'spec.mode: Unsupported value: "slow": supported values: "fast", "safe"'],
    ['too long a text', { serial: 'safe-0123456789012345678' }, 'spec.serial: Too long: may not be more than 20 bytes'],
    ['a value twice in a set', { tags: ['a', 'b', 'a'] }, 'spec.tags[2]: Duplicate value: "a"'],
    [
      'a key twice in a map',
      {
        disks: [
          { name: 'a', size: '1' },
          { name: 'a', size: '2' },
        ],
      },
      'spec.disks[1]: Duplicate value: {"name":"a"}',
    ],
    [
      'a rule that does not hold',
      { replicas: 5 },
      'spec: Invalid value: "object": there must be a core for every two replicas',
    ],
    [
      'a rule with a message of its own making',
      { serial: 'fast-1' },
      'spec.serial: Forbidden: serial fast-1 is not of mode safe',
    ],
  ];

  it.each(INVALID)('are refused for %s', async (_what, spec, complaint) => {
    // Older ones judge by the schema themselves, in words of their own.
    const output = await kubectl.fails(['create', '--validate=false', '-f', '-'], stdin(machine('bad', spec)));
    expect(output.split('\n').map((line) => line.replace(/^(?:\* |The Machine "bad" is invalid: )/, ''))).toContain(
      complaint,
    );
  });

  it('are held to what they were', async () => {
    await kubectl.apply(machine('fixed'));
    expect(await kubectl.fails(['apply', '-f', '-'], stdin(machine('fixed', { image: 'linux:2' })))).toBe(
      'The Machine "fixed" is invalid: spec.image: Invalid value: "string": image is immutable\n',
    );
    expect(await kubectl.apply(machine('fixed', { cores: 2 }))).toBe('machine.fleet.example.com/fixed configured\n');
  });

  itSince(28, 'have a status of their own', async () => {
    await kubectl.apply({ ...machine('stated'), status: { phase: 'Ignored' } });
    expect((await kubectl.json('get machine stated')).status).toBeUndefined();
    const { generation } = (await kubectl.json('get machine stated')).metadata;
    await kubectl.ok([
      'patch',
      'machine',
      'stated',
      '--subresource=status',
      '--type=merge',
      '-p',
      '{"status":{"phase":"Up"},"spec":{"cores":9},"metadata":{"labels":{"a":"b"}}}',
    ]);
    const after = await kubectl.json('get machine stated');
    expect(after.status).toEqual({ phase: 'Up' });
    expect(after.spec.cores).toBe(1);
    expect(after.metadata.labels).toBeUndefined();
    expect(after.metadata.generation).toBe(generation);
    await kubectl.ok([
      'patch',
      'machine',
      'stated',
      '--type=merge',
      '-p',
      '{"status":{"phase":"Down"},"spec":{"cores":2}}',
    ]);
    const changed = await kubectl.json('get machine stated');
    expect([changed.status.phase, changed.spec.cores, changed.metadata.generation]).toEqual(['Up', 2, generation + 1]);
    expect(
      await kubectl.fails([
        'patch',
        'machine',
        'stated',
        '--subresource=status',
        '--type=merge',
        '-p',
        '{"status":{"phase":5}}',
      ]),
    ).toContain('status.phase: Invalid value: "integer": phase in body must be of type string: "integer"\n');
  });

  itSince(28, 'are scaled', async () => {
    await kubectl.apply(machine('scaled', { cores: 4 }));
    expect(await kubectl.ok('scale machine scaled --replicas=3')).toBe('machine.fleet.example.com/scaled scaled\n');
    const { spec, metadata } = await kubectl.json('get machine scaled');
    expect([spec.replicas, metadata.generation]).toEqual([3, 2]);
    await kubectl.ok([
      'patch',
      'machine',
      'scaled',
      '--subresource=status',
      '--type=merge',
      '-p',
      '{"status":{"replicas":2,"selector":"app=x"}}',
    ]);
    expect(await kubectl.json('get machine scaled --subresource=scale')).toMatchObject({
      apiVersion: 'autoscaling/v1',
      kind: 'Scale',
      metadata: { name: 'scaled', namespace },
      spec: { replicas: 3 },
      status: { replicas: 2, selector: 'app=x' },
    });
    expect(await kubectl.fails('scale machine scaled --replicas=9')).toContain(
      'there must be a core for every two replicas',
    );
  });

  it('are selected by the fields that their definition names', async () => {
    await kubectl.apply(machine('quick', { mode: 'fast' }));
    expect(await kubectl.ok('get machines --field-selector=spec.mode=fast -o name')).toBe(
      'machine.fleet.example.com/quick\n',
    );
    expect(await kubectl.ok('get machines --field-selector=spec.mode!=safe -o name')).toBe(
      'machine.fleet.example.com/quick\n',
    );
    expect(await kubectl.fails('get machines --field-selector=spec.image=linux:1')).toBe(
      'Error from server (BadRequest): Unable to find "fleet.example.com/v1, Resource=machines" that match label selector "", field selector "spec.image=linux:1": field label not supported: spec.image\n',
    );
  });

  itSince(28, 'are the same in every version that is served, with a word on old ones', async () => {
    const old = await kubectl.run([
      'get',
      'machines.v1alpha1.fleet.example.com',
      'one',
      '-o',
      'jsonpath={.apiVersion} {.spec.image}',
    ]);
    expect(old.stdout).toBe('fleet.example.com/v1alpha1 linux:1');
    expect(old.stderr).toBe('Warning: fleet.example.com/v1alpha1 Machine is deprecated; use v1\n');
    await kubectl.ok(['create', '-f', '-'], stdin({ ...machine('aged'), apiVersion: 'fleet.example.com/v1alpha1' }));
    expect((await kubectl.json('get machine aged')).apiVersion).toBe('fleet.example.com/v1');
  });

  itSince(28, 'are described, and edited by server-side apply', async () => {
    expect(await kubectl.ok('describe machine one')).toContain(
      'API Version:  fleet.example.com/v1\nKind:         Machine\n',
    );
    // Not made by apply: its fields would go to whoever applies first on the server's side.
    await kubectl.ok(['create', '-f', '-'], stdin(machine('shared', { disks: [{ name: 'root', size: '1Gi' }] })));
    const part = (spec?: object): Anything => ({ ...machine('shared'), spec });
    await kubectl.apply(part({ disks: [{ name: 'data', size: '2Gi' }] }), '--server-side', '--field-manager=data');
    expect((await kubectl.json('get machine shared')).spec.disks.map(({ name }: Anything) => name)).toEqual([
      'root',
      'data',
    ]);
    await kubectl.apply(part(), '--server-side', '--field-manager=data');
    expect((await kubectl.json('get machine shared')).spec.disks.map(({ name }: Anything) => name)).toEqual(['root']);
  });
});

describe('definitions that are refused', () => {
  const variant = (change: (crd: Anything) => void): Anything => {
    const crd = simpleCrd('refused', 'Refused');
    crd.metadata.name = 'refused.test.example.com';
    change(crd);
    return crd;
  };
  const root = (crd: Anything): Anything => crd.spec.versions[0].schema.openAPIV3Schema;

  const REFUSED: [what: string, change: (crd: Anything) => void, complaint: string][] = [
    [
      'a name that is not its own',
      (crd) => (crd.metadata.name = 'other.test.example.com'),
      'metadata.name: Invalid value: "other.test.example.com": must be spec.names.plural+"."+spec.group',
    ],
    [
      'two versions to store',
      (crd) => crd.spec.versions.push({ ...crd.spec.versions[0], name: 'v2' }),
      'must have exactly one version marked as storage version',
    ],
    [
      'no schema',
      (crd) => delete crd.spec.versions[0].schema,
      'spec.versions[0].schema.openAPIV3Schema: Required value',
    ],
    [
      'a schema without types',
      (crd) => (root(crd).properties = { spec: { properties: { a: { type: 'string' } } } }),
      'spec.validation.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object fields',
    ],
    [
      'types below a junctor',
      (crd) =>
        (root(crd).properties = { spec: { type: 'object', anyOf: [{ properties: { a: { type: 'string' } } }] } }),
      'spec.validation.openAPIV3Schema.properties[spec].anyOf[0].properties[a].type: Forbidden: must be empty to be structural',
    ],
    [
      'a list map without keys',
      (crd) =>
        (root(crd).properties = {
          spec: { type: 'array', 'x-kubernetes-list-type': 'map', items: { type: 'object' } },
        }),
      'spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map',
    ],
    [
      'a default of another type',
      (crd) => (root(crd).properties = { spec: { type: 'integer', default: 'x' } }),
      'spec.validation.openAPIV3Schema.properties[spec].default: Invalid value: "string":  in body must be of type integer: "string"',
    ],
    [
      'a rule that does not compile',
      (crd) =>
        (root(crd).properties = {
          spec: {
            type: 'object',
            properties: { a: { type: 'integer' } },
            'x-kubernetes-validations': [{ rule: 'self.b > 1' }],
          },
        }),
      "undefined field 'b'",
    ],
    [
      'a rule that is no condition',
      (crd) =>
        (root(crd).properties = { spec: { type: 'integer', 'x-kubernetes-validations': [{ rule: 'self + 1' }] } }),
      'must evaluate to a bool',
    ],
    ['an empty group', (crd) => (crd.spec.group = ''), 'spec.group: Required value'],
    [
      'an unknown scope',
      (crd) => (crd.spec.scope = 'Wide'),
      'spec.scope: Unsupported value: "Wide": supported values: "Cluster", "Namespaced"',
    ],
  ];

  it.each(REFUSED)('have %s', async (_what, change, complaint) => {
    const output = await kubectl.fails(['create', '-f', '-'], stdin(variant(change)));
    expect(output).toContain('is invalid:');
    expect(output).toContain(complaint);
  });
});

describe('a change of a definition', () => {
  it('takes effect at once, stops serving a version, and lets go of everything in the end', async () => {
    const crd = simpleCrd('gears', 'Gear');
    const spec: Anything = { type: 'object', properties: { teeth: { type: 'integer' } } };
    crd.spec.versions[0].schema.openAPIV3Schema.properties.spec = spec;
    crd.spec.versions.push({ ...structuredClone(crd.spec.versions[0]), name: 'v2', storage: false });
    await kubectl.apply(crd);
    await kubectl.ok('wait --for=condition=Established crd/gears.test.example.com');
    const gear = (body: object): Anything => ({
      apiVersion: 'test.example.com/v1',
      kind: 'Gear',
      metadata: { name: 'g' },
      spec: body,
    });
    await kubectl.apply(gear({ teeth: 7 }));

    // A stricter schema: what is there stays, what is written must fit.
    for (const version of crd.spec.versions) {
      version.schema.openAPIV3Schema.properties.spec.properties = {
        teeth: { type: 'integer', minimum: 10 },
        metal: { type: 'string', default: 'steel' },
      };
    }
    expect(await kubectl.apply(crd)).toBe(
      'customresourcedefinition.apiextensions.k8s.io/gears.test.example.com configured\n',
    );
    await expect
      .poll(() => kubectl.fails(['create', '-f', '-'], stdin({ ...gear({ teeth: 9 }), metadata: { name: 'h' } })), {
        timeout: 20_000,
      })
      .toBe(
        'The Gear "h" is invalid: spec.teeth: Invalid value: 9: spec.teeth in body should be greater than or equal to 10\n',
      );
    expect((await kubectl.json('get gear g')).spec).toEqual({ teeth: 7, metal: 'steel' });
    expect(await kubectl.ok('label gear g note=unchanged-fields-are-let-be')).toBe('gear.test.example.com/g labeled\n');

    crd.spec.versions[1].served = false;
    await kubectl.apply(crd);
    await expect
      .poll(async () => (await kubectl.ok('api-versions')).split('\n'), { timeout: 20_000 })
      .not.toContain('test.example.com/v2');
    expect(await kubectl.fails(['get', '--raw', `/apis/test.example.com/v2/namespaces/${namespace}/gears`])).toContain(
      'Error from server (NotFound): the server could not find the requested resource',
    );

    expect(await kubectl.ok('delete crd gears.test.example.com')).toContain(
      'customresourcedefinition.apiextensions.k8s.io "gears.test.example.com" deleted\n',
    );
    // kubectl may still have it in its cache.
    expect(await kubectl.fails('get gears')).toMatch(
      /could not find the requested resource|the server doesn't have a resource type "gears"/,
    );
    await kubectl.apply(crd);
    await kubectl.ok('wait --for=condition=Established crd/gears.test.example.com');
    expect(await kubectl.run(['get', 'gears'])).toEqual({
      code: 0,
      stdout: '',
      stderr: `No resources found in ${namespace} namespace.\n`,
    });
  });

  it('may not take another\u2019s names', async () => {
    const crd = simpleCrd('usurpers', 'Usurper');
    crd.spec.group = 'fleet.example.com';
    crd.metadata.name = 'usurpers.fleet.example.com';
    crd.spec.names.shortNames = ['mc'];
    await kubectl.apply(crd);
    await kubectl.ok('wait --for=condition=NamesAccepted=false crd/usurpers.fleet.example.com');
    const { status } = await kubectl.json('get crd usurpers.fleet.example.com');
    expect(status.conditions.find(({ type }: Anything) => type === 'NamesAccepted')).toMatchObject({
      status: 'False',
      reason: 'ShortNamesConflict',
      message: '"mc" is already in use',
    });
    expect(status.conditions.find(({ type }: Anything) => type === 'Established')?.status).not.toBe('True');
    await kubectl.ok('delete crd usurpers.fleet.example.com');
  });
});
