import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { objectsOf, POLICIES } from '../../src/api/kubevirt/manifests.fixture.ts';
import { type Finished, runCli, startCli } from '../support/cli.ts';
import { Cluster } from '../support/cluster.ts';
import { eventually } from '../support/eventually.ts';
import type { Kubectl } from '../support/kubectl.ts';

/** Machines as users of kubectl and of our own commands meet them, on a cluster without nodes. */

const GUEST = { domain: { devices: {}, memory: { guest: '64Mi' } } };

function machine(name: string, spec: object): object {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name },
    spec: { template: { spec: GUEST }, ...spec },
  };
}

let cluster: Cluster;
let kubectl: Kubectl;
let namespace: string;

beforeAll(async () => {
  cluster = await Cluster.start();
  ({ kubectl, namespace } = await cluster.namespace('machines'));
  await kubectl.ok('wait --for=condition=Available apiservice/v1.subresources.kubevirt.io --timeout=60s');
});
afterAll(() => cluster.close());

const godwit = (...args: string[]): ReturnType<typeof runCli> =>
  runCli([...args, '-n', namespace, '--kubeconfig', cluster.godwit.kubeconfig]);

const strategy = (name: string): Promise<string> =>
  kubectl.ok(['get', 'vm', name, '-o', 'jsonpath={.spec.runStrategy}']);

describe('a machine', () => {
  it('is the same however often it is applied, and in whichever way', async () => {
    const box = machine('box', { runStrategy: 'Halted' });
    await kubectl.apply(box);
    const uuid = (): Promise<string> =>
      kubectl.ok(['get', 'vm', 'box', '-o', 'jsonpath={.spec.template.spec.domain.firmware.uuid}']);
    const first = await uuid();
    expect(first).toMatch(/^[0-9a-f-]{36}$/);
    expect(await kubectl.apply(box)).toBe('virtualmachine.kubevirt.io/box unchanged\n');
    await kubectl.apply(box, '--server-side', '--force-conflicts');
    await kubectl.ok(['replace', '-f', '-'], { stdin: JSON.stringify(box) });
    expect(await uuid()).toBe(first);
  });

  it('is refused, or let pass with a word, by whoever knows machines', async () => {
    const stdin = JSON.stringify(machine('wrong', { running: true, runStrategy: 'Always' }));
    expect(await kubectl.fails(['apply', '-f', '-'], { stdin })).toContain(
      'The request is invalid: spec.running: Invalid value: true: Running and RunStrategy are mutually exclusive.',
    );
    const old = await kubectl.run(['apply', '-f', '-'], { stdin: JSON.stringify(machine('old', { running: false })) });
    expect(old).toMatchObject({ code: 0, stdout: 'virtualmachine.kubevirt.io/old created\n' });
    expect(old.stderr).toContain('Warning: spec.running is deprecated, please use spec.runStrategy instead.');
  });

  it('is started and stopped by name', async () => {
    await kubectl.apply(machine('power', { runStrategy: 'Halted' }));
    expect(await godwit('start', 'power')).toEqual({
      code: 0,
      stdout: 'VM power was scheduled to start\n',
      stderr: '',
    });
    expect(await strategy('power')).toBe('Always');
    expect(await godwit('stop', 'power', '--dry-run')).toMatchObject({ code: 0 });
    expect(await strategy('power')).toBe('Always');
    expect((await godwit('stop', 'power', '--force', '--grace-period', '0')).stdout).toBe(
      'VM power was scheduled to stop\n',
    );
    expect(await strategy('power')).toBe('Halted');
    expect(await godwit('restart', 'power')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^godwit: .*RunStrategy Halted does not support manual restart requests.*\n$/),
    });
  });

  it('that nobody runs has no console, and has said nothing', async () => {
    expect(await godwit('console', 'box')).toMatchObject({
      code: 1,
      stderr: `godwit: the virtual machine ${namespace}/box does not run; start it with 'godwit start box'\n`,
    });
    expect(await godwit('logs', 'box')).toEqual({ code: 0, stdout: '', stderr: '' });
    expect((await godwit('logs', 'nobody')).stderr).toMatch(/^godwit: there is no virtual machine nobody in namespace/);
    expect((await godwit('pause', 'vmi', 'nobody')).code).toBe(1);
    expect((await godwit('pause')).code).toBe(2);
  });

  it('is the business of those who may', async () => {
    await kubectl.ok(['create', 'rolebinding', 'jane', '--clusterrole=view', '--user=jane']);
    const path = `/apis/subresources.kubevirt.io/v1/namespaces/${namespace}/virtualmachineinstances/box`;
    expect(await kubectl.ok('get vm box -o name --as=jane')).toBe('virtualmachine.kubevirt.io/box\n');
    expect(await kubectl.fails(['get', '--raw', `${path}/log`, '--as=jane'])).toContain(
      'cannot get resource "virtualmachineinstances/log" in API group "subresources.kubevirt.io"',
    );
    expect(await kubectl.fails('delete vm box --as=jane')).toContain('cannot delete resource "virtualmachines"');
  });
});

