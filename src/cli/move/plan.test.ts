import { describe, expect, it } from 'vitest';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import type { JsonObject, KubeObject } from '../../api/meta.ts';
import { INSTANCETYPES } from '../../control/resources.ts';
import type { PersistentVolumeClaim, StorageClass } from '../../migration/fit/objects.ts';
import { moveId, planOf } from './plan.ts';
import { EPOCH_ANNOTATION, MOVE_LABEL } from './receiving-machine.ts';
import { rightsOf } from './rights.ts';
import type { SeenMove } from './seen.ts';

/** From what is on both sides to what is to be made, and what is in the way. */

const GATES = { developerConfiguration: { featureGates: ['DecentralizedLiveMigration'] } };
const UUID = 'aaaaaaaa-0000-4000-8000-000000000000';

function claim(name: string, more: JsonObject = {}): PersistentVolumeClaim {
  const spec = { accessModes: ['ReadWriteOnce'], storageClassName: 'local', volumeName: 'pv-7' };
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name,
      namespace: 'shop',
      annotations: { 'pv.kubernetes.io/bind-completed': 'yes', 'volume.kubernetes.io/selected-node': 'node-a' },
    },
    spec: { ...spec, resources: { requests: { storage: '1Gi' } } },
    status: { phase: 'Bound', capacity: { storage: '2Gi' } },
    ...more,
  } as PersistentVolumeClaim;
}

function plain(kind: string, name: string, data: Record<string, string>, more = {}): KubeObject {
  return { apiVersion: 'v1', kind, metadata: { name, namespace: 'shop', uid: `uid-of-${name}`, ...more }, data };
}

const machine = {
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name: 'web', namespace: 'shop', uid: 'uid-web', labels: { app: 'web' } },
  spec: {
    running: true,
    instancetype: { kind: 'VirtualMachineInstancetype', name: 'small', revisionName: 'web-small-1' },
    dataVolumeTemplates: [{ metadata: { name: 'root' } }],
    template: {
      spec: {
        domain: { devices: { interfaces: [{ name: 'net', bridge: {} }] } },
        networks: [{ name: 'net', multus: { networkName: 'blue' } }],
        volumes: [
          { name: 'root', dataVolume: { name: 'root' } },
          { name: 'seed', cloudInitNoCloud: { secretRef: { name: 'seed' } } },
          { name: 'settings', configMap: { name: 'settings' } },
          { name: 'extra', configMap: { name: 'extra', optional: true } },
        ],
      },
    },
  },
} as unknown as VirtualMachine;

const guest = {
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  metadata: { name: 'web', namespace: 'shop', uid: 'uid-guest' },
  spec: {
    domain: {
      firmware: { uuid: UUID, serial: 'A-1' },
      cpu: { sockets: 1, cores: 1, threads: 1 },
      memory: { guest: '64Mi' },
      devices: { interfaces: [{ name: 'net', bridge: {}, macAddress: '02:00:00:00:00:0a' }] },
    },
    volumes: [{ name: 'root', dataVolume: { name: 'root' } }],
  },
  status: { phase: 'Running', nodeName: 'node-a', rightToRun: { epoch: 1 } },
} as unknown as VirtualMachineInstance;

const small = {
  apiVersion: 'instancetype.kubevirt.io/v1beta1',
  kind: 'VirtualMachineInstancetype',
  metadata: { name: 'small', namespace: 'shop' },
  spec: { cpu: { guest: 1 }, memory: { guest: '64Mi' } },
};
const sizing = (object: object | undefined): SeenMove['source']['instancetype'] =>
  ({ resource: INSTANCETYPES.get('virtualmachineinstancetype'), name: 'small', object }) as never;

type Parts = { source?: object; target?: object; request?: object; isSameCluster?: boolean };

function seen({ source, target, request, isSameCluster = false }: Parts = {}): SeenMove {
  const side = {
    claims: new Map(),
    secrets: new Map(),
    configMaps: new Map(),
    instancetype: undefined,
    preference: undefined,
    guest: undefined,
    configuration: GATES,
    trust: 'Trusted',
    migrations: [],
    denied: [],
  };
  return {
    isSameCluster,
    request: {
      from: { namespace: 'shop', name: 'web' },
      to: { namespace: 'west', name: 'web' },
      storageClasses: new Map(),
      networks: new Map(),
      connectURL: undefined,
      toCluster: 'west',
      toServer: 'https://west:6443',
      back: ' --context west --to-context east',
      ...request,
    },
    source: {
      ...side,
      machine,
      guest,
      claims: new Map([['root', claim('root')]]),
      secrets: new Map([['seed', plain('Secret', 'seed', { userdata: 'eA==' })]]),
      configMaps: new Map([['settings', plain('ConfigMap', 'settings', { a: '1' })]]),
      instancetype: sizing(small),
      clusterId: 'east',
      ...source,
    },
    target: {
      ...side,
      machine: undefined,
      namespace: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'west' } },
      serviceAccounts: new Set(),
      storageClasses: new Map([['local', {} as StorageClass]]),
      addresses: ['10.0.0.9:9185'],
      instancetype: sizing(undefined),
      clusterId: 'west',
      ...target,
    },
  } as unknown as SeenMove;
}

