import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { WebSocket } from 'ws';
import { type ApiServer, startApiServer } from '../../src/apiserver/api-server.ts';
import { cancelMigration, migrate } from '../../src/cli/machine-migration.ts';
import { changePause, changePower } from '../../src/cli/machine-power.ts';
import { machineConsole } from '../../src/cli/machine-console.ts';
import { machineLogs } from '../../src/cli/machine-logs.ts';
import { reclaim } from '../../src/cli/reclaim.ts';
import { install, installation } from '../../src/control/installation/install.ts';
import type { Env } from '../../src/env/ports.ts';
import { realClock, realRandom } from '../../src/env/real.ts';
import { silentLogger } from '../../src/env/test.ts';
import { extensionServices } from '../../src/extension/extension.ts';
import { EXTENSION_IDENTITY } from '../../src/extension/identity.ts';
import { extensionRights, userRights } from '../../src/extension/rights.ts';
import { Client } from '../../src/kube/client.ts';
import { InProcessTransport, type LocalIdentity } from '../../src/kube/in-process-transport.ts';
import {
  virtualMachineInstanceMigrations,
  virtualMachineInstances,
  virtualMachines,
} from '../../src/kube/kubevirt-resources.ts';
import { Manager } from '../../src/kube/manager.ts';
import type { Resource } from '../../src/kube/resource.ts';
import { eventually } from '../support/eventually.ts';
import { FakeAgent } from '../support/fake-agent.ts';

/** The commands for users of machines, through a real server and the extension to agents that are played here. */

const ADMIN: LocalIdentity = { user: 'admin', groups: ['system:masters'] };
const NODES: Resource = { group: '', version: 'v1', plural: 'nodes', kind: 'Node', namespaced: false };
const env: Env = { clock: realClock, random: realRandom, log: silentLogger };
const directory = mkdtempSync(join(tmpdir(), 'godwit-test-'));
const kubeconfig = join(directory, 'kubeconfig');
const options = { kubeconfig };
const stopping = new AbortController();
const { signal } = new AbortController();

let server: ApiServer;
let client: Client;
let running: Promise<void>;
const agents = new Map<string, FakeAgent>();
const printed: string[] = [];
const print = (line: string): void => void printed.push(line);

beforeAll(async () => {
  server = await startApiServer({ env, directory, host: '127.0.0.1', port: 0 });
  writeFileSync(kubeconfig, server.kubeconfig);
  const clientOf = (identity: LocalIdentity): Client =>
    new Client(new InProcessTransport(server.handle, identity), 'test');
  client = clientOf(ADMIN);
  const ours = [...userRights(), ...extensionRights()];
  await install(client, realClock, installation({ ours, initial: [] }), signal);
  const listen = { host: '127.0.0.1', port: 0 };
  const manager = new Manager({ env }).add(
    ...extensionServices({ env, client: clientOf(EXTENSION_IDENTITY), listen, reach: 'address', version: '1.2.3' }),
  );
  running = manager.run(stopping.signal);
  await manager.synced;
  for (const name of ['n1', 'n2']) await addNode(name);
  await makeMachine('box', 'n2');
  await eventually(() => client.getPath('/apis/subresources.kubevirt.io/v1', signal));
});
beforeEach(() => {
  printed.length = 0;
});
afterAll(async () => {
  stopping.abort();
  await running;
  for (const agent of agents.values()) await agent.stop();
  await server.stop();
  rmSync(directory, { recursive: true, force: true });
});

async function addNode(name: string): Promise<void> {
  const text = readFileSync(join(directory, 'pki', 'cluster-authority.pem'), 'utf8');
  const [certificatePem = '', keyPem = ''] = text.split(/(?=-----BEGIN PRIVATE KEY)/);
  const agent = await FakeAgent.start(name, { certificatePem, keyPem });
  agents.set(name, agent);
  const metadata = { name, labels: { 'kubevirt.io/schedulable': 'true' } };
  await client.create(NODES, { apiVersion: 'v1', kind: 'Node', metadata }, signal);
  const status = {
    addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
    daemonEndpoints: { kubeletEndpoint: { Port: agent.port } },
  };
  await client.patch(NODES, '', name, { type: 'merge', body: { status } }, signal, { subresource: 'status' });
}

async function makeMachine(name: string, nodeName: string): Promise<void> {
  const metadata = { name, namespace: 'default' };
  const spec = { domain: { devices: {}, memory: { guest: '64Mi' } } };
  const kind = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine' };
  const machine = { ...kind, metadata, spec: { runStrategy: 'Manual', template: { spec } } } as const;
  const { uid = '' } = (await client.create(virtualMachines, machine, signal)).metadata;
  const ownerReferences = [{ ...kind, name, uid, controller: true }];
  await client.create(
    virtualMachineInstances,
    { apiVersion: 'kubevirt.io/v1', kind: '', metadata: { ...metadata, ownerReferences }, spec },
    signal,
  );
  const status = { phase: 'Running', nodeName };
  await client.patch(virtualMachineInstances, 'default', name, { type: 'merge', body: { status } }, signal, {
    subresource: 'status',
  });
}

