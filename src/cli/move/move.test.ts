import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { pairKeyOf } from '../../api/kubevirt/validate-migration.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import { isFinalMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { MIGRATION_FINALIZER, SYNCHRONIZATION_FINALIZER, SYSTEM_NAMESPACE } from '../../api/kubevirt/well-known.ts';
import type { JsonObject, KubeObject } from '../../api/meta.ts';
import { namespaces, secrets } from '../../cluster/resources.ts';
import { ControlScene, NAMESPACE } from '../../control/control.fixture.ts';
import { MigrationLeftovers } from '../../control/migration/migration-leftovers.ts';
import { makeMigrations, PlayedAgents } from '../../control/migration/played-agents.fixture.ts';
import { PlayedPair } from '../../control/migration/played-pair.fixture.ts';
import { nodes, persistentVolumeClaims, resourceQuotas, storageClasses } from '../../control/resources.ts';
import { realRandom } from '../../env/real.ts';
import { silentLogger, testEnv } from '../../env/test.ts';
import { Client } from '../../kube/client.ts';
import { ObjectApplier } from '../../kube/apply-objects.ts';
import {
  kubeVirts,
  virtualMachineInstanceMigrations as migrations,
  virtualMachineInstances as guests,
  virtualMachines as machines,
} from '../../kube/kubevirt-resources.ts';
import type { Resource } from '../../kube/resource.ts';
import { TransportError, type TransportRequest, type TransportResponse } from '../../kube/transport.ts';
import { createAuthority, DAY_MS } from '../../machinery/x509/authority.ts';
import { importTrust } from '../../sync/trust/administration.ts';
import { parseBundle } from '../../sync/trust/bundle.ts';
import { TRUST_OBJECTS } from '../../sync/trust/objects.ts';
import { halvesOf } from './halves.ts';
import { endLines, forecastLines, forecastValue } from './move-report.ts';
import { LineView } from './move-view.ts';
import { Move, type MoveResult } from './move.ts';
import { MOVE_LABEL } from './receiving-machine.ts';
import type { MoveRequest } from './seen.ts';

/** Moves between two servers, with the controllers of migrations; the test plays all others, agents and synchronization. */

const AS_THE_WEBHOOK_LEAVES_IT = { finalizers: [MIGRATION_FINALIZER, SYNCHRONIZATION_FINALIZER] };
/** A few minutes of virtual time. */
const TURNS_MAX = 1500;
const ROOT = { name: 'root', sizeBytes: 2 ** 30, isBlock: false };
const MAC = '02:00:00:00:00:0a';
const UUID = 'aaaaaaaa-0000-4000-8000-000000000000';

const sceneOf = (): ControlScene => new ControlScene(makeMigrations, (context) => new MigrationLeftovers(context));
const [here, there] = [sceneOf(), sceneOf()];
let lines: string[];
let name: string;
let count = 0;

/** Lets the time of both sides pass until a promise is kept. */
async function kept<T>(promise: Promise<T>, pair?: PlayedPair): Promise<T> {
  const over = new AbortController();
  const done = promise.finally(() => over.abort());
  // Whoever awaits `done` below hears of the failure.
  done.catch(() => undefined);
  for (let turn = 0; !over.signal.aborted; turn++) {
    if (turn === TURNS_MAX) throw new Error(`it does not end: ${lines.join('; ')}`);
    for (const scene of [here, there]) await scene.pass(100, 100);
    await pair?.exchange();
  }
  return done;
}

async function idOf({ client, signal }: ControlScene): Promise<string> {
  return (await client.get(namespaces, '', 'kube-system', signal)).metadata.uid ?? '';
}

/** Where a cluster says that it is reached. */
async function saysAddresses({ client, signal }: ControlScene, addresses: readonly string[] | null): Promise<void> {
  const body = { status: { synchronizationAddresses: addresses } } as JsonObject;
  const patch = { type: 'merge' as const, body };
  await client.patch(kubeVirts, SYSTEM_NAMESPACE, 'kubevirt', patch, signal, { subresource: 'status' });
}