describe('migrations', () => {
  it('have policies, which are taken as the proposal writes them', async () => {
    const [stdin = ''] = POLICIES.split('---');
    const apply = (text: string, ...flags: string[]): Promise<string> =>
      kubectl.ok(['apply', ...flags, '-f', '-'], { stdin: text });
    const selector = (): Promise<string> =>
      kubectl.ok([
        'get',
        'migrationpolicies',
        'my-awesome-policy',
        '-o',
        'jsonpath={.spec.selectors.namespaceSelector}',
      ]);
    expect(await apply(stdin)).toBe('migrationpolicy.migrations.kubevirt.io/my-awesome-policy created\n');
    expect(JSON.parse(await selector())).toEqual({
      matchLabels: { 'hpc-workloads': 'true', 'xyz-workloads-type': '' },
    });
    const generation = (): Promise<string> =>
      kubectl.ok(['get', 'migrationpolicies', 'my-awesome-policy', '-o', 'jsonpath={.metadata.generation}']);
    await apply(stdin);
    await apply(stdin, '--server-side', '--force-conflicts');
    expect(await generation()).toBe('1');
    await apply(stdin.replace('hpc-workloads: true', ''));
    expect(JSON.parse(await selector())).toEqual({ matchLabels: { 'xyz-workloads-type': '' } });
    const equal = JSON.stringify({
      ...objectsOf(stdin.replace('hpc-workloads: true', ''))[0],
      metadata: { name: 'equal' },
    });
    expect(await kubectl.fails(['apply', '-f', '-'], { stdin: equal })).toContain(
      'spec.selectors: Duplicate value: the policy "my-awesome-policy" has the same selectors',
    );
    await kubectl.ok('delete migrationpolicies my-awesome-policy');
  });

  it('have policies that explain themselves', async () => {
    const policy = (name: string, labels: object, options: object = {}): object => ({
      apiVersion: 'migrations.kubevirt.io/v1alpha1',
      kind: 'MigrationPolicy',
      metadata: { name },
      spec: { selectors: { virtualMachineInstanceSelector: labels }, ...options },
    });
    const template = { metadata: { labels: { tier: 'gold' } }, spec: GUEST };
    await kubectl.apply(machine('golden', { runStrategy: 'Halted', template }));
    await kubectl.apply(policy('gold', { tier: 'gold' }, { progressTimeout: 77 }));
    await kubectl.apply(policy('any-tier', { tier: '' }));
    const told = await godwit('policy', 'explain', 'golden');
    expect(told).toMatchObject({ code: 0, stderr: '' });
    expect(told.stdout).toContain(`The policy gold holds for ${namespace}/golden.`);
    expect(told.stdout).toMatch(/any-tier +the same keys match, but 1 by their exact values, not 0/);
    expect(told.stdout).toMatch(/progressTimeout +77 +policy gold/);
    expect(told.stdout).toMatch(/without the policy gold +policy any-tier/);
    const path = `/apis/subresources.kubevirt.io/v1/namespaces/${namespace}/virtualmachines/golden/migrationpolicy`;
    const raw = JSON.parse(await kubectl.ok(['get', '--raw', path])) as { policy: string; labelsOf: string };
    expect(raw).toMatchObject({ policy: 'gold', labelsOf: 'VirtualMachine' });
    expect(JSON.parse((await godwit('policy', 'explain', 'golden', '-o', 'json')).stdout)).toEqual(raw);
    expect(await godwit('policy', 'explain', 'nobody')).toMatchObject({ code: 1 });
    await kubectl.ok('delete migrationpolicies gold any-tier');
  });

  it('are asked for by name, of machines that run', async () => {
    expect(await godwit('migrate', 'box', '--addedNodeSelector', 'zone=b,disk=ssd')).toMatchObject({
      code: 1,
      stderr: `godwit: the virtual machine ${namespace}/box does not run; start it with 'godwit start box'\n`,
    });
    expect((await godwit('migrate', 'box', '--addedNodeSelector', 'zone')).stderr).toContain(
      'give labels as key=value',
    );
    expect(await godwit('migrate-cancel', 'box')).toMatchObject({
      code: 1,
      stderr: `godwit: Found no migration to cancel for box; 'godwit why box -n ${namespace}' says where it is, and how\n`,
    });
    expect(await kubectl.ok('get vmim')).toBe('');
    expect(await kubectl.ok('explain vmim.spec.addedNodeSelector')).toContain('Labels that the target node must have');
  });
});

