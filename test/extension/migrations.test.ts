import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CONTROLLER_IDENTITY } from '../../src/control/installation/rights.ts';
import { objectsOf, POLICIES } from '../../src/api/kubevirt/manifests.fixture.ts';
import type { Answer } from '../support/api.ts';
import { ExtensionScene } from '../support/extension-scene.ts';

/** Migrations and policies as users of an API server meet them; what controllers do is played here. */

const NAMESPACE = 'shop';
const KUBEVIRT = `/apis/kubevirt.io/v1/namespaces/${NAMESPACE}`;
const MIGRATIONS = `${KUBEVIRT}/virtualmachineinstancemigrations`;
const POLICY_PATH = '/apis/migrations.kubevirt.io/v1alpha1/migrationpolicies';
const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const GUEST = { domain: { devices: {}, memory: { guest: '64Mi' } } };

const KIND = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstanceMigration' };

let scene: ExtensionScene;

beforeAll(async () => {
  scene = await ExtensionScene.start();
  const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } };
  (await scene.request('POST', '/api/v1/namespaces', body)).expect(201);
  await scene.bind(NAMESPACE, 'editor', 'edit');
  await scene.bind(NAMESPACE, 'mover', 'kubevirt.io:migrate');
});
afterAll(() => scene.stop());

let sequence = 0;

/** A machine whose guest runs; answers its name. */
async function makeMachine(phase = 'Running'): Promise<string> {
  const name = `vm-${sequence++}`;
  const common = { apiVersion: 'kubevirt.io/v1', metadata: { name } };
  const machine = { ...common, kind: 'VirtualMachine', spec: { runStrategy: 'Manual', template: { spec: GUEST } } };
  (await scene.request('POST', `${KUBEVIRT}/virtualmachines`, machine)).expect(201);
  const guest = { ...common, kind: 'VirtualMachineInstance', spec: GUEST };
  (await scene.request('POST', `${KUBEVIRT}/virtualmachineinstances`, guest)).expect(201);
  const path = `${KUBEVIRT}/virtualmachineinstances/${name}/status`;
  (await scene.request('PATCH', path, { status: { phase, nodeName: 'n1' } })).expect(200);
  return name;
}

function move(spec: object, user?: string): Promise<Answer> {
  return scene.request('POST', MIGRATIONS, { ...KIND, metadata: { generateName: 'move-' }, spec }, user);
}

describe('migrations', () => {
  it('are complete from the start', async () => {
    const vmName = await makeMachine();
    const { json } = (await move({ vmName, cause: 'Preemption' })).expect(201);
    expect(json.spec).toEqual({ vmName, vmiName: vmName, cause: 'User' });
    expect(json.metadata.labels).toEqual({ 'kubevirt.io/vmi-name': vmName });
    expect(json.metadata.finalizers).toEqual(['kubevirt.io/migrationJobFinalize']);
  });

  it('are completed for our own controllers, too, and are as those made them where nothing is missing', async () => {
    const { user } = CONTROLLER_IDENTITY;
    const [first, second] = [await makeMachine(), await makeMachine()];
    const half = (await move({ vmiName: first, cause: 'DrainTaint' }, user)).expect(201).json;
    expect(half.spec).toEqual({ vmName: first, vmiName: first, cause: 'DrainTaint' });
    expect(half.metadata.finalizers).toEqual(['kubevirt.io/migrationJobFinalize']);
    const finalizers = ['kubevirt.io/migrationJobFinalize', 'example.com/own'];
    const labels = { 'kubevirt.io/vmi-name': second, own: '' };
    const spec = { vmName: second, vmiName: second, cause: 'DrainTaint' };
    const body = { ...KIND, metadata: { name: 'whole', labels, finalizers }, spec };
    const whole = (await scene.request('POST', MIGRATIONS, body, user)).expect(201).json;
    expect(whole.spec).toEqual(spec);
    expect(whole.metadata).toMatchObject({ labels, finalizers });
  });

  it('are one at a time, and the next one can follow at once', async () => {
    const vmiName = await makeMachine();
    for (let round = 0; round < 3; round++) {
      const { json } = (await move({ vmiName })).expect(201);
      const second = (await move({ vmiName })).expect(422);
      expect(second.json.message).toContain(
        `in-flight migration detected. Active migration job (${json.metadata.uid}) is currently already in progress for VMI ${vmiName}.`,
      );
      const path = `${MIGRATIONS}/${json.metadata.name}/status`;
      (await scene.request('PATCH', path, { status: { phase: 'Succeeded' } })).expect(200);
    }
  });

  it('are of guests that can move', async () => {
    expect((await move({ vmiName: 'nobody' })).expect(422).json.message).toContain(
      `the VMI "${NAMESPACE}/nobody" does not exist`,
    );
    const ended = await makeMachine('Failed');
    expect((await move({ vmiName: ended })).expect(422).json.message).toContain(
      'Cannot migrate VMI in finalized state.',
    );
    const waiting = await makeMachine('WaitingForSync');
    expect((await move({ vmiName: waiting })).expect(422).json.message).toContain(
      'only a migration with spec.receive moves it',
    );
    const unknown = await move({ vmiName: ended, priorty: 'user-triggered' });
    expect(unknown.expect(422).json.message).toContain('spec.priorty: unknown field');
  });

  it('stay as they were asked for', async () => {
    const { json } = (await move({ vmiName: await makeMachine() })).expect(201);
    const path = `${MIGRATIONS}/${json.metadata.name}`;
    const change = (await scene.request('PATCH', path, { spec: { priority: 'system-critical' } })).expect(422);
    expect(change.json.message).toContain("update of Migration object's spec is restricted");
    (await scene.request('PATCH', path, { metadata: { labels: { 'kubevirt.io/vmi-name': 'x' } } })).expect(422);
    (await scene.request('PATCH', path, { metadata: { labels: { app: 'x' } } })).expect(200);
    const gone = { metadata: { finalizers: null } };
    (await scene.request('PATCH', path, gone)).expect(200);
  });

  it('are for those who may: to edit machines is not to move them', async () => {
    const vmiName = await makeMachine();
    (await move({ vmiName }, 'editor')).expect(403);
    expect((await move({ vmiName, priority: 'user-triggered' }, 'mover')).expect(403).json.message).toContain(
      `spec.priority: Forbidden: User "mover" cannot use "user-triggered" of resource "migrationpriorities" in API group "kubevirt.io" in the namespace "${NAMESPACE}"`,
    );
    const role = {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'users-class' },
      rules: [
        {
          verbs: ['use'],
          apiGroups: ['kubevirt.io'],
          resources: ['migrationpriorities'],
          resourceNames: ['user-triggered'],
        },
      ],
    };
    (await scene.request('POST', `${RBAC}/clusterroles`, role)).expect(201);
    await scene.bind(NAMESPACE, 'mover', 'users-class');
    (await move({ vmiName, priority: 'system-critical' }, 'mover')).expect(403);
    (await move({ vmiName, priority: 'user-triggered' }, 'mover')).expect(201);
  });
});

