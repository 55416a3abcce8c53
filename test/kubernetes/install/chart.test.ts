import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { Anything } from '../../support/api.ts';
import { eventually } from '../../support/eventually.ts';
import { HELM } from '../../support/kubernetes/wanted.ts';
import type { AdminsCluster } from './cluster.ts';
import { bringNewerKinds, IMAGE, installation } from './installation.ts';

/** The chart, installed by Helm on a real control plane as docs/kubernetes.md says, whose kubelets are played. */

const CHART = fileURLToPath(new URL('../../../charts/godwit', import.meta.url));
const PAGE = fileURLToPath(new URL('../../../docs/kubernetes.md', import.meta.url));
const HELM_MS = 300_000;
const OWN = ['godwit', CHART, '--namespace', 'kubevirt'];
/** A value of the admin's own, which upgrades leave as it is. */
const [SYNCHRONIZATION, PORT] = ['synchronization.servicePort', 19_185];

/** Runs Helm as the admin, and answers whatever came of it. */
function run(admins: AdminsCluster, args: readonly string[]): Promise<{ failed: boolean; printed: string }> {
  if (HELM === undefined) throw new Error('Helm is built by npm run test:kubernetes');
  const env = { ...process.env, HOME: admins.directory, KUBECONFIG: admins.kubeconfig };
  const options = { env, encoding: 'utf8', timeout: HELM_MS } as const;
  return new Promise((resolve) => {
    execFile(HELM ?? '', args, options, (error, stdout, stderr) =>
      resolve({ failed: error !== null, printed: stdout + stderr }),
    );
  });
}

async function helm(admins: AdminsCluster, ...args: readonly string[]): Promise<string> {
  const { failed, printed } = await run(admins, args);
  expect(failed, `helm ${args.join(' ')}: ${printed}`).toBe(false);
  return printed;
}

const refusal = (reason: string): object => ({ failed: true, printed: expect.stringContaining(reason) });

const install = (admins: AdminsCluster): Promise<string> =>
  helm(admins, 'install', ...OWN, '--create-namespace', '--set', `image=${IMAGE},${SYNCHRONIZATION}=${PORT}`);

const upgrade = (admins: AdminsCluster, ...values: readonly string[]): Promise<string> =>
  helm(admins, 'upgrade', ...OWN, '--reset-then-reuse-values', '--set', values.join(','));

/** A node for agents that nobody plays: only controllers and Helm look at it. */
const WORKER = 'worker-9';

/** One that looks after the guests in a kubelet's containers, for whoever looks at pods; nobody runs it. */
const AGENT_OF_KUBELET = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'agent-of-kubelet', namespace: 'kubevirt' },
  spec: {
    schedulerName: 'nobody',
    containers: [{ name: 'virt-handler', image: IMAGE, args: ['agent', '--kubelet=true'] }],
  },
};

/** An agent's pod comes to that node, as a node of its own beside a kubelet. Answers its name. */
async function agentComes({ kubectl }: AdminsCluster): Promise<string> {
  const labels = { 'node-restriction.kubernetes.io/godwit-agent': 'true' };
  await kubectl.apply({ apiVersion: 'v1', kind: 'Node', metadata: { name: WORKER, labels } });
  const allocatable = { cpu: '1', memory: '1Gi', pods: '10' };
  const room = JSON.stringify({ status: { capacity: allocatable, allocatable } });
  await kubectl.ok(['patch', 'node', WORKER, '--subresource', 'status', '--type', 'merge', '-p', room]);
  return eventually(async () => {
    const { items } = await kubectl.json('get pods -n kubevirt -l kubevirt.io=virt-handler');
    const found = items.find(({ spec }: Anything) => spec.nodeName === WORKER);
    return found?.metadata.name ?? expect.unreachable('no agent has come');
  });
}