function agentOf(node: string): FakeAgent {
  const agent = agents.get(node);
  if (!agent) throw new Error(`no agent on ${node}`);
  return agent;
}

async function logs(more: object = {}): Promise<string> {
  const output = new PassThrough();
  const chunks: string[] = [];
  output.on('data', (chunk: Buffer) => chunks.push(chunk.toString('utf8')));
  await machineLogs('box', { ...options, ...more }, env, output);
  return chunks.join('');
}

describe('power', () => {
  it('says what was asked for', async () => {
    await changePower('stop', 'box', options, env, print);
    expect(printed).toEqual(['VM box was scheduled to stop']);
    const { status } = await client.get(virtualMachines, 'default', 'box', signal);
    expect(status?.stateChangeRequests?.[0]?.action).toBe('Stop');
  });

  it('refuses in one sentence', async () => {
    await expect(changePower('start', 'box', options, env, print)).rejects.toThrow(
      'Operation cannot be fulfilled on virtualmachine.kubevirt.io "box": VM is already running; \'godwit restart box\' starts it anew',
    );
    await expect(changePower('stop', 'box', { ...options, force: true }, env, print)).rejects.toThrow('go together');
    await expect(changePower('stop', 'box', { kubeconfig: '/none' }, env, print)).rejects.toThrow(
      '/none does not exist',
    );
    await expect(changePause('pause', ['none'], options, env, print)).rejects.toThrow(
      "there is no virtual machine none in namespace default; 'kubectl get vm -A' lists all there are",
    );
    await expect(changePause('pause', ['pod', 'box'], options, env, print)).rejects.toThrow('neither vm nor vmi');
  });

  it('is passed on to the agent of the right node, which can ask who we are', async () => {
    await changePause('pause', ['vmi', 'box'], options, env, print);
    expect(printed).toEqual(['VMI box was scheduled to pause']);
    expect(agentOf('n2').seen).toContain('PUT /v1/namespaces/default/virtualmachineinstances/box/pause');
    expect(agentOf('n1').seen).toEqual([]);
    const [token = ''] = agentOf('n2').tokens;
    const { sub } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
    expect(sub).toBe('system:serviceaccount:kubevirt:godwit-extension');
  });
});

describe('a guest that went away', () => {
  it('is reclaimed only by who says that the other side is fenced', async () => {
    const template = { spec: { domain: { devices: {}, memory: { guest: '64Mi' } } } };
    const metadata = { name: 'kept', namespace: 'default' };
    const kind = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine' };
    await client.create(virtualMachines, { ...kind, metadata, spec: { runStrategy: 'Halted', template } }, signal);
    const body = { status: { rightToRun: { epoch: 4, grantedAway: true } } };
    const how = { subresource: 'status' };
    await client.patch(virtualMachines, 'default', 'kept', { type: 'merge', body }, signal, how);
    await expect(reclaim('kept', options, env, print)).rejects.toThrow('--i-have-fenced-the-other-side');
    await reclaim('kept', { ...options, iHaveFencedTheOtherSide: true }, env, print);
    expect(printed[0]).toBe(
      'VM kept was reclaimed: the machine can be started here again, on its disks as the guest left them',
    );
    const { status } = await client.get(virtualMachines, 'default', 'kept', signal);
    expect(status?.rightToRun).toEqual({ epoch: 5 });
    await expect(reclaim('kept', { ...options, iHaveFencedTheOtherSide: true }, env, print)).rejects.toThrow(
      'nothing of its guest is at, or on its way to, another namespace or cluster',
    );
  });
});

describe('migrations', () => {
  const migrations = async () =>
    (await client.list(virtualMachineInstanceMigrations, { namespace: 'default' }, signal)).items;

  it('are asked for and called off', async () => {
    await migrate('box', { ...options, dryRun: true }, env, print);
    expect(await migrations()).toEqual([]);
    await migrate('box', { ...options, addedNodeSelector: { zone: 'b' } }, env, print);
    expect((await migrations()).map(({ spec }) => spec)).toMatchObject([
      { vmName: 'box', addedNodeSelector: { zone: 'b' } },
    ]);
    await expect(migrate('box', options, env, print)).rejects.toThrow('in-flight migration detected');
    await cancelMigration('box', { ...options, dryRun: true }, env, print);
    expect((await migrations())[0]?.metadata.deletionTimestamp).toBeUndefined();
    await cancelMigration('box', options, env, print);
    expect((await migrations())[0]?.metadata.deletionTimestamp).toBeDefined();
    const migrated = 'VM box was scheduled to migrate';
    expect(printed).toEqual([
      'Dry Run execution',
      migrated,
      migrated,
      'Dry Run execution',
      `${migrated}-cancel`,
      `${migrated}-cancel`,
    ]);
  });

  it('need a machine, and something to call off', async () => {
    await expect(migrate('none', options, env, print)).rejects.toThrow('there is no virtual machine none');
    await expect(cancelMigration('none', options, env, print)).rejects.toThrow('Found no migration to cancel for none');
  });
});

