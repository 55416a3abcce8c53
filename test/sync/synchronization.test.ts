import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ownBundleOf, peersOf, withPeer } from '../../src/sync/trust/objects.ts';
import { runCli } from '../support/cli.ts';
import { Cluster } from '../support/cluster.ts';
import { eventually } from '../support/eventually.ts';
import { HttpClient } from '../support/http-client.ts';
import { freePort } from '../support/network.ts';

/** The synchronization controllers of two clusters, as `godwit up` has them, in processes of their own. */

const SYSTEM = '/api/v1/namespaces/kubevirt';
const KUBEVIRT = '/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt';
const MACHINES = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';
const GUESTS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances';
const MIGRATIONS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstancemigrations';

let east: Cluster;
let west: Cluster;

beforeAll(async () => {
  [east, west] = await Promise.all([Cluster.start(), Cluster.start()]);
});
afterAll(async () => {
  for (const cluster of [east, west]) {
    await runCli(['down', '--data-dir', cluster.godwit.directory]);
    await cluster.close();
  }
});

const directoryOf = ({ godwit }: Cluster): string => join(godwit.directory, 'synchronization');
const pidOf = (cluster: Cluster): number => {
  const path = join(directoryOf(cluster), 'lock');
  return existsSync(path) ? ((JSON.parse(readFileSync(path, 'utf8')) as { pid: number }).pid ?? 0) : 0;
};
const switchOn = (cluster: Cluster, gates: readonly string[]): Promise<unknown> =>
  cluster.merge(KUBEVIRT, { spec: { configuration: { developerConfiguration: { featureGates: gates } } } });
const addressOf = (cluster: Cluster): Promise<string> =>
  eventually(async () => {
    const { status } = await cluster.get(KUBEVIRT);
    const address: unknown = status?.synchronizationAddresses?.[0];
    expect(address).toMatch(/^127\.0\.0\.1:\d+$/);
    return address as string;
  });

/** What `godwit trust` does with what it exports there and imports here. */
async function trust(one: Cluster, other: Cluster): Promise<void> {
  const name = other === east ? 'east' : 'west';
  const bundle = ownBundleOf((await other.get(`${SYSTEM}/configmaps/godwit-synchronization-bundle`)).data);
  if (!bundle) throw new Error(`${name} has no authorities yet`);
  const { data } = await one.get(`${SYSTEM}/configmaps/godwit-trust`);
  await one.merge(`${SYSTEM}/configmaps/godwit-trust`, { data: withPeer(data ?? {}, { ...bundle, name }) });
  expect(peersOf((await one.get(`${SYSTEM}/configmaps/godwit-trust`)).data).peers).toHaveLength(1);
}

const blockedOf = async (cluster: Cluster): Promise<unknown> => {
  const conditions: { type: string }[] = (await cluster.get(`${MIGRATIONS}/web`)).status?.conditions ?? [];
  return conditions.find(({ type }) => type === 'decentralizedMigrationBlocked');
};

const machine = (name: string, runStrategy: string): object => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name },
  spec: { runStrategy, template: { spec: { domain: { devices: {}, memory: { guest: '64Mi' } } } } },
});

const migration = (name: string, half: object): object => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstanceMigration',
  metadata: { name },
  spec: { vmName: name, ...half },
});

