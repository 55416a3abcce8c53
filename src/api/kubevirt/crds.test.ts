import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Answer, Anything } from '../../../test/support/api.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { InProcessApi } from '../../../test/support/in-process.ts';
import { makeNamespace } from '../../../test/support/objects.ts';
import type { KubeObject } from '../meta.ts';
import { parseApiVersion } from '../meta.ts';
import type { Schema } from '../schema.ts';
import { KUBEVIRT_CRDS } from './crds.ts';
import {
  CONFIGURATION,
  CONTAINER_DISK_MACHINE,
  GUESTS,
  INSTANCETYPE_MACHINE,
  MIGRATIONS,
  objectsOf,
  PLACED_MACHINE,
  POLICIES,
} from './manifests.fixture.ts';

/** The kinds on our own API server. */

const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const MACHINES = 'virtualmachines';
const GUESTS_PATH = 'virtualmachineinstances';

let api: InProcessApi;
let namespace: string;

beforeAll(async () => {
  api = await InProcessApi.start();
  namespace = await makeNamespace(api);
  for (const body of KUBEVIRT_CRDS) {
    const answer = (await api.request('POST', CRDS, { body })).expect(201);
    expect(answer.warnings).toEqual([]);
  }
  await eventually(async () => {
    for (const { metadata } of KUBEVIRT_CRDS) {
      const { json } = (await api.request('GET', `${CRDS}/${metadata.name}`)).expect(200);
      expect(conditionsOf(json)).toMatchObject({ Established: 'True', NamesAccepted: 'True' });
      expect(conditionsOf(json)['NonStructuralSchema']).toBeUndefined();
    }
  });
});
afterAll(() => api.stop());

function conditionsOf(object: Anything): Record<string, string> {
  return Object.fromEntries((object.status.conditions as Anything[]).map(({ type, status }) => [type, status]));
}

function pathOf(object: KubeObject): string {
  const crd = KUBEVIRT_CRDS.find((each) => (each.spec as Anything).names.kind === object.kind);
  if (!crd) throw new Error(`no definition of ${object.kind}`);
  const { names, scope } = crd.spec as Anything;
  const { group, version } = parseApiVersion(object.apiVersion);
  return `/apis/${group}/${version}/${scope === 'Namespaced' ? `namespaces/${namespace}/` : ''}${names.plural}`;
}

function create(object: KubeObject): Promise<Answer> {
  return api.request('POST', `${pathOf(object)}?fieldValidation=Strict`, { body: object });
}

const kubevirt = (plural: string): string => `/apis/kubevirt.io/v1/namespaces/${namespace}/${plural}`;

describe('manifests written for KubeVirt', () => {
  const all = [
    CONTAINER_DISK_MACHINE,
    PLACED_MACHINE,
    INSTANCETYPE_MACHINE,
    GUESTS,
    CONFIGURATION,
    MIGRATIONS,
    POLICIES,
  ].flatMap(objectsOf);
  it.each(all.map((object) => [`${object.kind} ${object.metadata.name}`, object] as const))(
    '%s loses nothing',
    async (_, object) => {
      const answer = (await create(object)).expect(201);
      expect(answer.warnings).toEqual([]);
      const { json } = (await api.request('GET', `${pathOf(object)}/${object.metadata.name}`)).expect(200);
      expect(json.spec).toEqual(object.spec);
      expect(json.metadata.labels).toEqual(object.metadata.labels);
    },
  );
});

function machine(template: object, spec: object = {}): KubeObject {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { generateName: 'bad-' },
    spec: { runStrategy: 'Halted', template: { spec: template }, ...spec },
  };
}

describe('kubectl explain', () => {
  it('has a sentence for every field', () => {
    const silent: string[] = [];
    const look = (schema: Schema, path: string): void => {
      if (!/^\S.*\.$/.test(schema.description ?? '')) silent.push(path);
      for (const [field, each] of Object.entries(schema.properties ?? {})) look(each, `${path}.${field}`);
      if (schema.items) look(schema.items, `${path}[]`);
    };
    for (const { spec, metadata } of KUBEVIRT_CRDS) {
      const [{ schema }] = (spec as Anything).versions;
      const { spec: ofSpec, status } = schema.openAPIV3Schema.properties;
      // What is passed on to pods is explained there, and not by us.
      for (const [name, each] of Object.entries({ spec: ofSpec, ...(status ? { status } : {}) }))
        look(each as Schema, `${metadata.name}.${name}`);
    }
    expect(silent.filter((path) => !/\.(affinity|tolerations|topologySpreadConstraints)\b/.test(path))).toEqual([]);
  });
});