/** As clusters are that were told of each other. */
async function prepare(scene: ControlScene, other: ControlScene, address: string): Promise<void> {
  const { client, signal } = scene;
  await new PlayedAgents(scene).addNodes('node-a', 'node-b');
  await saysAddresses(scene, [address]);
  await (await ObjectApplier.of(client, signal)).apply(TRUST_OBJECTS, signal);
  const authority = await createAuthority(testEnv(), 'other', DAY_MS * 365);
  const authorities = parseBundle(authority.certificatePem);
  const document = { clusterId: await idOf(other), name: 'other', authorities };
  await importTrust(client, { document, nowMs: scene.clock.now() }, signal);
  await scene.create(storageClasses, { metadata: { name: 'disks' }, provisioner: 'x' } as never);
}

beforeAll(async () => {
  for (const scene of [here, there]) await scene.start();
  await prepare(here, there, 'here:9185');
  await prepare(there, here, 'there:9185');
});
afterAll(async () => {
  for (const scene of [here, there]) await scene.stop();
});

beforeEach(async () => {
  lines = [];
  name = `web-${++count}`;
  const volumes = [
    { name: 'root', persistentVolumeClaim: { claimName: name } },
    { name: 'seed', cloudInitNoCloud: { secretRef: { name } } },
  ];
  const domain = { devices: { interfaces: [{ name: 'net', masquerade: {} }] }, memory: { guest: '64Mi' } };
  const networks = [{ name: 'net', pod: {} }];
  const interfaces = [{ name: 'net', masquerade: {}, macAddress: MAC }];
  const template = { spec: { domain, networks, volumes } };
  await here.create(machines, { metadata: { name }, spec: { runStrategy: 'Always', template } } as never);
  await here.create(secrets, { metadata: { name }, data: { userdata: 'eA==' } } as never);
  await here.create(persistentVolumeClaims, {
    metadata: { name },
    spec: {
      accessModes: ['ReadWriteOnce'],
      storageClassName: 'disks',
      resources: { requests: { storage: '1Gi' } },
    },
  } as never);
  const running = { ...domain, devices: { interfaces }, firmware: { uuid: UUID } };
  await new PlayedAgents(here).addGuest(name, 'node-a', { spec: { domain: running, networks, volumes } } as never);
});

const request = (more: Partial<MoveRequest> = {}): MoveRequest => ({
  from: { namespace: NAMESPACE, name },
  to: { namespace: NAMESPACE, name },
  storageClasses: new Map(),
  networks: new Map(),
  connectURL: undefined,
  toCluster: 'there',
  toServer: 'https://there:6443',
  back: ' --context there --to-context here',
  ...more,
});

interface Life {
  writesLeft: number;
  /** What somebody else does before the first half is made. */
  beforeHalf?: () => Promise<void>;
  /** How the half there is from then on. */
  told?: JsonObject;
}

function moveOf(asked = request(), life: Life = { writesLeft: Number.POSITIVE_INFINITY }): Move {
  const print = (line: string): void => void lines.push(line);
  const env = { clock: here.clock, random: realRandom, log: silentLogger };
  const [source, target] = [here, there].map((scene) => mortal(scene, life)) as [Client, Client];
  return new Move({ request: asked, source, target, env, view: new LineView(print), print });
}

/** Somebody who is killed after so many writes: nothing of theirs arrives any more. */
function mortal(scene: ControlScene, life: Life): Client {
  const transport = scene.clientTransport();
  const send = async (asked: TransportRequest): Promise<TransportResponse> => {
    const isWrite = asked.method !== 'GET' && !/dryRun|accessreviews/.test(asked.path);
    if (isWrite && life.writesLeft <= 0) throw new TransportError('killed');
    if (isWrite && asked.path.includes('instancemigrations') && life.beforeHalf) {
      const { beforeHalf } = life;
      delete life.beforeHalf;
      await beforeHalf();
    }
    const response = await transport.send(asked);
    if (isWrite && response.status < 300) life.writesLeft--;
    const isHalf = /\/receive-[^?]*$/.test(asked.path.replace(/\?.*/, ''));
    return life.told && isHalf && !isWrite && response.status === 200 ? retold(response, life.told) : response;
  };
  return new Client({ send, close: () => undefined }, 'test');
}

