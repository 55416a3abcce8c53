import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Running, startCli } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { Godwit } from '../support/godwit.ts';
import { Kubectl } from '../support/kubectl.ts';
import { freePorts } from '../support/network.ts';

/** A process that works while it has a lease goes on as a candidate when it has lost it. */

const LEASE = 'lease virt-controller -n kubevirt';
const PATIENCE_MS = 60_000;

let godwit: Godwit;
let kubectl: Kubectl;
let controllers: Running;
let metrics: string;

beforeAll(async () => {
  godwit = await Godwit.start();
  kubectl = new Kubectl(godwit.kubeconfig);
  metrics = `127.0.0.1:${(await freePorts(1))[0]}`;
  controllers = startCli(['controllers', '--kubeconfig', godwit.kubeconfig, '--metrics', metrics]);
});
afterAll(async () => {
  controllers.child.kill('SIGTERM');
  await controllers.finished;
  await godwit.remove();
});

/** Waits until this process leads; answers as whom. */
const leads = (): Promise<string> =>
  eventually(async () => {
    const { spec } = await kubectl.json(`get ${LEASE}`);
    expect(spec.holderIdentity).toBeTruthy();
    expect(spec.holderIdentity).not.toBe('somebody');
    return spec.holderIdentity as string;
  }, PATIENCE_MS);

it('stands again, as another, once its lease was taken', async () => {
  const first = await leads();
  const taken = { spec: { holderIdentity: 'somebody', leaseDurationSeconds: 1 } };
  await kubectl.ok(`patch ${LEASE} --type merge -p ${JSON.stringify(taken)}`);
  await eventually(() => expect(controllers.output()).toContain('standing for leadership again'), PATIENCE_MS);
  expect(await leads()).not.toBe(first);
  await eventually(async () => {
    const told = await (await fetch(`http://${metrics}/metrics`)).text();
    expect(told).toContain('leader_election_master_status{name="virt-controller"} 1');
  }, PATIENCE_MS);
  expect(controllers.child.exitCode).toBeNull();
});