describe('the chart', () => {
  const cluster = installation({
    install,
    upgrade: async (admins, image) => {
      await bringNewerKinds(admins);
      await upgrade(admins, `image=${image}`);
      const { spec } = await admins.kubectl.json('get service virt-synchronization -n kubevirt');
      expect(spec.ports).toMatchObject([{ port: PORT }]);
    },
    uninstall: (admins) => helm(admins, 'uninstall', 'godwit', '--namespace', 'kubevirt'),
    keepsRights: false,
    reinstall: install,
  });

  it('configures the cluster by its values, and leaves what they do not speak of', async () => {
    const configured = async (): Promise<unknown> =>
      (await cluster().kubectl.json('get kubevirt kubevirt -n kubevirt')).spec.configuration.migrations;
    const before = await configured();
    await upgrade(cluster(), 'configuration.migrations.parallelOutboundMigrationsPerNode=4');
    expect(await configured()).toEqual({ ...(before as object), parallelOutboundMigrationsPerNode: 4 });
  });

  it('refuses a value that it does not know, by its name', async () => {
    const misspelt = ['--reset-then-reuse-values', '--set', 'extension.replica=3'];
    const { failed, printed } = await run(cluster(), ['upgrade', ...OWN, ...misspelt]);
    expect(failed).toBe(true);
    expect(printed).toMatch(/additional propert.*replica/i);
  });

  it.each([
    ['agents that lose their guests where they are updated', 'agent.updateStrategy.type=RollingUpdate', 'OnDelete'],
    ['agents that cannot see their guests', 'agent.arguments={--kubelet=1}', 'agent.hostPID has to be true'],
    [
      'agents of kubelets whose launcher pods end without a guest',
      'agent.arguments={--kubelet,--name=x},agent.hostPID=true,controllers.arguments={}',
      'controllers.arguments have to have --kubelets',
    ],
    [
      'agents that wait for nodes that nobody makes',
      'agent.arguments={--kubelet},agent.hostPID=true,controllers.arguments={--kubelets}',
      'agent.arguments have to have --name',
    ],
  ])('refuses %s', async (_, values, reason) => {
    const tried = await run(cluster(), ['upgrade', ...OWN, '--dry-run=server', '--set', values]);
    expect(tried).toMatchObject(refusal(reason));
  });

  it('takes what the page says of guests in containers of kubelets where no others run, and says what comes next', async () => {
    const page = readFileSync(PAGE, 'utf8');
    const [, values = ''] = /```yaml\n(controllers: \{ arguments: \["--kubelets"\] \}\n.*?)```/s.exec(page) ?? [];
    const file = join(cluster().directory, 'kubelets.yaml');
    writeFileSync(file, values);
    const upgraded = (...more: readonly string[]) =>
      run(cluster(), ['upgrade', ...OWN, '--dry-run=server', '--values', file, ...more]);
    const elsewhere = ['--set', 'agent.nodeSelector.disk=fast'];
    const oneByOne = ['--set', 'agent.updateStrategy.type=OnDelete'];
    // Not over agents that are there, whose guests would lose their power.
    const agent = await agentComes(cluster());
    expect(await upgraded()).toMatchObject(refusal(`without --kubelet run, as ${agent}:`));
    expect(await upgraded(...oneByOne)).toMatchObject({ failed: false });
    expect(await upgraded(...oneByOne, ...elsewhere)).toMatchObject(refusal('(disk=fast is not its label)'));
    await cluster().kubectl.ok(`label node ${WORKER} disk=fast`);
    expect(await upgraded(...oneByOne, ...elsewhere)).toMatchObject({ failed: false });
    await cluster().kubectl.ok(`delete node ${WORKER}`);
    // One more may come before it is known that the node is gone.
    await eventually(async () => {
      await cluster().kubectl.ok('delete pods -l kubevirt.io=virt-handler -n kubevirt --grace-period=0 --force');
      expect(await upgraded()).toMatchObject({ failed: false });
    }, 120_000);
    // Nor back under agents that look after containers.
    await cluster().kubectl.apply(AGENT_OF_KUBELET);
    expect(await upgraded()).toMatchObject({ failed: false });
    expect(await run(cluster(), ['upgrade', ...OWN, '--dry-run=server'])).toMatchObject(
      refusal('controllers.arguments have to have --kubelets while agents with --kubelet run, as agent-of-kubelet:'),
    );
    await cluster().kubectl.ok('delete pod agent-of-kubelet -n kubevirt');
    const chosen = ['--values', file, ...elsewhere, '--set', 'controllers.arguments={--kubelets=true}'];
    const notes = await helm(cluster(), 'install', ...OWN, '--dry-run=client', ...chosen);
    expect(notes).toContain('kubectl label node NODE disk=fast');
    expect(notes).toContain('"--kubelet"');
  });

  it('refuses any other namespace than the one where components look for each other', async () => {
    const elsewhere = ['godwit', CHART, '--namespace', 'elsewhere', '--create-namespace'];
    const { failed, printed } = await run(cluster(), ['install', ...elsewhere]);
    expect(failed).toBe(true);
    expect(printed).toContain('install it with --namespace kubevirt --create-namespace');
    const releases = JSON.parse(await helm(cluster(), 'list', '--all', '--all-namespaces', '-o', 'json'));
    expect(releases).toMatchObject([{ name: 'godwit', namespace: 'kubevirt', status: 'deployed' }]);
  });
});