/** The same object, with another status. */
function retold(response: TransportResponse, status: JsonObject): TransportResponse {
  async function* body(): AsyncGenerator<string> {
    const pieces: string[] = [];
    for await (const piece of response.body) pieces.push(piece);
    yield JSON.stringify({ ...(JSON.parse(pieces.join('')) as JsonObject), status });
  }
  return { ...response, body: body() };
}

const made = async (scene: ControlScene, resource: Resource): Promise<readonly KubeObject[]> =>
  (await scene.list(resource)).filter(({ metadata }) => metadata.labels?.[MOVE_LABEL] !== undefined);

/** What the halves on both sides know each other by. */
async function keysOf(): Promise<readonly unknown[]> {
  const halves = (await Promise.all([here, there].map((scene) => scene.list(migrations)))).flat();
  return halves.filter(({ spec }) => spec.vmName === name).map(({ spec }) => pairKeyOf(spec));
}

async function bothAre(): Promise<void> {
  for (let turn = 0; (await keysOf()).length < 2; turn++) {
    if (turn === TURNS_MAX) throw new Error(`there are no halves: ${lines.join('; ')}`);
    for (const scene of [here, there]) await scene.pass(100, 100);
  }
}

/** The half on one side, as soon as it is there. */
async function halfOf(scene: ControlScene): Promise<string> {
  for (let turn = 0; turn < TURNS_MAX; turn++) {
    for (const each of [here, there]) await each.pass(100, 100);
    const half = (await scene.list(migrations)).find((each) => each.spec.vmName === name && !isFinalMigration(each));
    if (!half) continue;
    await scene.patch(migrations, half.metadata.name ?? '', { metadata: AS_THE_WEBHOOK_LEAVES_IT });
    return half.metadata.name ?? '';
  }
  throw new Error(`there is no half: ${lines.join('; ')}`);
}

/** Both halves, as soon as they are there, and the machine that waits with its guest: nobody else makes that here. */
async function pairOf(): Promise<PlayedPair> {
  const [send, receive] = [await halfOf(here), await halfOf(there)];
  const pair = new PlayedPair(
    '',
    { agents: new PlayedAgents(here), guest: name, move: send },
    { agents: new PlayedAgents(there), guest: name, move: receive },
  );
  const { spec } = (await there.get(machines, name)).spec.template;
  await pair.addReceiver({ spec } as never);
  return pair;
}

/** What agents and the controllers of machines do until the guest is there. */
async function arrive(pair: PlayedPair): Promise<void> {
  await pair.runTarget([ROOT]);
  await pair.copy();
  await pair.take();
  await pair.exchange();
  await pair.give();
  await pair.reach('Succeeded', 'Succeeded');
  await here.patch(machines, name, { status: { rightToRun: { epoch: 2, grantedAway: true } } }, 'status');
}