describe('bad manifests', () => {
  const domain = (fields: object): object => ({ domain: { devices: {}, ...fields } });
  const devices = (fields: object): object => ({ domain: { devices: fields } });
  const volume = (fields: object): object => ({ ...domain({}), volumes: [{ name: 'v', ...fields }] });
  it.each<[what: string, object: KubeObject, status: number, text: string]>([
    ['no domain', machine({}), 422, 'spec.template.spec.domain: Required value'],
    ['no template', machine({}, { template: undefined }), 422, 'spec.template: Required value'],
    [
      'an unknown strategy',
      machine(domain({}), { runStrategy: 'Sometimes' }),
      422,
      'spec.runStrategy: Unsupported value: "Sometimes"',
    ],
    [
      'an unknown eviction strategy',
      machine({ ...domain({}), evictionStrategy: 'Migrate' }),
      422,
      'spec.template.spec.evictionStrategy: Unsupported value: "Migrate"',
    ],
    [
      'no amount',
      machine(domain({ memory: { guest: 'much' } })),
      422,
      'spec.template.spec.domain.memory.guest: Invalid value: "much"',
    ],
    [
      'fewer cores than none',
      machine(domain({ cpu: { cores: -1 } })),
      422,
      'spec.template.spec.domain.cpu.cores: Invalid value: -1',
    ],
    [
      'half a core',
      machine(domain({ cpu: { cores: 1.5 } })),
      422,
      'spec.template.spec.domain.cpu.cores: Invalid value',
    ],
    [
      'a disk without a name',
      machine(devices({ disks: [{ disk: {} }] })),
      422,
      'spec.template.spec.domain.devices.disks[0].name: Required value',
    ],
    [
      'more disks than a machine has room for',
      machine(devices({ disks: Array.from({ length: 257 }, (_, index) => ({ name: `d${index}` })) })),
      422,
      'spec.template.spec.domain.devices.disks: Too many: 257: must have at most 256 items',
    ],
    [
      'a port without a number',
      machine(devices({ interfaces: [{ name: 'a', ports: [{ name: 'x' }] }] })),
      422,
      'spec.template.spec.domain.devices.interfaces[0].ports[0].port: Required value',
    ],
    [
      'an image without a name',
      machine(volume({ containerDisk: {} })),
      422,
      'spec.template.spec.volumes[0].containerDisk.image: Required value',
    ],
    [
      'a wrong type of host disk',
      machine(volume({ hostDisk: { path: '/x', type: 'File' } })),
      422,
      'spec.template.spec.volumes[0].hostDisk.type: Unsupported value: "File"',
    ],
    [
      'a rule without a skew',
      machine({ ...domain({}), topologySpreadConstraints: [{ topologyKey: 'a' }] }),
      422,
      'spec.template.spec.topologySpreadConstraints[0].maxSkew: Required value',
    ],
    [
      'ports from the last to the first',
      {
        apiVersion: 'kubevirt.io/v1',
        kind: 'KubeVirt',
        metadata: { generateName: 'bad-' },
        spec: { configuration: { migrations: { portRange: { first: 50_000, last: 49_000 } } } },
      },
      422,
      'spec.configuration.migrations.portRange: Invalid value: "object": the first must not be after the last',
    ],
    ['a slip of the pen', machine(domain({ cpus: {} })), 400, 'unknown field "spec.template.spec.domain.cpus"'],
    [
      'another, deeper',
      machine(devices({ disks: [{ name: 'a', disk: { buss: 'sata' } }] })),
      400,
      'unknown field "spec.template.spec.domain.devices.disks[0].disk.buss"',
    ],
  ])('%s is refused by the name of its field', async (_, object, status, text) => {
    const answer = (await create(object)).expect(status);
    expect(answer.json.message).toContain(text);
  });
});

