import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Answer } from '../support/api.ts';
import { ExtensionScene } from '../support/extension-scene.ts';

/** The one override of the right to run, as users of an API server meet it; what controllers do is played here. */

const NAMESPACE = 'shop';
const MACHINES = `/apis/kubevirt.io/v1/namespaces/${NAMESPACE}/virtualmachines`;
const ACTIONS = `/apis/subresources.kubevirt.io/v1/namespaces/${NAMESPACE}/virtualmachines`;
const TEMPLATE = { spec: { domain: { devices: {}, memory: { guest: '64Mi' } } } };

let scene: ExtensionScene;

beforeAll(async () => {
  scene = await ExtensionScene.start();
  const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } };
  (await scene.request('POST', '/api/v1/namespaces', body)).expect(201);
  await scene.bind(NAMESPACE, 'owner', 'admin');
  await scene.bind(NAMESPACE, 'mover', 'kubevirt.io:migrate');
  await scene.bind(NAMESPACE, 'fencer', 'kubevirt.io:reclaim');
});
afterAll(() => scene.stop());

/** A machine that was kept when its guest went away. */
async function makeMachine(name: string): Promise<void> {
  const spec = { runStrategy: 'Halted', template: TEMPLATE };
  const body = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', metadata: { name }, spec };
  (await scene.request('POST', MACHINES, body)).expect(201);
  const status = { rightToRun: { epoch: 4, grantedAway: true } };
  (await scene.request('PATCH', `${MACHINES}/${name}/status`, { status })).expect(200);
}

const reclaim = (name: string, body: object, user?: string): Promise<Answer> =>
  scene.request('PUT', `${ACTIONS}/${name}/reclaim`, body, user);

describe('a machine whose guest went away', () => {
  it('is started by nobody, who is told what can be done', async () => {
    await makeMachine('kept');
    const { json } = (await scene.request('PUT', `${ACTIONS}/kept/start`, {}, 'owner')).expect(409);
    expect(json.message).toContain('godwit reclaim kept -n shop --i-have-fenced-the-other-side');
  });

  it('is reclaimed by those alone who may, and who say that they fenced the other side', async () => {
    await makeMachine('web');
    for (const user of ['owner', 'mover', 'stranger']) (await reclaim('web', { fenced: true }, user)).expect(403);
    (await reclaim('web', {}, 'fencer')).expect(400);
    (await reclaim('web', { fenced: true, dryRun: ['All'] }, 'fencer')).expect(200);
    const before = (await scene.request('GET', `${MACHINES}/web`)).expect(200).json;
    expect(before.status.rightToRun).toEqual({ epoch: 4, grantedAway: true });
    expect(before.metadata.annotations).toBeUndefined();
    (await reclaim('web', { fenced: true }, 'fencer')).expect(200);
    const { metadata, status } = (await scene.request('GET', `${MACHINES}/web`)).expect(200).json;
    expect(status.rightToRun).toEqual({ epoch: 5 });
    expect(metadata.annotations).toMatchObject({ 'godwit.dev/reclaimed-by': 'fencer' });
    (await reclaim('web', { fenced: true }, 'fencer')).expect(409);
    (await scene.request('PUT', `${ACTIONS}/web/start`, {}, 'owner')).expect(202);
  });
});

describe('a guest that is here, of which nobody else can say where it runs', () => {
  const GUESTS = `/apis/kubevirt.io/v1/namespaces/${NAMESPACE}/virtualmachineinstances`;
  const runner = (node: string) => ({ node, nodeUID: `uid-of-${node}`, podUID: `pod-of-${node}` });

  /** A machine whose guest has a record; its nodes need not be there. */
  async function makeGuest(name: string, rightToRun: object): Promise<void> {
    const spec = { runStrategy: 'Always', template: TEMPLATE };
    const body = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', metadata: { name }, spec };
    const { uid } = (await scene.request('POST', MACHINES, body)).expect(201).json.metadata;
    const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name, uid, controller: true };
    const guest = { kind: 'VirtualMachineInstance', metadata: { name, ownerReferences: [owner] }, spec: TEMPLATE.spec };
    (await scene.request('POST', GUESTS, { apiVersion: 'kubevirt.io/v1', ...guest })).expect(201);
    const activePods = { 'pod-of-here': 'here', 'pod-of-gone': 'gone' };
    const { holder, ...more } = { holder: runner('gone'), ...rightToRun };
    const start = { phase: 'Running', activePods, rightToRun: { epoch: 1, holder } };
    (await scene.request('PATCH', `${GUESTS}/${name}/status`, { status: start })).expect(200);
    (await scene.request('PATCH', `${GUESTS}/${name}/status`, { status: { rightToRun: more } })).expect(200);
  }

  const statusOf = async (name: string) => (await scene.request('GET', `${GUESTS}/${name}`)).expect(200).json.status;

  it('starts afresh though its node was deleted, and whatever was to come of it', async () => {
    await makeGuest('lost', { successor: runner('there') });
    const said = { fenced: true, afresh: true };
    (await reclaim('lost', said, 'owner')).expect(403);
    (await reclaim('lost', { fenced: true }, 'fencer')).expect(409);
    (await reclaim('lost', { ...said, dryRun: ['All'] }, 'fencer')).expect(200);
    expect(await statusOf('lost')).toMatchObject({ phase: 'Running', rightToRun: { epoch: 1 } });
    (await reclaim('lost', said, 'fencer')).expect(200);
    const { phase, rightToRun } = await statusOf('lost');
    expect([phase, rightToRun]).toEqual(['Failed', { epoch: 2 }]);
    (await reclaim('lost', said, 'fencer')).expect(409);
  });

  it('goes on where somebody says that it runs', async () => {
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'here' } };
    const { uid } = (await scene.request('POST', '/api/v1/nodes', node)).expect(201).json.metadata;
    await makeGuest('found', { successor: runner('there') });
    (await reclaim('found', { fenced: true, keep: 'here' }, 'fencer')).expect(200);
    expect((await statusOf('found')).rightToRun).toEqual({
      epoch: 1,
      holder: runner('gone'),
      successor: { ...runner('here'), nodeUID: uid },
    });
  });
});