describe('a move to another cluster', () => {
  it('makes all that is missing, follows both halves, and says what it leaves', async () => {
    const run = moveOf().run(here.signal);
    run.catch(() => undefined);
    await arrive(await pairOf());
    const result = await kept(run);
    expect(result.kind).toBe('moved');
    const machine = (await there.get(machines, name)) as VirtualMachine;
    const { domain } = machine.spec.template.spec ?? {};
    expect(domain).toMatchObject({ firmware: { uuid: UUID }, devices: { interfaces: [{ macAddress: MAC }] } });
    expect(machine.metadata.annotations).toMatchObject({ 'kubevirt.io/restore-run-strategy': 'Always' });
    expect(await there.get(secrets, name)).toMatchObject({ data: { userdata: 'eA==' } });
    expect(await there.get(persistentVolumeClaims, name)).toMatchObject({ spec: { storageClassName: 'disks' } });
    expect(lines).toEqual(
      expect.arrayContaining([
        `secret/${name} in shop created`,
        `virtualmachine/${name} in shop created`,
        expect.stringMatching(/^from shop\/web-1: Running on node-a/),
        expect.stringMatching(/^to shop\/web-1: Succeeded/),
      ]),
    );
    expect(endLines(result.prospect, request()).join('\n')).toContain(`kubectl delete pvc ${name} -n shop`);
    expect((await kept(moveOf().run(here.signal))).kind).toBe('moved');
  });

  it('removes what it made where the halves fail, and can be asked for again', async () => {
    const run = moveOf().run(here.signal);
    run.catch(() => undefined);
    const pair = await pairOf();
    await pair.meet();
    await there.delete(migrations, pair.target.move);
    // Nobody keeps the guest that waits where its machine goes.
    await pair.until(async () =>
      expect(['Failed', undefined]).toContain((await pair.find(pair.source))?.status?.phase),
    );
    const result = (await kept(run, pair)) as Extract<MoveResult, { kind: 'failed' }>;
    expect(result).toMatchObject({ kind: 'failed', left: { source: [], target: [] } });
    for (const resource of [machines, secrets, persistentVolumeClaims, migrations] as unknown as Resource[])
      expect((await made(there, resource)).filter(({ metadata }) => metadata.name === name)).toEqual([]);
    expect(await here.get(guests, name)).toMatchObject({ status: { phase: 'Running' } });
    expect(await here.find(secrets, name)).toBeDefined();
  });

  it('goes on after it was interrupted, with the same halves', async () => {
    const stopping = new AbortController();
    const first = moveOf();
    const run = first.run(stopping.signal);
    run.catch(() => undefined);
    const pair = await pairOf();
    stopping.abort();
    await expect(kept(run)).rejects.toThrow();
    expect(first.stage).toMatchObject({ kind: 'moving', halves: { send: pair.source.move } });
    lines = [];
    const second = moveOf().run(here.signal);
    second.catch(() => undefined);
    await arrive(pair);
    expect((await kept(second)).kind).toBe('moved');
    expect(lines[0]).toBe('the move is under way already, and is followed');
    expect((await here.list(migrations)).filter(({ spec }) => spec.vmName === name)).toHaveLength(1);
  });

  it('that is asked for twice in the same instant moves the guest once, and both say so', async () => {
    const runs = Promise.all([moveOf().run(here.signal), moveOf().run(here.signal)]);
    runs.catch(() => undefined);
    await bothAre();
    expect(await keysOf()).toHaveLength(2);
    expect(new Set(await keysOf()).size).toBe(1);
    await arrive(await pairOf());
    expect((await kept(runs)).map(({ kind }) => kind)).toEqual(['moved', 'moved']);
    expect(await keysOf()).toHaveLength(2);
    const created = lines.filter((line) => line.endsWith('created'));
    expect(created).toHaveLength(new Set(created).size);
    expect(lines).toContain('the move is under way already, and is followed');
  });

  it('leaves the half that somebody else has made meanwhile, though it cannot go on with it', async () => {
    const key = 'somebody-elses';
    let theirs: KubeObject | undefined;
    /** They have chosen the key of both halves, and something that this run has made is gone. */
    const beforeHalf = async (): Promise<void> => {
      const [machine] = (await there.list(machines)).filter(({ metadata }) => metadata.name === name);
      const id = machine?.metadata.labels?.[MOVE_LABEL] ?? '';
      const metadata = { name: halvesOf(id, key).receive, labels: { [MOVE_LABEL]: id } };
      const spec = { vmName: name, vmiName: name, receive: { key, migrationID: key } };
      theirs = await there.create(migrations, { metadata, spec } as never);
      await there.delete(secrets, name);
    };
    const run = moveOf(request(), { writesLeft: Number.POSITIVE_INFINITY, beforeHalf }).run(here.signal);
    run.catch(() => undefined);
    await bothAre();
    expect(await keysOf()).toEqual([key, key]);
    expect((await there.get(migrations, theirs?.metadata.name ?? '')).metadata.uid).toBe(theirs?.metadata.uid);
    await arrive(await pairOf());
    expect((await kept(run)).kind).toBe('moved');
    expect(lines.filter((line) => line.endsWith('deleted'))).toEqual([]);
  });

  it('goes on where it was killed while it removed what it had made, after whichever write', async () => {
    for (const removed of [0, 1, 2, 3, 4]) {
      const life = { writesLeft: Number.POSITIVE_INFINITY };
      const run = moveOf(request(), life).run(here.signal);
      run.catch(() => undefined);
      const pair = await pairOf();
      await pair.meet();
      life.writesLeft = removed;
      await here.delete(migrations, pair.source.move);
      await expect(kept(run, pair), `killed after ${removed}`).rejects.toThrow('killed');
      await there.delete(guests, name);
    }
    const run = moveOf().run(here.signal);
    run.catch(() => undefined);
    await arrive(await pairOf());
    expect((await kept(run)).kind).toBe('moved');
  });

  it('goes on where it was killed, after whichever write', async () => {
    const stages: string[] = [];
    // All that there is by then is said to be used, once both sides could begin.
    const writes = [
      ['secret', 1],
      ['claim', 1],
      ['machine', 1],
      ['half there', 1],
      ['said to be used', 2],
      ['half here', 4],
    ] as const;
    for (const [what, writesLeft] of writes) {
      const stopping = new AbortController();
      const killed = moveOf(request(), { writesLeft });
      const run = killed.run(stopping.signal);
      run.catch(() => undefined);
      // Nobody is killed by a write where there is nothing left to be written.
      if (what === 'half here') await bothAre().then(() => stopping.abort());
      await expect(kept(run), what).rejects.toThrow();
      stages.push(killed.stage.kind);
    }
    expect(stages).toEqual(['making', 'making', 'making', 'making', 'making', 'moving']);
    expect(new Set(await keysOf()).size).toBe(1);
    for (const resource of [machines, secrets, persistentVolumeClaims] as unknown as Resource[])
      expect((await made(there, resource)).filter(({ metadata }) => metadata.name === name)).toHaveLength(1);
  });

  it('goes where the half of the target says that it is reached, where nobody has said so before', async () => {
    await saysAddresses(there, null);
    const run = moveOf().run(here.signal);
    run.catch(() => undefined);
    const half = await halfOf(there);
    expect(await keysOf()).toHaveLength(1);
    await there.patch(migrations, half, { status: { syncEndpoint: 'there:9999' } }, 'status');
    await arrive(await pairOf());
    expect((await kept(run)).kind).toBe('moved');
    const sent = (await here.list(migrations)).find(({ spec }) => spec.vmName === name);
    expect(sent?.spec.sendTo?.connectURL).toBe('there:9999');
    await saysAddresses(there, ['there:9185']);
  });

  it('makes nothing that stays where the target never says where it is reached', async () => {
    await saysAddresses(there, null);
    await expect(kept(moveOf().run(here.signal))).rejects.toThrow(/does not say where .* --connect-url/);
    for (const resource of [machines, secrets, persistentVolumeClaims, migrations] as unknown as Resource[])
      expect((await made(there, resource)).filter(({ metadata }) => metadata.name === name)).toEqual([]);
    expect(await keysOf()).toEqual([]);
    await saysAddresses(there, ['there:9185']);
  });

  it('says why its half failed before the target said where it is reached', async () => {
    await saysAddresses(there, null);
    const conditions = [{ type: 'migrationFailed', status: 'True', reason: 'NoRoom', message: 'no room' }];
    const life = { writesLeft: Number.POSITIVE_INFINITY, told: { phase: 'Failed', conditions } };
    const result = await kept(moveOf(request(), life).run(here.signal));
    expect(result).toMatchObject({
      kind: 'failed',
      reason: 'NoRoom',
      why: 'no room',
      left: { source: [], target: [] },
    });
    expect(lines.filter((line) => line === `virtualmachine/${name} in shop created`)).toHaveLength(1);
    await saysAddresses(there, ['there:9185']);
  });

  it('says beforehand what it would make, and what is in the way', async () => {
    const asked = request({ to: { namespace: 'nowhere', name }, storageClasses: new Map([['disks', 'none']]) });
    const prospect = await kept(moveOf(asked).prospect(here.signal));
    const told = forecastLines(prospect, asked);
    expect(told).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^PersistentVolumeClaim +nowhere\/web-\d+ +would be created +blank, 1Gi, none/),
        'in the way:',
        '  there is no namespace nowhere at the target',
        '    kubectl create namespace nowhere',
        '  there is no storage class none at the target',
      ]),
    );
    expect(forecastValue(prospect, asked)).toMatchObject({
      from: { name },
      to: { namespace: 'nowhere', name },
      progress: 'new',
      isPossible: false,
      objects: expect.arrayContaining([
        expect.objectContaining({ kind: 'PersistentVolumeClaim', namespace: 'nowhere', state: 'missing' }),
      ]) as object,
      obstacles: expect.arrayContaining([
        { what: 'there is no namespace nowhere at the target', fix: 'kubectl create namespace nowhere' },
      ]) as object,
    });
    expect((await kept(moveOf(asked).run(here.signal))).kind).toBe('blocked');
    expect((await there.list(machines)).filter(({ metadata }) => metadata.name === name)).toEqual([]);
  });

  it('sees that the target would refuse what is to be made', async () => {
    const quota = { metadata: { name: 'tight' }, spec: { hard: { 'requests.memory': '1Mi', secrets: '0' } } };
    await there.create(resourceQuotas, quota as never);
    const { obstacles } = await kept(moveOf().prospect(here.signal));
    expect(obstacles.map(({ what }) => what)).toEqual([
      expect.stringMatching(/^the target would refuse Secret web-.*exceeded quota/),
      expect.stringMatching(/^the target would refuse the pod of the guest: .*exceeded quota/),
    ]);
    await there.delete(resourceQuotas, 'tight');
  });

  it('sees that a quota has room for each of what is to be made, and not for all of it', async () => {
    const more = `${name}-more`;
    await here.create(secrets, { metadata: { name: more } } as never);
    const { volumes = [] } = (await here.get(machines, name)).spec.template.spec ?? {};
    const referring = [...volumes, { name: 'more', secret: { secretName: more } }];
    await here.patch(machines, name, { spec: { template: { spec: { volumes: referring } } } } as JsonObject);
    const used = (await there.list(secrets)).length;
    const hard = { secrets: String(used + 1) };
    await there.create(resourceQuotas, { metadata: { name: 'scarce' }, spec: { hard } } as never);
    await there.patch(resourceQuotas, 'scarce', { status: { hard, used: { secrets: String(used) } } }, 'status');
    const { obstacles } = await kept(moveOf().prospect(here.signal));
    await there.delete(resourceQuotas, 'scarce');
    expect(obstacles.map(({ what }) => what)).toEqual([
      `the quota scarce has no room for all that is to be made: secrets (2, with ${used} of ${used + 1} used)`,
    ]);
  });

  it('sees that no node has room', async () => {
    await there.patch(nodes, 'node-a', { spec: { unschedulable: true } });
    await there.patch(nodes, 'node-b', { status: { allocatable: { memory: '1Mi' } } }, 'status');
    expect(await noNode()).toMatch(/: node-a: .*unschedulable; node-b: .*memory/);
    await there.patch(nodes, 'node-b', { status: { allocatable: { memory: '256Gi', cpu: '10m' } } }, 'status');
    expect(await noNode()).toMatch(/; node-b: Insufficient cpu/);
    await there.patch(nodes, 'node-b', { status: { allocatable: { cpu: '64' } } }, 'status');
    expect(await noNode()).toBeUndefined();
  });

  it.each([
    ['vendor', 'cpu-vendor.node.kubevirt.io/AMD'],
    ['processor', 'host-model-cpu.node.kubevirt.io/EPYC-Rome'],
    ['machine type', 'machine-type.node.kubevirt.io/pc-q35-7.1'],
  ])('sees that no node has the %s of the node that the guest is on', async (_what, label) => {
    await new PlayedAgents(here).says(name, { machine: { type: 'pc-q35-7.1' } });
    await here.patch(nodes, 'node-a', { metadata: { labels: { [label]: 'true' } } });
    expect(await noNode()).toMatch(/: node-a: .*; node-b: node\(s\) didn't match/);
    await there.patch(nodes, 'node-b', { metadata: { labels: { [label]: 'true' } } });
    expect(await noNode()).toBeUndefined();
    await here.patch(nodes, 'node-a', { metadata: { labels: { [label]: null } } });
  });
});

/** Why no node of the target takes the guest, where none does. */
async function noNode(): Promise<string | undefined> {
  const { obstacles } = await kept(moveOf().prospect(here.signal));
  return obstacles.find(({ what }) => what.startsWith('no node of the target can take the guest'))?.what;
}
