import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Anything } from '../support/api.ts';
import { type Running, startCli } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { claim, probe } from '../support/guest-manifests.ts';
import type { MovingGuests } from '../support/moving-guests.ts';
import { IS_FULL } from '../support/sample.ts';
import { TwoClusters } from '../support/two-clusters.ts';

/** Guests that go from one whole cluster to another one, which it reaches by the ports of migrations alone. */

vi.setConfig({ testTimeout: 400_000, hookTimeout: 300_000 });

/** How often the guest goes there and comes back. */
const TIMES = IS_FULL ? 10 : 1;

let clusters: TwoClusters;
/** A synchronization controller of the first cluster besides the one that it starts by itself, and which was there before that. */
let replica: Running;
beforeAll(async () => {
  clusters = await TwoClusters.start();
  const { host } = clusters.east;
  const { kubeconfig, place } = host.godwit;
  replica = startCli(['sync', '--kubeconfig', kubeconfig, '--listen', `${place.host}:0`], {}, place.wrap);
  await eventually(
    async () => expect((await leaseOf(clusters.east)).holderIdentity).toEqual(expect.any(String)),
    60_000,
  );
  await clusters.exchangeTrust();
});
afterAll(async () => {
  replica?.child.kill('SIGKILL');
  await clusters?.stop();
});

/** Who works of the synchronization controllers of a cluster. */
async function leaseOf({ host }: MovingGuests): Promise<Anything> {
  const path = '/apis/coordination.k8s.io/v1/namespaces/kubevirt/leases/virt-synchronization-controller';
  return (await host.api.request('GET', path)).expect(200).json.spec;
}

const DISK = { name: 'data', source: { persistentVolumeClaim: { claimName: 'web' } } };
const SPEC = probe({ memory: '48Mi', arguments: 'mib=24 hz=200 rate=4 write=20', volumes: [DISK], ports: [80] });
const START = '/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachines/web/start';

/** What a guest is known by to itself and to others. */
const identityOf = ({ spec, status }: Anything): object => ({
  uuid: spec.domain.firmware.uuid,
  macs: status.interfaces.map(({ mac }: Anything) => mac),
});

/** The machine is there, and so is its disk; but nobody starts it by mistake. */
async function isKept({ host }: MovingGuests): Promise<void> {
  const machine = await host.machine('web');
  expect(machine.spec.runStrategy).toBe('Halted');
  await eventually(async () => expect(await host.guest('web')).toBeUndefined(), 60_000);
  const answer = await host.api.request('PUT', START, { body: {} });
  expect([answer.status, answer.json.message]).toEqual([409, expect.stringContaining('godwit reclaim')]);
  expect(host.qemus()).toEqual([]);
}

/** What comes of a call from one cluster to an address of the other. */
function call(url: string): string {
  const { hostname, port } = new URL(url);
  const script = `require('net').connect(${port}, '${hostname}', () => { console.log('heard'); process.exit(); })
    .on('error', ({ code }) => console.log(code))`;
  const [command, args] = clusters.wire.east.wrap(process.execPath, ['-e', script]);
  return spawnSync(command, args, { encoding: 'utf8' }).stdout.trim();
}

it('nothing but migrations passes between the clusters', async () => {
  const { west } = clusters;
  expect(call(`https://${await west.host.synchronizationAddress()}`)).toBe('heard');
  expect(call(west.host.godwit.access().url)).toBe('EHOSTUNREACH');
});

describe('a guest', () => {
  it('comes though the synchronization controller is killed meanwhile: another one has waited for that', async () => {
    const { east, west } = clusters;
    const labels = { pace: 'slow' };
    const spec = probe({ tickMs: 50, memory: '32Mi', arguments: 'mib=12 hz=200 rate=4' });
    await west.policy('paced', labels, { bandwidthPerMigration: '6Mi' });
    await east.create('led', spec);
    const trip = clusters.trip('led', east);
    await clusters.receiver(trip, spec, { labels });
    const { holderIdentity, leaseTransitions = 0 } = await leaseOf(east);
    await eventually(() => expect(east.host.synchronizationPid()).toEqual(expect.any(Number)), 60_000);
    const halves = await clusters.begin(trip);
    await east.reaches(halves.source, 'Running');
    expect((await leaseOf(east)).holderIdentity).toBe(holderIdentity);
    replica.child.kill('SIGKILL');
    expect(await clusters.arrives(trip, halves)).toHaveLength(2);
    await clusters.areLetGo(trip, halves);
    const after = await leaseOf(east);
    expect(after.holderIdentity).not.toBe(holderIdentity);
    expect(after.leaseTransitions).toBe(leaseTransitions + 1);
    for (const { status } of [await east.migration(halves.source), await west.migration(halves.target)])
      expect(status.phaseTransitionTimestamps.filter(({ phase }: Anything) => phase === 'Succeeded')).toHaveLength(1);
    for (const each of clusters.both) await each.remove('led');
  });

  it(`goes to another cluster and back, as often as ${TIMES} times, and is still the one that it was`, async () => {
    const { east, west } = clusters;
    for (const { host } of clusters.both) await host.create(claim('web', 'local'));
    await east.create('web', SPEC);
    const identity = identityOf(await east.host.guest('web'));
    expect(identity).toEqual({ uuid: expect.any(String), macs: [expect.any(String)] });

    for (let stays = 1; stays <= 2 * TIMES; stays++) {
      const trip = clusters.trip('web', stays % 2 === 1 ? east : west);
      await (stays === 1 ? clusters.receiver(trip, SPEC) : clusters.receiverAgain(trip));
      expect(trip.to.host.qemus()).toEqual([]);
      expect(await clusters.arrives(trip, await clusters.begin(trip))).toHaveLength(stays + 1);
      expect(identityOf(await trip.to.host.guest('web'))).toEqual(identity);
      await eventually(async () => expect((await trip.to.host.machine('web')).spec.runStrategy).toBe('Always'));
      await isKept(trip.from);
    }
    expect(await east.host.ask('web', 'disk')).toMatch(/ bad=0\b/);
    expect(await east.host.ask('web', 'memory')).toMatch(/ bad=0\b/);
    clusters.assertNeverDoubled();
  }, 900_000);
});
