import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { type Running, startCli } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { Godwit } from '../support/godwit.ts';
import { Kubectl } from '../support/kubectl.ts';
import { freePorts } from '../support/network.ts';

/** A process that works while it has a lease goes on as a candidate when it has lost it. */

const PATIENCE_MS = 60_000;
// Leases are lost and taken by the clock, twice in one test.
vi.setConfig({ testTimeout: 300_000 });

let godwit: Godwit;
let kubectl: Kubectl;
let running: Running | undefined;

beforeAll(async () => {
  godwit = await Godwit.start();
  kubectl = new Kubectl(godwit.kubeconfig);
});
afterEach(async () => {
  running?.child.kill('SIGTERM');
  await running?.finished;
});
afterAll(() => godwit.remove());

/** Waits until somebody leads who is not the one that takes leases here; answers who. */
const leaderOf = (lease: string): Promise<string> =>
  eventually(async () => {
    const { spec } = await kubectl.json(`get ${lease}`);
    expect(spec.holderIdentity).toBeTruthy();
    expect(spec.holderIdentity).not.toBe('somebody');
    return spec.holderIdentity as string;
  }, PATIENCE_MS);

it.each([
  ['controllers', 'virt-controller', []],
  ['sync', 'virt-synchronization-controller', ['--listen', '127.0.0.1:0']],
])(
  '%s stands again, as another, once its lease was taken, and is not ready while it reaches no lease',
  async (command, name, options) => {
    const lease = `lease ${name} -n kubevirt`;
    const metrics = `127.0.0.1:${(await freePorts(1))[0]}`;
    const cli = startCli([command, '--kubeconfig', godwit.kubeconfig, '--metrics', metrics, ...options]);
    running = cli;
    const first = await leaderOf(lease);
    const taken = { spec: { holderIdentity: 'somebody', leaseDurationSeconds: 1 } };
    await kubectl.ok(`patch ${lease} --type merge -p ${JSON.stringify(taken)}`);
    await eventually(() => expect(cli.output()).toContain('standing for leadership again'), PATIENCE_MS);
    expect(await leaderOf(lease)).not.toBe(first);
    await eventually(async () => {
      const told = await (await fetch(`http://${metrics}/metrics`)).text();
      expect(told).toContain(`leader_election_master_status{name="${name}"} 1`);
    }, PATIENCE_MS);
    const readiness = async (): Promise<number> => (await fetch(`http://${metrics}/readyz`)).status;
    expect(await readiness()).toBe(200);
    await godwit.kill();
    await eventually(async () => expect(await readiness()).toBe(503), PATIENCE_MS);
    expect((await fetch(`http://${metrics}/healthz`)).status).toBe(200);
    await godwit.start();
    await eventually(async () => expect(await readiness()).toBe(200), PATIENCE_MS);
    expect(cli.child.exitCode).toBeNull();
  },
);

it('sync ends without a word of failure where no API server has answered by then', async () => {
  await godwit.kill();
  const cli = startCli(['sync', '--kubeconfig', godwit.kubeconfig]);
  running = cli;
  await eventually(() => expect(cli.output()).toContain('the cluster does not answer'), PATIENCE_MS);
  cli.child.kill('SIGTERM');
  const { code, stdout, stderr } = await cli.finished;
  expect(code).toBe(0);
  expect(`${stdout}${stderr}`).not.toContain('failed while stopping');
});