describe('logs', () => {
  it('come from all nodes, the oldest first', async () => {
    agentOf('n1').log = 'one\ntwo\n';
    agentOf('n2').log = 'three\nfour\n';
    expect(await logs()).toBe('one\ntwo\nthree\nfour\n');
    expect(await logs({ tail: 3 })).toBe('two\nthree\nfour\n');
    expect(await logs({ tail: 1 })).toBe('four\n');
    expect(await logs({ follow: true, tail: 1 })).toBe('four\nlater\n');
    agentOf('n1').log = '';
    expect(await logs()).toBe('three\nfour\n');
  });

  it('of nobody are none', async () => {
    agentOf('n2').log = '';
    expect(await logs()).toBe('');
    await expect(machineLogs('none', options, env, new PassThrough())).rejects.toThrow(
      'there is no virtual machine none in namespace default',
    );
  });
});

describe('console', () => {
  const console = (name = 'box') => {
    const input = new PassThrough();
    const output = new PassThrough();
    const errors = new PassThrough();
    const ended = machineConsole(name, { ...options, timeoutMinutes: 0 }, env, { input, output, errors });
    ended.catch(() => undefined);
    let said = '';
    output.on('data', (chunk: Buffer) => (said += chunk.toString('utf8')));
    return { input, errors, ended, said: () => said };
  };

  it('carries bytes both ways until it is left', async () => {
    const { input, errors, ended, said } = console();
    input.write('hello');
    await eventually(() => expect(said()).toBe('echo hello'));
    expect(String(errors.read())).toBe(
      'Successfully connected to box console. Press Ctrl+] or Ctrl+5 to exit console.\n',
    );
    input.write('bye\u001dlost');
    await ended;
    expect(agentOf('n2').seen.at(-1)).toBe('GET /v1/namespaces/default/virtualmachineinstances/box/console');
  });

  it('says what to do when it breaks', async () => {
    const { ended } = console();
    const before = agentOf('n2').consoles.length;
    await eventually(() => expect(agentOf('n2').consoles.length).toBeGreaterThan(before));
    agentOf('n2').consoles.at(-1)?.terminate();
    await expect(ended).rejects.toThrow("connect again with 'godwit console box'");
  });

  it('goes with the guest that has moved, and takes along what is typed meanwhile', async () => {
    const holds = (node: string, epoch: number): Promise<unknown> => {
      const holder = { node, nodeUID: `uid-${node}`, podUID: `pod-${node}` };
      const body = { status: { rightToRun: { epoch, holder, successor: null } } };
      return client.patch(virtualMachineInstances, 'default', 'box', { type: 'merge', body }, signal, {
        subresource: 'status',
      });
    };
    const opened = (node: string, count: number): Promise<void> =>
      eventually(() => expect(agentOf(node).consoles).toHaveLength(count));
    const [before, there] = [agentOf('n2').consoles.length, agentOf('n1').consoles.length];
    await holds('n2', 1);
    const { input, errors, ended, said } = console();
    await opened('n2', before + 1);
    const left = agentOf('n2').consoles.at(-1) as WebSocket;
    left.close(1000, 'the console was closed');
    await once(left, 'close');
    input.write('typed blindly');
    const successor = { node: 'n1', nodeUID: 'uid-n1', podUID: 'pod-n1' };
    const body = { status: { rightToRun: { successor } } };
    const options = { subresource: 'status' };
    await client.patch(virtualMachineInstances, 'default', 'box', { type: 'merge', body }, signal, options);
    await holds('n1', 2);
    await opened('n1', there + 1);
    await eventually(() => expect(said()).toBe('echo typed blindly'));
    expect(String(errors.read())).toContain('\nbox has moved to n1: connected to its console there.\n');
    // Nothing has moved when somebody else sits there now.
    agentOf('n1').consoles.at(-1)?.close(4001, 'the console was taken over by another');
    await expect(ended).rejects.toThrow('taken over by another session');
    await client.patch(
      virtualMachineInstances,
      'default',
      'box',
      { type: 'merge', body: { status: { rightToRun: { epoch: 3, holder: null } } } },
      signal,
      options,
    );
  });

  it('is refused where nobody runs', async () => {
    await expect(console('none').ended).rejects.toThrow('there is no virtual machine none');
  });
});