describe('a synchronization controller', () => {
  it('is there once a half of a migration is, and not before', async () => {
    expect([pidOf(east), pidOf(west)]).toEqual([0, 0]);
    const early = migration('early', { receive: { key: 'early-key' } });
    await Promise.all([east, west].map((each) => each.create(MIGRATIONS, early)));
    expect(await addressOf(east)).not.toBe(await addressOf(west));
    expect(pidOf(east)).toBeGreaterThan(0);
    await eventually(async () =>
      expect((await west.get(`${MIGRATIONS}/early`)).status?.syncEndpoint).toBe(await addressOf(west)),
    );
  });

  it('may do no more than it has to', async () => {
    const { url, ca } = east.godwit.access();
    const token = readFileSync(join(directoryOf(east), 'token'), 'utf8');
    const client = new HttpClient({ url, ca, token });
    const statusOf = async (method: string, path: string): Promise<number> =>
      (await client.request(method, path)).status;
    try {
      expect(await statusOf('GET', GUESTS)).toBe(200);
      expect(await statusOf('GET', '/api/v1/secrets')).toBe(403);
      expect(await statusOf('GET', `${SYSTEM}/secrets`)).toBe(403);
      expect(await statusOf('GET', `${SYSTEM}/secrets/godwit-extension-certificate`)).toBe(403);
      expect(await statusOf('DELETE', `${GUESTS}/web`)).toBe(403);
      expect(await statusOf('DELETE', `${MIGRATIONS}/web`)).toBe(403);
      expect(await statusOf('GET', '/api/v1/pods')).toBe(403);
    } finally {
      client.close();
    }
  });

  it('speaks to a cluster that trusts it, and to no other', async () => {
    await east.create(MACHINES, machine('web', 'Always'));
    await west.create(MACHINES, machine('web', 'WaitAsReceiver'));
    await Promise.all([east, west].map((each) => eventually(() => each.get(`${GUESTS}/web`))));
    await west.create(MIGRATIONS, migration('web', { receive: { key: 'secret-key' } }));
    const endpoint = await eventually(async () => {
      const { status } = await west.get(`${MIGRATIONS}/web`);
      expect(status?.syncEndpoint).toBe(await addressOf(west));
      return status.syncEndpoint as string;
    });
    const sendTo = { key: 'secret-key', connectURL: `https://${endpoint}` };
    await east.create(MIGRATIONS, migration('web', { sendTo }));
    await eventually(async () =>
      expect(await blockedOf(east)).toMatchObject({
        status: 'True',
        reason: 'Unreachable',
        message: expect.stringContaining('no cluster that is trusted here has answered'),
      }),
    );
    await trust(east, west);
    await trust(west, east);
    await eventually(async () => {
      expect(await blockedOf(east)).toBeUndefined();
      const { metadata } = await east.get(`${MIGRATIONS}/web`);
      const { uid } = (await west.get('/api/v1/namespaces/kube-system')).metadata;
      expect(metadata.annotations).toMatchObject({ 'godwit.dev/synchronization-peer': uid });
    });
  });

  it('counts what it says and hears', async () => {
    const port = readFileSync(join(east.godwit.directory, 'synchronization-metrics-port'), 'utf8').trim();
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    expect(text).toContain('godwit_synchronization_streams{end="dialed"} 1');
    expect(text).toMatch(/godwit_synchronization_messages_total\{direction="sent",kind="hello"\} [1-9]/);
    expect(text).toMatch(/godwit_synchronization_dial_failures_total\{code="NotTrusted"\} [1-9]/);
  });

  it('goes on when it was killed, at once', async () => {
    const before = pidOf(west);
    expect(before).toBeGreaterThan(0);
    process.kill(before, 'SIGKILL');
    await eventually(() => {
      expect(pidOf(west)).not.toBe(before);
      expect(pidOf(west)).toBeGreaterThan(0);
    });
    // It speaks for migrations again long before a lease that nobody gave back would have ended.
    await west.api.request('DELETE', `${MIGRATIONS}/web`);
    await eventually(async () => expect((await west.api.request('GET', `${MIGRATIONS}/web`)).status).toBe(404));
    await west.create(MIGRATIONS, migration('web', { receive: { key: 'secret-key' } }));
    await eventually(async () =>
      expect((await west.get(`${MIGRATIONS}/web`)).status?.syncEndpoint).toBe(await addressOf(west)),
    );
    await east.api.request('DELETE', `${MIGRATIONS}/web`);
    await eventually(async () => expect((await east.api.request('GET', `${MIGRATIONS}/web`)).status).toBe(404));
  });

  it('goes to another port when the configuration says so', async () => {
    const before = await addressOf(west);
    const port = await freePort();
    await west.merge(KUBEVIRT, { spec: { synchronizationPort: String(port) } });
    await eventually(async () => expect(await addressOf(west)).toBe(`127.0.0.1:${port}`));
    await eventually(async () =>
      expect((await west.get(`${MIGRATIONS}/web`)).status?.syncEndpoint).toBe(`127.0.0.1:${port}`),
    );
    await west.merge(KUBEVIRT, { spec: { synchronizationPort: null } });
    await eventually(async () => expect(await addressOf(west)).toBe(before));
  });

  it('ends with what it is there for', async () => {
    const pid = pidOf(west);
    expect(pid).toBeGreaterThan(0);
    await switchOn(west, []);
    // Not before what it was begun for is over.
    for (const name of ['web', 'early']) await west.api.request('DELETE', `${MIGRATIONS}/${name}`);
    await eventually(() => expect(() => process.kill(pid, 0)).toThrow('ESRCH'));
    const { stdout } = await runCli(['down', '--data-dir', east.godwit.directory]);
    expect(stdout).toContain('Stopped the control plane');
    expect(pidOf(east)).toBe(0);
  });
});
