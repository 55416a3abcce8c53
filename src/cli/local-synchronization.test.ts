import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { eventually } from '../../test/support/eventually.ts';
import { SYSTEM_NAMESPACE } from '../api/kubevirt/well-known.ts';
import { ControlScene } from '../control/control.fixture.ts';
import type { ChildProcess, Processes } from '../env/ports.ts';
import { realRandom } from '../env/real.ts';
import { silentLogger, testEnv } from '../env/test.ts';
import { ObjectApplier } from '../kube/apply-objects.ts';
import { kubeVirts, virtualMachineInstanceMigrations } from '../kube/kubevirt-resources.ts';
import { leaseResource } from '../kube/leader-lease.ts';
import { createAuthority, DAY_MS } from '../machinery/x509/authority.ts';
import { synchronizationRights } from '../sync/rights.ts';
import { importTrust, ownTrust } from '../sync/trust/administration.ts';
import { parseBundle } from '../sync/trust/bundle.ts';
import { LocalSynchronization } from './local-synchronization.ts';

/** When `godwit up` starts its synchronization controller; nothing is really started. */

const KUBECONFIG = 'apiVersion: v1\nkind: Config\nusers: [{name: admin, user: {token: x}}]\n';

const scene = new ControlScene();
let directory: string;
let started: string[];
/** What was ended, by its process id. */
let stopped: number[];
let local: LocalSynchronization;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'godwit-test-'));
  started = [];
  stopped = [];
  await scene.start();
  await (await ObjectApplier.of(scene.client, scene.signal)).apply(synchronizationRights(), scene.signal);
  local = make();
});
afterEach(async () => {
  await local.stop();
  await scene.stop();
  rmSync(directory, { recursive: true, force: true });
});

function make(): LocalSynchronization {
  const processes = {
    spawnDetached: async ({ arguments: args }): Promise<ChildProcess> => {
      started.push(args[1] ?? '');
      return { identity: { pid: started.length, startedAt: 'x' }, exited: new Promise(() => undefined) };
    },
    kill: async ({ pid }) => void stopped.push(pid),
  } as Pick<Processes, 'spawnDetached' | 'kill'> as Processes;
  return new LocalSynchronization({
    env: { clock: scene.clock, random: realRandom, log: silentLogger },
    processes,
    directory,
    host: '127.0.0.1',
    admin: scene.client,
    kubeconfig: KUBECONFIG,
    main: 'main.js',
    logLevel: 'info',
    print: () => undefined,
  });
}

const claim = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', spec: { holderIdentity: 'shop/web/uid' } };
const metadata = { name: 'godwit-key-target-0123', namespace: SYSTEM_NAMESPACE };
const runs = (times: number): Promise<void> =>
  eventually(() => expect(started).toEqual(Array.from({ length: times }, () => 'sync')));

async function passes(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await scene.pass(100, 100);
}

it('is not started before anybody needs it, and the cluster has an identity all the same', async () => {
  await local.start();
  await passes();
  expect(started).toEqual([]);
  expect(await ownTrust(scene.client, 'here', scene.signal)).toMatchObject({ name: 'here' });
});

it('is started by the first half of a migration, and the next time from the start', async () => {
  await local.start();
  await scene.client.create(leaseResource, { ...claim, metadata }, scene.signal);
  await runs(1);
  await scene.client.delete(leaseResource, SYSTEM_NAMESPACE, metadata.name, scene.signal);
  await passes();
  await local.stop();
  local = make();
  await local.start();
  await runs(2);
});

it('is started once a cluster is trusted', async () => {
  await local.start();
  const authority = await createAuthority(testEnv(), 'other', DAY_MS * 365);
  const authorities = parseBundle(authority.certificatePem);
  const document = { clusterId: 'aaaaaaaa-0000-4000-8000-000000000000', name: 'other', authorities };
  await importTrust(scene.client, { document, nowMs: scene.clock.now() }, scene.signal);
  await runs(1);
});

async function switchOff(): Promise<void> {
  const body = { spec: { configuration: { developerConfiguration: { featureGates: [] } } } };
  await scene.client.patch(kubeVirts, SYSTEM_NAMESPACE, 'kubevirt', { type: 'merge', body }, scene.signal);
}

it('is stopped where migrations between clusters are switched off, once all halves that have begun are over', async () => {
  await local.start();
  const half = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: { name: 'receive', namespace: 'default' },
    spec: { vmiName: 'web', receive: { key: 'k' } },
  };
  await scene.client.create(virtualMachineInstanceMigrations, half, scene.signal);
  await scene.client.create(leaseResource, { ...claim, metadata }, scene.signal);
  await runs(1);
  await switchOff();
  await passes();
  expect(stopped).toEqual([]);
  await scene.client.delete(virtualMachineInstanceMigrations, 'default', 'receive', scene.signal);
  await eventually(() => expect(stopped).toEqual([1]));
});

it('is not started where migrations between clusters are switched off', async () => {
  await switchOff();
  await local.start();
  await scene.client.create(leaseResource, { ...claim, metadata }, scene.signal);
  await passes();
  expect(started).toEqual([]);
});
