import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { EventStream } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { probe, virtualMachine } from '../support/guest-manifests.ts';
import type { GodwitOnKubernetes } from '../support/kubernetes/godwit-on-kubernetes.ts';
import { mostAtOnce, noSlotIsTaken } from '../support/moves-at-once.ts';
import { MovingGuests } from '../support/moving-guests.ts';
import { say } from '../support/say.ts';

/** Two replicas of the controllers: the leader dies in the middle of ten migrations, and the other one takes over. */

vi.setConfig({ testTimeout: 900_000, hookTimeout: 600_000 });

const LEASE = '/apis/coordination.k8s.io/v1/namespaces/kubevirt/leases/virt-controller';
const PODS = '/api/v1/namespaces/default/pods';
/** The migration that a pod is the target of. */
const JOB = 'kubevirt.io/migrationJobUID';
const LIMITS = {
  parallelMigrationsPerCluster: 3,
  parallelOutboundMigrationsPerNode: 2,
  parallelInboundMigrationsPerNode: 2,
};
const names = Array.from({ length: 10 }, (_, index) => `guest-${index}`);

let guests: MovingGuests;
let events: EventStream;
let pods: EventStream;
let kubernetes: GodwitOnKubernetes;
beforeAll(async () => {
  guests = await MovingGuests.start({ nodes: 3 });
  if (!guests.host.godwit.onKubernetes) throw new Error('this is for Kubernetes: npm run test:kubernetes');
  kubernetes = guests.host.godwit.onKubernetes;
  kubernetes.addControllers();
  await guests.configure(LIMITS);
  await Promise.all(names.map((name) => guests.host.create(virtualMachine(name, probe({ tickMs: 100 })))));
  for (const name of names) await guests.knows(name);
  events = await guests.watchMigrations();
  const { resourceVersion } = (await guests.host.api.request('GET', PODS)).expect(200).json.metadata;
  pods = await guests.host.api.watch(`${PODS}?watch=true&resourceVersion=${resourceVersion}`);
});
afterAll(() => guests.stop());

async function leader(): Promise<string> {
  return (await guests.host.api.request('GET', LEASE)).expect(200).json.spec.holderIdentity;
}

describe('with two replicas of the controllers', () => {
  it('the death of the leader in the middle of ten migrations loses nothing, doubles nothing and exceeds no limit', async () => {
    const asked = await Promise.all(names.map((name) => guests.ask(name)));
    await eventually(async () => {
      const phases = (await guests.migrations()).map(({ status }) => status?.phase);
      expect(
        phases.some((phase) => phase === 'Running'),
        phases.join(' '),
      ).toBe(true);
    }, 120_000);
    const first = await leader();
    await kubernetes.killControllers(first);
    const left = (await guests.migrations()).filter(({ status }) => !['Succeeded', 'Failed'].includes(status?.phase));
    expect(left.length).toBeGreaterThan(LIMITS.parallelMigrationsPerCluster);
    for (const migration of asked) await eventually(() => guests.succeeds(migration), 600_000);
    const second = await leader();
    const { all, from, to } = mostAtOnce(events);
    say(`${first} was followed by ${second}; at most ${all} moved at once, ${from} from a node, ${to} to a node`);
    expect(second).not.toBe(first);
    expect(Math.min(all, from, to)).toBeGreaterThan(0);
    expect(all).toBeLessThanOrEqual(LIMITS.parallelMigrationsPerCluster);
    expect(from).toBeLessThanOrEqual(LIMITS.parallelOutboundMigrationsPerNode);
    expect(to).toBeLessThanOrEqual(LIMITS.parallelInboundMigrationsPerNode);
    for (const name of names) {
      // Where it was started, and where it went: no third place.
      expect(await guests.isWhole(name)).toHaveLength(2);
    }
    // A pod that was made twice counts also where it is gone by now.
    const targets = new Map<string, string>();
    for (const { object } of pods.events) {
      const { uid, labels } = object.metadata;
      if (labels?.[JOB] !== undefined) targets.set(uid, labels[JOB]);
    }
    const uids = (await guests.migrations()).map(({ metadata }): string => metadata.uid);
    expect([...targets.values()].toSorted()).toEqual(uids.toSorted());
    await noSlotIsTaken(guests.host.api);
    expect(guests.host.assertNeverDoubled()).toBeGreaterThan(names.length);
  });
});