const ID = moveId(seen());
const MINE = { [MOVE_LABEL]: ID };
/** Of this move, and of the epoch in which the guest is. */
const OURS = { labels: MINE, annotations: { [EPOCH_ANNOTATION]: '1' } };
const there = (name: string, more: object = {}): VirtualMachine =>
  ({ ...machine, metadata: { ...machine.metadata, namespace: 'west', name, labels: {} }, ...more }) as VirtualMachine;

describe('what a move is known by', () => {
  const idOf = (target: object, toServer = 'https://west'): string =>
    moveId(seen({ target: { clusterId: undefined, namespace: 'unknown', ...target }, request: { toServer } }));
  const namespace = (uid: string): object => ({ namespace: { metadata: { name: 'west', uid } } });

  it('tells clusters apart by what can be read of them', () => {
    expect(idOf({ clusterId: 'a' })).not.toBe(idOf({ clusterId: 'b' }));
    expect(idOf(namespace('a'))).not.toBe(idOf(namespace('b')));
    expect(idOf({}, 'https://east')).not.toBe(idOf({}, 'https://west'));
  });

  it('is the same by whichever way the same cluster is reached', () => {
    expect(idOf(namespace('a'), 'https://east')).toBe(idOf(namespace('a'), 'https://west'));
    expect(idOf({ clusterId: 'a' }, 'https://east')).toBe(idOf({ clusterId: 'a', ...namespace('b') }, 'https://west'));
  });
});

describe('what has to be made', () => {
  const plan = planOf(seen());

  it('is all that the machine refers to, then the machine', () => {
    expect(plan).toMatchObject({ obstacles: [], progress: 'new', connectURL: '10.0.0.9:9185', key: undefined });
    expect(plan.objects.map(({ object, state }) => [object.kind, object.metadata.name, state])).toEqual([
      ['Secret', 'seed', 'missing'],
      ['ConfigMap', 'settings', 'missing'],
      ['VirtualMachineInstancetype', 'small', 'missing'],
      ['PersistentVolumeClaim', 'root', 'missing'],
    ]);
    for (const { object } of plan.objects)
      expect(object.metadata).toMatchObject({ namespace: 'west', labels: { [MOVE_LABEL]: ID } });
  });

  it('has claims that are blank, unbound, and as large as those of the source really are', () => {
    const [blank] = plan.objects.filter(({ object }) => object.kind === 'PersistentVolumeClaim');
    expect(blank?.object).toEqual({
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'root', namespace: 'west', ...OURS },
      spec: {
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'local',
        resources: { requests: { storage: '2Gi' } },
      },
    });
  });

  it('has a machine that waits, and is the same to its guest whenever it starts', () => {
    const { object, state } = plan.machine;
    expect(state).toBe('missing');
    expect(object.metadata).toEqual({
      name: 'web',
      namespace: 'west',
      labels: { app: 'web', ...MINE },
      annotations: { ...OURS.annotations, 'kubevirt.io/restore-run-strategy': 'Always' },
    });
    expect(object.spec).toMatchObject({
      runStrategy: 'WaitAsReceiver',
      instancetype: { kind: 'VirtualMachineInstancetype', name: 'small' },
    });
    expect(object.spec).not.toHaveProperty('running');
    expect(object.spec).not.toHaveProperty('dataVolumeTemplates');
    expect(object.spec.instancetype).not.toHaveProperty('revisionName');
    const { domain, volumes } = object.spec.template.spec ?? {};
    expect(domain?.firmware).toEqual({ uuid: UUID, serial: 'A-1' });
    expect(domain?.devices.interfaces).toEqual([{ name: 'net', bridge: {}, macAddress: '02:00:00:00:00:0a' }]);
    expect(volumes?.[0]).toEqual({ name: 'root', persistentVolumeClaim: { claimName: 'root' } });
  });

  it('is on other networks and storage classes where that is asked for', () => {
    const request = { networks: new Map([['blue', 'other/green']]), storageClasses: new Map([['local', 'fast']]) };
    const storageClasses = new Map([['fast', {} as StorageClass]]);
    const mapped = planOf(seen({ request, target: { storageClasses } }));
    expect(mapped.obstacles).toEqual([]);
    expect(mapped.machine.object.spec.template.spec?.networks?.[0]?.multus?.networkName).toBe('other/green');
    expect(mapped.objects.at(-1)?.object).toMatchObject({ spec: { storageClassName: 'fast' } });
  });

  it('takes the interface that a guest got though its template has none', () => {
    const template = { spec: { domain: { devices: {} }, volumes: machine.spec.template.spec?.volumes } };
    const bare = { ...machine, spec: { ...machine.spec, template } };
    const { object } = planOf(seen({ source: { machine: bare } })).machine;
    expect(object.spec.template.spec?.domain.devices.interfaces?.[0]?.macAddress).toBe('02:00:00:00:00:0a');
  });

  it('takes the rights to make it, and to remove it again', () => {
    const { source, target } = rightsOf(plan, seen().request);
    const told = (rights: typeof source): string[] =>
      rights.map(({ verb, resource, namespace }) => `${verb} ${resource.plural} ${namespace}`);
    expect(told(source)).toEqual([
      'create virtualmachineinstancemigrations shop',
      'delete virtualmachineinstancemigrations shop',
    ]);
    expect(told(target)).toContain('create persistentvolumeclaims west');
    expect(told(target)).toContain('delete virtualmachines west');
  });
});