describe('kubectl get', () => {
  const table = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' };
  const columnsOf = (json: Anything, isWide: boolean): string[] =>
    json.columnDefinitions.filter((each: Anything) => isWide || each.priority === 0).map((each: Anything) => each.name);

  it('shows machines as KubeVirt does', async () => {
    const body = { ...machine({ domain: { devices: {} } }), metadata: { name: 'shown' } };
    (await api.request('POST', kubevirt(MACHINES), { body })).expect(201);
    const status = { printableStatus: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
    await patchStatus(MACHINES, 'shown', status);
    const { json } = await api.request('GET', `${kubevirt(MACHINES)}/shown`, { headers: table });
    expect(columnsOf(json, true)).toEqual(['Name', 'Age', 'Status', 'Ready']);
    expect(json.rows[0].cells).toEqual(['shown', expect.stringMatching(/^\d+s$/), 'Running', 'True']);
  });
  it('shows guests as KubeVirt does', async () => {
    await makeGuest('shown');
    await patchStatus(GUESTS_PATH, 'shown', {
      phase: 'Running',
      nodeName: 'n1',
      interfaces: [{ name: 'default', ipAddress: '10.0.0.7' }],
      conditions: [
        { type: 'Ready', status: 'True' },
        { type: 'LiveMigratable', status: 'False', reason: 'DisksNotLiveMigratable' },
      ],
    });
    const { json } = await api.request('GET', `${kubevirt(GUESTS_PATH)}/shown`, { headers: table });
    expect(columnsOf(json, false)).toEqual(['Name', 'Age', 'Phase', 'IP', 'NodeName', 'Ready']);
    expect(columnsOf(json, true).slice(6)).toEqual(['Live-Migratable', 'Paused']);
    expect(json.rows[0].cells.slice(2)).toEqual(['Running', '10.0.0.7', 'n1', 'True', 'False', null]);
  });
  it('shows migrations: what moves, why, from where to where, and how far it is', async () => {
    const plural = 'virtualmachineinstancemigrations';
    const body = {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstanceMigration',
      metadata: { name: 'shown' },
      spec: { vmiName: 'web', cause: 'APIEviction', priority: 'system-critical' },
    };
    (await api.request('POST', kubevirt(plural), { body })).expect(201);
    await patchStatus(plural, 'shown', {
      phase: 'Running',
      effectivePriority: 100,
      progress: { percent: 42, summary: '42%, 12s left' },
      migrationState: { sourceNode: 'n1', targetNode: 'n2', mode: 'PreCopy' },
    });
    const { json } = await api.request('GET', `${kubevirt(plural)}/shown`, { headers: table });
    expect(columnsOf(json, false).slice(1)).toEqual([
      'Phase',
      'VMI',
      'Priority',
      'Cause',
      'Source',
      'Target',
      'Progress',
      'Age',
    ]);
    expect(json.rows[0].cells.slice(1, 8)).toEqual(['Running', 'web', 100, 'APIEviction', 'n1', 'n2', '42%, 12s left']);
  });
  it('serves migrations in the version before, and says that it is old', async () => {
    const path = `/apis/kubevirt.io/v1alpha3/namespaces/${namespace}/virtualmachineinstancemigrations/shown`;
    const { json, warnings } = (await api.request('GET', path)).expect(200);
    expect(json).toMatchObject({ apiVersion: 'kubevirt.io/v1alpha3', spec: { vmiName: 'web' } });
    expect(warnings).toEqual([expect.stringContaining('deprecated; use kubevirt.io/v1')]);
  });
  it('knows the kinds by their short names', async () => {
    const discovered = (await api.request('GET', '/apis/kubevirt.io/v1')).json.resources as Anything[];
    const names = discovered.map(({ name, singularName, shortNames, categories, namespaced }) => ({
      name,
      singularName,
      shortNames,
      categories,
      namespaced,
    }));
    expect(names).toContainEqual({
      name: 'virtualmachines',
      singularName: 'virtualmachine',
      shortNames: ['vm', 'vms'],
      categories: ['all'],
      namespaced: true,
    });
    expect(names.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['virtualmachines/status', 'virtualmachineinstances/status', 'kubevirts/status']),
    );
  });
});

async function makeGuest(name: string): Promise<void> {
  const body = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name },
    spec: { domain: { devices: {} } },
  };
  (await api.request('POST', kubevirt(GUESTS_PATH), { body })).expect(201);
}

async function patchStatus(plural: string, name: string, status: object): Promise<void> {
  (await tryStatus(plural, name, status)).expect(200);
}

function tryStatus(plural: string, name: string, status: object): Promise<Answer> {
  return api.request('PATCH', `${kubevirt(plural)}/${name}/status`, {
    body: { status },
    headers: { 'content-type': 'application/merge-patch+json' },
  });
}