describe('migrate', () => {
  const migrate = (name: string, body: object = {}, user?: string): Promise<Answer> =>
    scene.request(
      'PUT',
      `/apis/subresources.kubevirt.io/v1/namespaces/${NAMESPACE}/virtualmachines/${name}/migrate`,
      body,
      user,
    );
  const migrationsOf = async (name: string): Promise<Answer['json'][]> =>
    (await scene.request('GET', `${MIGRATIONS}?labelSelector=kubevirt.io/vmi-name%3D${name}`)).json.items;

  it('makes a migration, in the class of users for those who may use it', async () => {
    const name = await makeMachine();
    (await migrate(name, { dryRun: ['All'] })).expect(202);
    expect(await migrationsOf(name)).toEqual([]);
    (await migrate(name, { addedNodeSelector: { zone: 'b' } })).expect(202);
    const [made] = await migrationsOf(name);
    expect(made.metadata.name).toMatch(/^kubevirt-migrate-vm-/);
    expect(made.spec).toMatchObject({
      vmName: name,
      priority: 'user-triggered',
      cause: 'User',
      addedNodeSelector: { zone: 'b' },
    });
    expect((await migrate(name)).expect(422).json.message).toContain('in-flight migration detected');
  });

  it('is for those who may, whose class is below all', async () => {
    await scene.bind(NAMESPACE, 'walker', 'kubevirt.io:migrate');
    const name = await makeMachine();
    (await migrate(name, {}, 'editor')).expect(403);
    (await migrate(name, {}, 'walker')).expect(202);
    const [made] = await migrationsOf(name);
    expect(made.spec).not.toHaveProperty('priority');
  });

  it('needs a machine that runs', async () => {
    (await migrate('nobody')).expect(404);
    expect((await migrate(await makeMachine('Scheduling'))).expect(409).json.message).toContain('VM is not running');
  });
});

describe('policies', () => {
  const apply = (policy: object): Promise<Answer> => scene.request('POST', POLICY_PATH, policy);
  const policy = (name: string, spec: object): object => ({
    apiVersion: 'migrations.kubevirt.io/v1alpha1',
    kind: 'MigrationPolicy',
    metadata: { name },
    spec,
  });

  it('are taken as the proposal writes them', async () => {
    const [proposed] = objectsOf(POLICIES);
    const { json } = (await apply(proposed!)).expect(201);
    expect(json.spec.selectors.namespaceSelector.matchLabels).toEqual({
      'hpc-workloads': 'true',
      'xyz-workloads-type': '',
    });
    const again = await scene.request('PATCH', `${POLICY_PATH}/${json.metadata.name}`, { spec: proposed!.spec });
    expect(again.expect(200).json.metadata.resourceVersion).toBe(json.metadata.resourceVersion);
  });

  it('are refused by the name of the field', async () => {
    const selectors = { virtualMachineInstanceSelector: { size: 'small' } };
    expect((await apply(policy('bad', { selectors, turbo: 1 }))).expect(422).json.message).toContain(
      'spec.turbo: unknown field',
    );
    expect((await apply(policy('bad', { selectors, completionTimeoutPerGiB: -1 }))).expect(422).json.message).toContain(
      'spec.completionTimeoutPerGiB: Invalid value: -1: must not be negative',
    );
    (await apply(policy('one', { selectors }))).expect(201);
    expect((await apply(policy('two', { selectors }))).expect(422).json.message).toContain(
      'spec.selectors: Duplicate value: the policy "one" has the same selectors',
    );
    (await scene.request('DELETE', `${POLICY_PATH}/one`)).expect(200);
    (await apply(policy('two', { selectors }))).expect(201);
  });
});