describe('what is there already', () => {
  it('is used where it is of this move, and where it is not is left as it is', () => {
    const secrets = new Map([['seed', plain('Secret', 'seed', { userdata: 'eQ==' })]]);
    const configMaps = new Map([['settings', plain('ConfigMap', 'settings', { a: '1' }, OURS)]]);
    const claims = new Map([['root', { ...claim('root'), metadata: { name: 'root', ...OURS } }]]);
    const plan = planOf(seen({ target: { secrets, configMaps, claims } }));
    expect(plan.obstacles).toEqual([]);
    expect(plan.objects.map(({ state }) => state)).toEqual(['there', 'made', 'missing', 'made']);
    expect(plan.notes[0]).toContain('the secret seed in west is not as that in shop');
  });

  it('is not taken for blank where the guest has been elsewhere since: an earlier move has left it there', () => {
    const old = { labels: MINE, annotations: { [EPOCH_ANNOTATION]: '0' } };
    const secrets = new Map([['seed', plain('Secret', 'seed', { userdata: 'eQ==' }, old)]]);
    const claims = new Map([['root', { ...claim('root'), metadata: { name: 'root', ...old } }]]);
    const { obstacles, objects } = planOf(seen({ target: { secrets, claims } }));
    expect(obstacles.map(({ what }) => what)).toEqual([
      'the claim root is in west already, and what is in it would be written over',
    ]);
    expect(objects.map(({ state }) => state)).toEqual(['there', 'missing', 'missing']);
    // Whose machine still waits has had nobody.
    const spec = { ...machine.spec, running: undefined, runStrategy: 'WaitAsReceiver' };
    const metadata = { name: 'web', namespace: 'west', labels: MINE };
    const waits = { machine: there('web', { metadata, spec }), claims };
    expect(planOf(seen({ target: waits })).obstacles).toEqual([]);
  });

  const half = (phase: string, spec: object): VirtualMachineInstanceMigration =>
    ({ metadata: { name: 'h', labels: MINE }, spec, status: { phase } }) as unknown as VirtualMachineInstanceMigration;
  const receive = half('WaitingForSync', { vmName: 'web', receive: { key: 'k-1' } });
  const send = half('Running', { vmName: 'web', sendTo: { key: 'k-1' } });
  const heard = { ...send, status: { phase: 'Running', phaseTransitionTimestamps: [{ phase: 'Scheduling' }] } };
  const waiting = { machine: there('web', { metadata: { name: 'web', namespace: 'west', labels: MINE } }) };
  const away = { ...machine, status: { rightToRun: { epoch: 2, grantedAway: true } } };
  const holder = { node: 'n', nodeUID: 'n-1', podUID: 'p-1' };
  const leaving = { ...guest, status: { phase: 'Succeeded', rightToRun: { epoch: 2, holder, across: true } } };

  it.each<[string, Parts, object]>([
    ['only the half of the target', { target: { migrations: [receive] } }, { key: 'k-1', progress: 'new' }],
    [
      'both halves',
      { source: { migrations: [send] }, target: { migrations: [receive], ...waiting } },
      { key: 'k-1', progress: 'under way' },
    ],
    [
      'only the half of the source, of which nobody there has heard',
      { source: { migrations: [send] } },
      { key: 'k-1', progress: 'new' },
    ],
    [
      'only the half of the source, where another pair has one there',
      {
        source: { migrations: [send] },
        target: { migrations: [{ ...receive, spec: { vmName: 'web', receive: { key: 'k-2' } } }] },
      },
      { key: 'k-1', progress: 'new' },
    ],
    [
      'only the half of the source, where the other one was there',
      { source: { migrations: [heard] } },
      { key: 'k-1', progress: 'under way' },
    ],
    [
      'only the half of the source, where it is called off',
      { source: { migrations: [{ ...send, metadata: { ...send.metadata, deletionTimestamp: 'now' } }] } },
      { key: 'k-1', progress: 'under way' },
    ],
    [
      'no half of another part, nor of another machine',
      {
        source: { migrations: [receive] },
        target: { migrations: [{ ...receive, spec: { ...receive.spec, vmName: 'x' } }] },
      },
      { key: undefined, progress: 'new' },
    ],
    [
      'halves that are over',
      { source: { migrations: [half('Failed', send.spec)] }, target: { migrations: [half('Failed', receive.spec)] } },
      { key: undefined, progress: 'new' },
    ],
    [
      'the half of the target, where the guest has left',
      { source: { machine: away }, target: { migrations: [receive], ...waiting } },
      { key: 'k-1', progress: 'under way' },
    ],
    [
      'a half that is called off',
      { target: { migrations: [{ ...receive, metadata: { ...receive.metadata, deletionTimestamp: 'now' } }] } },
      { key: 'k-1', progress: 'under way' },
    ],
    [
      'halves that have succeeded, before the machine that it was says so',
      {
        source: { guest: leaving, migrations: [half('Succeeded', send.spec)] },
        target: { migrations: [half('Succeeded', receive.spec)], ...waiting },
      },
      { key: 'k-1', progress: 'under way' },
    ],
    ['a guest that went there', { source: { machine: away }, target: waiting }, { progress: 'over' }],
    [
      'nothing where another machine of the name is there',
      { source: { machine: away }, target: { machine: there('web', { metadata: { name: 'web', uid: 'other' } }) } },
      {
        progress: 'new',
        obstacles: expect.arrayContaining([{ what: expect.stringMatching(/is not in shop/), fix: expect.any(String) }]),
      },
    ],
    [
      'nothing where a machine waits in vain',
      {
        source: { machine: away },
        target: {
          machine: there('web', { spec: { ...machine.spec, running: undefined, runStrategy: 'WaitAsReceiver' } }),
        },
      },
      { progress: 'new' },
    ],
  ])('goes on with %s', (_, parts, expected) => expect(planOf(seen(parts))).toMatchObject(expected));

  it('takes a machine back that the same guest left', () => {
    const firmware = { uuid: UUID };
    const template = { spec: { domain: { firmware, devices: {}, memory: { guest: '64Mi' } }, volumes: [] } };
    const spec = { runStrategy: 'Halted', template };
    const left = there('web', { spec, status: { rightToRun: { epoch: 3, grantedAway: true } } });
    const parts = { source: { claims: new Map(), instancetype: undefined }, target: { machine: left } };
    const back = planOf(seen(parts));
    expect(back).toMatchObject({ machine: { state: 'taken back' }, obstacles: [] });
    expect(back.objects.map(({ object, state }) => [object.kind, object.metadata.name, state])).toEqual([
      ['Secret', 'seed', 'missing'],
      ['ConfigMap', 'settings', 'missing'],
    ]);
    const other = there('web', {
      spec: { ...spec, template: { spec: { domain: { ...template.spec.domain, firmware: { uuid: 'b' } } } } },
      status: { rightToRun: { epoch: 3, grantedAway: true } },
    });
    expect(planOf(seen({ ...parts, target: { machine: other } })).obstacles).toMatchObject([
      { what: expect.stringContaining('kept for another guest') },
    ]);
  });
});