describe('the right to run', () => {
  const runner = (node: string, pod = 'p'): object => ({ node, nodeUID: `uid-${node}`, podUID: `${pod}-${node}` });
  const A = runner('a');
  const B = runner('b');
  const volumes = [{ name: 'root', claimUID: 'c', imageEpoch: 1 }];
  const record = (epoch: number, holder?: object, successor?: object): object => ({
    epoch,
    holder: holder ?? null,
    successor: successor ?? null,
    volumes,
  });
  let sequence = 0;
  const change = async (from: object, to: object | null): Promise<Answer> => {
    const name = `right-${sequence++}`;
    await makeGuest(name);
    await patchStatus(GUESTS_PATH, name, { rightToRun: from });
    return tryStatus(GUESTS_PATH, name, { rightToRun: to });
  };

  it.each([
    ['start, after a seizure', record(4), record(5, A)],
    ['reserve', record(4, A), record(4, A, B)],
    ['abort', record(4, A, B), record(4, A)],
    ['take', record(4, A, B), record(5, B)],
    [
      'take, on other claims',
      record(4, A, B),
      { ...record(5, B), volumes: [{ name: 'root', claimUID: 'd', imageEpoch: 5 }] },
    ],
    ['refuse', record(4, A, B), record(5, A)],
    ['seize', record(4, A), record(5)],
    ['seize both', record(4, A, B), record(5)],
    ['raise, after API data was restored', record(4, A), record(40, A)],
    ['nothing', record(4, A, B), record(4, A, B)],
  ])('lets pass: %s', async (_, from, to) => {
    expect((await change(from, to)).status).toBe(200);
  });
  it.each<[what: string, from: object, to: object | null, text: string]>([
    [
      'an older epoch',
      record(4, A),
      record(3, A),
      'status.rightToRun.epoch: Invalid value: "object": the epoch may only grow',
    ],
    ['another holder in the same epoch', record(4, A, B), record(4, B), 'the holder may only change with a new epoch'],
    ['no holder in the same epoch', record(4, A), record(4), 'the holder may only change with a new epoch'],
    [
      'a holder who was nobody in the same epoch',
      record(4),
      record(4, A),
      'the holder may only change with a new epoch',
    ],
    ['a holder whom nobody reserved', record(4, A), record(5, B), 'the right passes only from nobody'],
    ['a holder other than the successor', record(4, A, B), record(5, runner('c')), 'the right passes only from nobody'],
    ['another pod of the same node', record(4, A), record(5, runner('a', 'q')), 'the right passes only from nobody'],
    ['another successor', record(4, A, B), record(4, A, runner('c')), 'the first must be aborted'],
    ['a successor from the start', record(4, A), record(5, A, B), 'a new epoch begins without a successor'],
    ['another holder after a leap', record(4, A, B), record(9, B), 'raised by more than one'],
    [
      'another claim in the same epoch',
      record(4, A),
      { ...record(4, A), volumes: [{ name: 'root', claimUID: 'd', imageEpoch: 1 }] },
      'volumes are on other claims only with a new epoch',
    ],
    ['oblivion', record(4, A), null, 'the right to run may not be forgotten'],
    ['no epoch at all', record(4, A), { epoch: null }, 'status.rightToRun.epoch: Required value'],
  ])('refuses: %s', async (_, from, to, text) => {
    const answer = await change(from, to);
    expect(answer.json.message).toContain(text);
    expect(answer.status).toBe(422);
  });
  it('cannot be written where the spec is', async () => {
    await makeGuest('aside');
    await patchStatus(GUESTS_PATH, 'aside', { rightToRun: record(2, A) });
    const path = `${kubevirt(GUESTS_PATH)}/aside`;
    const headers = { 'content-type': 'application/merge-patch+json' };
    (await api.request('PATCH', path, { body: { status: { rightToRun: { epoch: 9 } } }, headers })).expect(200);
    expect((await api.request('GET', path)).json.status.rightToRun.epoch).toBe(2);
  });
  it('is remembered by machines, whose epoch may only grow, too', async () => {
    const body = { ...machine({ domain: { devices: {} } }), metadata: { name: 'memory' } };
    (await api.request('POST', kubevirt(MACHINES), { body })).expect(201);
    await patchStatus(MACHINES, 'memory', { rightToRun: { epoch: 7, grantedAway: true } });
    await patchStatus(MACHINES, 'memory', { rightToRun: { epoch: 8, grantedAway: null, volumes } });
    const answer = await tryStatus(MACHINES, 'memory', { rightToRun: { epoch: 7 } });
    expect(answer.json.message).toContain('the epoch may only grow');
  });
});