describe('the examples', () => {
  const directory = fileURLToPath(new URL('../../examples', import.meta.url));
  const file = (name: string): string[] => ['-f', join(directory, name)];
  let there: Kubectl;
  let place: string;
  beforeAll(async () => ({ kubectl: there, namespace: place } = await cluster.namespace('examples')));

  it('apply as they are', async () => {
    await cluster.kubectl.ok(['apply', '--server-side', ...file('configuration.yaml')]);
    // What guests are moved to other namespaces with is switched on.
    const featureGates = [
      'PreemptionEvictionLiveMigration',
      'NoExecuteTaintEvictionLiveMigration',
      'DecentralizedLiveMigration',
    ];
    const patch = JSON.stringify({ spec: { configuration: { developerConfiguration: { featureGates } } } });
    await kubectl.ok(['patch', 'kubevirt', 'kubevirt', '-n', 'kubevirt', '--type=merge', '-p', patch]);
    // A migration is made anew each time, of a guest that runs; test/vm/examples.test.ts makes it.
    const others = ['configuration.yaml', 'migration.yaml'];
    const files = readdirSync(directory).filter((name) => name.endsWith('.yaml') && !others.includes(name));
    const dry = ['apply', '--server-side', '--dry-run=server', ...files.flatMap(file)];
    const told = await eventually(async () => {
      const { code, stdout, stderr } = await there.run(dry);
      // Kubernetes' own remark on the name of KubeVirt's finalizer is all that there is to say.
      const remarks = stderr.split('\n').filter((line) => line !== '' && !line.includes('domain-qualified finalizer'));
      expect({ code, remarks }).toEqual({ code: 0, remarks: [] });
      return stdout.trim().split('\n');
    });
    for (const line of told) expect(line).toMatch(/serverside-applied \(server dry run\)$/);
  });

  it('of policies, rights and sizes do what they say', async () => {
    const names = ['migration-policies.yaml', 'migration-priorities.yaml', 'vm-cluster-instancetype.yaml'];
    await there.ok(['apply', ...names.flatMap(file)]);
    const asked = (priority: string): Promise<string> => {
      const kind = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstanceMigration' };
      const stdin = JSON.stringify({ ...kind, metadata: { name: 'm' }, spec: { vmiName: 'nobody', priority } });
      return there.fails(['create', '--as=rebalancer', '-f', '-'], { stdin });
    };
    // Whether somebody may is looked at first.
    expect(await asked('system-maintenance')).toContain('nobody" does not exist');
    expect(await asked('system-critical')).toContain('cannot use "system-critical" of resource "migrationpriorities"');
    const template = { metadata: { labels: { 'workload-type': 'db', 'operating-system': 'linux' } }, spec: GUEST };
    await there.apply(machine('db', { runStrategy: 'Halted', template }));
    const explained = (): ReturnType<typeof runCli> =>
      runCli(['policy', 'explain', 'db', '-n', place, '--kubeconfig', cluster.godwit.kubeconfig]);
    expect((await explained()).stdout).toContain(`The policy databases holds for ${place}/db.`);
    await there.ok(['label', 'namespace', place, 'hpc-workloads=true']);
    expect((await explained()).stdout).toContain(`The policy hpc-databases holds for ${place}/db.`);
  });

  it('of a receiver waits for its guest', async () => {
    await there.ok(['apply', ...file('receiver.yaml')]);
    await eventually(async () => {
      const shown = ['get', 'vm,vmim', '-o', 'jsonpath={.items[*].status.printableStatus} {.items[*].status.phase}'];
      expect(await there.ok(shown)).toMatch(/WaitingForReceiver.* WaitingForSync/);
    });
    await there.ok(['delete', ...file('receiver.yaml'), ...file('migration-policies.yaml')]);
  });
});

describe('a control plane that was killed', () => {
  it('asks about machines again as soon as it is back', async () => {
    await cluster.godwit.kill();
    await cluster.godwit.start();
    await expect
      .poll(() => kubectl.run(['apply', '-f', '-'], { stdin: JSON.stringify(machine('after', { running: true })) }), {
        timeout: 30_000,
      })
      .toMatchObject({ code: 0, stderr: expect.stringContaining('spec.running is deprecated') });
    expect(cluster.godwit.output).not.toContain('Failed calling webhook');
    // The API server looks for its extensions once it serves.
    const follow = (): Promise<Finished> => {
      const { child, finished } = startCli(['logs', 'after', '-f', '-n', namespace], {
        KUBECONFIG: cluster.godwit.kubeconfig,
      });
      child.stdin?.end();
      return finished;
    };
    await expect.poll(follow, { timeout: 30_000 }).toEqual({ code: 0, stdout: '', stderr: '' });
  });
});