describe('what is in the way, and what to do about it', () => {
  const stopped = { ...guest, status: { phase: 'Succeeded' } };
  const fixed = { type: 'LiveMigratable', status: 'False', reason: 'HostDevice', message: 'a device' };
  const other = { metadata: { name: 'o', namespace: 'shop', uid: 'o' }, spec: { vmName: 'web' }, status: {} };
  const deleted = '2026-01-01T00:00:00Z';
  it.each<[string, Parts, RegExp, RegExp]>([
    ['a guest that does not run', { source: { guest: stopped } }, /web does not run/, /godwit start web -n shop/],
    [
      'a guest that went elsewhere',
      { source: { machine: { ...machine, status: { rightToRun: { epoch: 2, grantedAway: true } } } } },
      /is not in shop/,
      /move it from where it is/,
    ],
    [
      'a guest that cannot move',
      { source: { guest: { ...guest, status: { ...guest.status, conditions: [fixed] } } } },
      /HostDevice/,
      /describe vmi/,
    ],
    ['a migration of its own', { source: { migrations: [other] } }, /already in progress/, /migrate-cancel web/],
    [
      'what has the name of a half, and is none',
      {
        target: {
          migrations: [
            { metadata: { name: `receive-${ID}`, namespace: 'west', labels: MINE }, spec: { vmName: 'web' } },
          ],
        },
      },
      /receive-.* in west has the name of a half .* and is none/,
      /kubectl delete vmim receive-.* -n west/,
    ],
    ['a gate that is off here', { source: { configuration: {} } }, /gate .* is off in the cluster/, /kubectl patch/],
    ['a gate that is off there', { target: { configuration: {} } }, /is off in west/, /DecentralizedLiveMigration/],
    ['a cluster that is not trusted', { source: { trust: 'None' } }, /does not trust west/, /trust import/],
    ['a cluster that does not trust us', { target: { trust: 'Revoking' } }, /west no longer trusts/, /trust import/],
    ['no namespace', { target: { namespace: undefined } }, /no namespace west/, /kubectl create namespace west/],
    ['a name that is taken', { target: { machine: there('web') } }, /is in west already/, /--name/],
    [
      'a machine that goes away',
      { target: { machine: there('web', { metadata: { name: 'web', labels: MINE, deletionTimestamp: deleted } }) } },
      /being deleted/,
      /wait/,
    ],
    [
      'a machine that has come already, though the other one runs again',
      { target: { machine: there('web', { metadata: { name: 'web', namespace: 'west', labels: MINE } }) } },
      /does not wait for a guest/,
      /--name/,
    ],
    [
      'a mapping for a machine that is there',
      {
        target: { machine: there('web', { spec: { ...machine.spec, runStrategy: 'WaitAsReceiver' } }) },
        request: { networks: new Map([['blue', 'green']]) },
      },
      /networks and claims of its own/,
      /leave out --map-network/,
    ],
    ['a claim that is taken', { target: { claims: new Map([['root', claim('root')]]) } }, /written over/, /delete it/],
    ['no claim', { source: { claims: new Map() } }, /no claim root/, /get pvc -n shop/],
    [
      'no such storage class',
      { target: { storageClasses: new Map([['fast', {}]]) } },
      /no storage class local/,
      /--map-storage-class local=NAME, with one of fast/,
    ],
    [
      'a storage class that nothing has',
      { request: { storageClasses: new Map([['slow', 'local']]) } },
      /has the storage class slow/,
      /it has local/,
    ],
    ['a network that nothing is on', { request: { networks: new Map([['red', 'x']]) } }, /no network red/, /blue/],
    ['no secret', { source: { secrets: new Map() } }, /the secret seed/, /create it in west/],
    ['no instance type', { source: { instancetype: sizing(undefined) } }, /no instance type small/, /create it/],
    [
      'an instance type of another size',
      { target: { instancetype: sizing({ ...small, spec: { cpu: { guest: 1 }, memory: { guest: '128Mi' } } }) } },
      /would not fit .* bytes of memory/,
      /restart web/,
    ],
    ['what may not be read', { target: { denied: ['get secrets seed in west'] } }, /may not get secrets/, /ask/],
  ])('%s', (_, parts, what, fix) => {
    const { obstacles } = planOf(seen(parts));
    const expected = { what: expect.stringMatching(what), fix: expect.stringMatching(fix) };
    expect(obstacles).toContainEqual(expect.objectContaining(expected));
  });

  it('is nothing that could not be looked at, which is noted', () => {
    const unseen = { trust: undefined, configuration: undefined };
    const { obstacles, notes } = planOf(seen({ source: unseen, target: { ...unseen, storageClasses: undefined } }));
    expect(obstacles).toEqual([]);
    expect(notes).toHaveLength(6);
    expect(notes).toContain('whether nodes of the target have the network blue was not seen: nodes do not tell');
    expect(notes).toContain('whether west trusts this cluster was not seen: you may not look');
  });

  it('is no address that is not known yet: the half that is made first says it', () =>
    expect(planOf(seen({ target: { addresses: [] } }))).toMatchObject({ obstacles: [], connectURL: '' }));

  it('is no matter of trust, nor of two gates, inside one cluster', () =>
    expect(planOf(seen({ isSameCluster: true, target: { trust: 'None', configuration: {} } })).obstacles).toEqual([]));
});
