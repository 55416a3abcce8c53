import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Anything } from '../support/api.ts';
import { DisruptedGuests } from '../support/disrupted-guests.ts';
import { eventually } from '../support/eventually.ts';
import { claim, probe } from '../support/guest-manifests.ts';
import type { MovingGuests } from '../support/moving-guests.ts';
import { allOnKubernetes, someOf } from '../support/sample.ts';

/** Guests whose launcher pods are preempted: those that ask for it move, and no other does. */

vi.setConfig({ testTimeout: 240_000, hookTimeout: 180_000 });

const GATES = ['PreemptionEvictionLiveMigration', 'NoExecuteTaintEvictionLiveMigration'];
const PRIORITY_CLASSES = '/apis/scheduling.k8s.io/v1/priorityclasses';
/** Seconds that guests of these tests have to shut down. */
const GRACE = 20;
/** For so many seconds guests are held, where the end of that is waited for. */
const SHORT_HOLD = 12;
/** A guest that is copied so slowly that its time is over before. */
const TOO_SLOW = { bandwidthPerMigration: '512Ki' };

let disrupted: DisruptedGuests;
let guests: MovingGuests;

beforeAll(async () => {
  disrupted = await DisruptedGuests.start({ nodes: 2 });
  ({ guests } = disrupted);
  await guests.policy('too-slow', { pace: 'too-slow' }, TOO_SLOW);
  await guests.policy('slow', { pace: 'slow' }, { bandwidthPerMigration: '4Mi' });
});
afterAll(() => disrupted.stop());

const spec = (evictionStrategy: string, more: object = {}): object =>
  probe({ evictionStrategy, graceSeconds: GRACE, memory: '48Mi', arguments: 'mib=16 hz=100 rate=2', ...more });

/** Waits until a guest has said on its serial port that it turns itself off: nobody had to. */
const hasShutDown = (pod: Anything): Promise<void> =>
  eventually(() => expect(guests.host.logs().get(pod.metadata.uid)).toMatch(/power=off/));

describe('a guest whose pod is preempted', () => {
  const moved = someOf(...allOnKubernetes(5, 2));
  const stopped = someOf(...allOnKubernetes(3, 1));

  moved('moves, and is not shut down: told and deleted by hand', async () => {
    await guests.create('naive', spec('LiveMigrate'));
    const pod = await disrupted.disrupt('naive');
    expect(pod.metadata.deletionGracePeriodSeconds).toBe(GRACE + 15 + 300);
    const migration = await disrupted.hasMoved('naive', pod, 'Preemption');
    expect(migration.status.causes).toEqual([
      expect.objectContaining({ cause: 'Preemption', deadline: pod.metadata.deletionTimestamp }),
    ]);
    expect(await disrupted.toldMs('naive', 'ShuttingDown')).toBeUndefined();
    await guests.remove('naive');
  });

  it('moves, and is not shut down: a scheduler needs its room', async () => {
    await guests.create('realistic', spec('LiveMigrateIfPossible'));
    const pod = await disrupted.launcher('realistic');
    const node = await nodeOf(pod.spec.nodeName);
    const value = { value: 1000, description: 'for what is urgent' };
    const body = { apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass', metadata: { name: 'urgent' }, ...value };
    (await guests.host.api.request('POST', PRIORITY_CLASSES, { body })).expect(201);
    await disrupted.createPod('preemptor', {
      priorityClassName: 'urgent',
      nodeSelector: { 'kubernetes.io/hostname': pod.spec.nodeName },
      containers: [{ name: 'c', image: 'i', resources: { requests: { memory: node.status.allocatable.memory } } }],
    });
    const going = await eventually(async () => {
      const found = await disrupted.pod(pod.metadata.name);
      expect(found?.metadata.deletionTimestamp).toBeDefined();
      return found;
    }, 30_000);
    expect(going.status.conditions).toContainEqual(
      expect.objectContaining({ type: 'DisruptionTarget', status: 'True', reason: 'PreemptionByScheduler' }),
    );
    await disrupted.hasMoved('realistic', pod, 'Preemption');
    // The room that it made is the other's.
    await eventually(async () => {
      expect((await disrupted.pod('preemptor')).spec.nodeName).toBe(pod.spec.nodeName);
    }, 30_000);
    await disrupted.deletePod('preemptor', { gracePeriodSeconds: 0 });
    await guests.host.api.request('DELETE', `${PRIORITY_CLASSES}/urgent`);
    await guests.remove('realistic');
  });

  moved('moves once, though it is evicted besides, and its node is to be empty', async () => {
    await guests.configure({ parallelMigrationsPerCluster: 0 });
    await guests.create('wanted', spec('LiveMigrate'));
    const { metadata, spec: where } = await disrupted.launcher('wanted');
    await disrupted.isMigratable('wanted', 'True');
    const { name, namespace } = metadata;
    const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } };
    const path = `/api/v1/namespaces/default/pods/${name}/eviction`;
    (await guests.host.api.request('POST', path, { body })).expect(429);
    await guests.host.kubectl.ok(['taint', 'node', where.nodeName, 'kubevirt.io/drain=:NoSchedule']);
    await disrupted.isMarked('wanted', 'DrainTaint');
    const pod = await disrupted.disrupt('wanted');
    const { deadline } = await disrupted.isMarked('wanted', 'Preemption');
    // What waits was made for the first of them, and is as pressing as the last.
    await eventually(async () => {
      const [migration, ...others] = await disrupted.migrationsOf('wanted');
      expect(others).toEqual([]);
      expect(migration?.status?.causes).toEqual([
        expect.objectContaining({ cause: 'APIEviction' }),
        expect.objectContaining({ cause: 'DrainTaint' }),
        expect.objectContaining({ cause: 'Preemption', deadline }),
      ]);
    }, 30_000);
    // Whoever asks once more would cut its time short.
    (await guests.host.api.request('POST', path, { body })).expect(429);
    await guests.configure({ parallelMigrationsPerCluster: 5 });
    const { status } = await disrupted.hasMoved('wanted', pod, 'APIEviction');
    expect(status.causes).toHaveLength(3);
    expect(await disrupted.toldMs('wanted', 'ShuttingDown')).toBeUndefined();
    await guests.host.kubectl.ok(['taint', 'node', where.nodeName, 'kubevirt.io/drain-']);
    await guests.remove('wanted');
  });

  moved('moves though the agents are killed with -9 while it is held and copied', async () => {
    await guests.create('killed', spec('LiveMigrate'), { pace: 'slow' });
    const pod = await disrupted.disrupt('killed');
    await guests.host.killAgent(pod.spec.nodeName);
    const [{ metadata }] = await eventually(async () => {
      const found = await disrupted.migrationsOf('killed');
      expect(found).not.toHaveLength(0);
      return found;
    }, 30_000);
    await guests.reaches(metadata.name, 'Running', 'Succeeded');
    await guests.host.killAgent(pod.spec.nodeName);
    await eventually(async () => {
      expect((await guests.holder('killed')).podUID).not.toBe(pod.metadata.uid);
    }, 120_000);
    expect(await guests.isWhole('killed')).toHaveLength(2);
    expect(await disrupted.toldMs('killed', 'ShuttingDown')).toBeUndefined();
    await guests.host.nodesAreReady(2);
    await guests.remove('killed');
  });

  moved('moves though the control plane is killed with -9 while it is held', async () => {
    await guests.create('unattended', spec('LiveMigrate'), { pace: 'slow' });
    const pod = await disrupted.disrupt('unattended');
    await guests.host.godwit.kill();
    await guests.host.godwit.start();
    await eventually(async () => {
      expect((await guests.holder('unattended')).podUID).not.toBe(pod.metadata.uid);
    }, 120_000);
    expect(await guests.isWhole('unattended')).toHaveLength(2);
    expect(await disrupted.toldMs('unattended', 'ShuttingDown')).toBeUndefined();
    await guests.remove('unattended');
  });

  moved('has less time where the room is for a critical pod, for as long as that waits', async () => {
    await guests.create('in-the-way', spec('External'));
    const pod = await disrupted.disrupt('in-the-way');
    const { deletionTimestamp: end, deletionGracePeriodSeconds: seconds } = pod.metadata;
    expect((await disrupted.isMarked('in-the-way', 'Preemption')).deadline).toBe(end);
    const { allocatable } = (await nodeOf(pod.spec.nodeName)).status;
    await disrupted.createPod('critical', {
      priorityClassName: 'system-node-critical',
      nodeSelector: { 'kubernetes.io/hostname': pod.spec.nodeName },
      containers: [{ name: 'c', image: 'i', resources: { requests: { memory: allocatable.memory } } }],
    });
    const deadlineIs = (wantedMs: number): Promise<void> =>
      eventually(async () => {
        const { deadline } = await disrupted.isMarked('in-the-way', 'Preemption');
        expect(Date.parse(deadline)).toBe(wantedMs);
      }, 60_000);
    await deadlineIs(Date.parse(end) - seconds * 1000 + (60 + GRACE + 15) * 1000);
    await disrupted.deletePod('critical', { gracePeriodSeconds: 0 });
    await deadlineIs(Date.parse(end));
    await guests.remove('in-the-way');
  });

  stopped('is shut down at once where it cannot move', async () => {
    await guests.host.create(claim('stuck', 'local'));
    const volumes = [{ name: 'data', source: { persistentVolumeClaim: { claimName: 'stuck' } } }];
    await guests.create('stuck', spec('LiveMigrate', { volumes }));
    await disrupted.isMigratable('stuck', 'False');
    await isStopped('stuck', () => disrupted.disrupt('stuck'));
  });

  stopped('is shut down at once where nothing else is asked for', async () => {
    await guests.create('plain', spec('None'));
    await isStopped('plain', () => disrupted.disrupt('plain'));
  });

  stopped('is shut down at once while the feature is off', async () => {
    await guests.create('off', spec('LiveMigrate'));
    await guests.configure({}, []);
    await isStopped('off', () => disrupted.disrupt('off'));
    await guests.configure({}, GATES);
  });
});

describe('a guest whose pod is deleted', () => {
  const some = someOf(...allOnKubernetes(2, 1));
  some('is shut down, though its pod was once told that it would be preempted', async () => {
    await guests.create('stale', spec('LiveMigrate'));
    await isStopped('stale', async () => {
      const pod = await disrupted.launcher('stale');
      await disrupted.tell(pod, 'PreemptionByScheduler');
      await disrupted.backdate(pod.metadata.name, 600);
      return disrupted.deletePod(pod.metadata.name);
    });
  });

  some('is shut down when that is asked for while it is held', async () => {
    await guests.create('asked', spec('External'));
    const guest = await guests.host.guest('asked');
    const pod = await disrupted.disrupt('asked');
    await disrupted.told('asked', 'ShutdownHeld');
    expect(await disrupted.toldMs('asked', 'ShuttingDown')).toBeUndefined();
    await disrupted.deletePod(pod.metadata.name, { gracePeriodSeconds: 100 });
    await disrupted.ends(guest);
    await hasShutDown(pod);
    expect(await disrupted.migrationsOf('asked')).toEqual([]);
    await guests.remove('asked');
  });
});

describe('a guest that is held until its time is over', () => {
  /** Whoever is only waited for is waited for together. Nobody's agent is killed meanwhile but that of whom it is about. */
  const TWICE = { disruptionHoldSeconds: 2 * SHORT_HOLD };
  const disruptive = { bandwidthPerMigration: '6Mi', allowWorkloadDisruption: true, completionTimeoutPerGiB: 0 };

  const some = someOf(...allOnKubernetes(2, 1), describe);
  some('that copies', () => {
    beforeAll(async () => {
      await guests.policy('hurried', { pace: 'hurried' }, disruptive);
      await guests.configure({ disruptionHoldSeconds: SHORT_HOLD });
      await guests.create('late', spec('LiveMigrate'), { pace: 'too-slow' });
      // What a pod was made with stays its limit.
      await guests.configure(TWICE);
      await guests.create('hurried', spec('LiveMigrate', { arguments: 'mib=24 hz=200 rate=60' }), { pace: 'hurried' });
    });

    it.concurrent('is shut down in time where its copy cannot be over before, and the migration says why it was given up', async () => {
      const guest = await guests.host.guest('late');
      const pod = await disrupted.disrupt('late');
      await isShutDownInTime(guest, pod);
      const [migration] = await disrupted.migrationsOf('late');
      const { status } = await guests.fails(migration.metadata.name);
      expect(decisionsOf(status)).toContain('allow-throttling DeadlineGiven');
      expect(decisionsOf(status).at(-1)).toBe('give-up DeadlinePassed');
      await guests.remove('late');
    });

    it.concurrent('is stopped for the rest of its copy when its time runs out, where its policy allows that, and so saved', async () => {
      const pod = await disrupted.disrupt('hurried');
      const migration = await disrupted.hasMoved('hurried', pod, 'Preemption');
      expect(decisionsOf(migration.status)).toContain('pause DeadlineNear');
      expect(await disrupted.toldMs('hurried', 'ShuttingDown')).toBeUndefined();
      await guests.remove('hurried');
    });
  });

  some('that nobody moves', () => {
    beforeAll(async () => {
      await guests.configure({ disruptionHoldSeconds: SHORT_HOLD });
      await Promise.all(['external', 'orphan'].map((name) => guests.create(name, spec('External'))));
    });

    it.concurrent('is marked where somebody else moves it, and shut down in time if nobody does', async () => {
      const guest = await guests.host.guest('external');
      const pod = await disrupted.disrupt('external');
      expect(pod.metadata.deletionGracePeriodSeconds).toBe(GRACE + 15 + SHORT_HOLD);
      expect(await disrupted.isMarked('external', 'Preemption')).toMatchObject({ podUID: pod.metadata.uid });
      await isShutDownInTime(guest, pod);
      expect(await disrupted.migrationsOf('external')).toEqual([]);
      await guests.remove('external');
    });

    it.concurrent('is shut down in time though its agent is killed with -9 meanwhile', async () => {
      const guest = await guests.host.guest('orphan');
      const pod = await disrupted.disrupt('orphan');
      await disrupted.told('orphan', 'ShutdownHeld');
      await guests.host.killAgent(pod.spec.nodeName);
      await isShutDownInTime(guest, pod);
      await guests.remove('orphan');
    });
  });
});

describe('what ran', () => {
  it('never ran twice', () => expect(guests.host.assertNeverDoubled()).toBeGreaterThan(50));
});

const decisionsOf = ({ migrationState }: Anything): string[] =>
  migrationState.decisions.map(({ decision, reason }: Anything) => `${decision} ${reason}`);

/** Does something to the guest's pod, and sees that the guest is shut down for it at once, and not moved. */
async function isStopped(name: string, stop: () => Promise<Anything>): Promise<void> {
  const guest = await guests.host.guest(name);
  const pod = await stop();
  const toldMs = await disrupted.told(name, 'ShuttingDown');
  const { deletionTimestamp, deletionGracePeriodSeconds: seconds } = pod.metadata;
  // Nobody waited for the hold to be over before.
  expect(toldMs).toBeLessThan(Date.parse(deletionTimestamp) - seconds * 1000 + 60_000);
  await disrupted.ends(guest);
  await hasShutDown(pod);
  expect(await disrupted.toldMs(name, 'ShutdownHeld')).toBeUndefined();
  expect(await disrupted.migrationsOf(name)).toEqual([]);
  await guests.remove(name);
}

/** Sees that the guest went on for as long as it was held, and had all of its time to shut down then. */
async function isShutDownInTime(guest: Anything, pod: Anything): Promise<void> {
  const { name } = guest.metadata;
  const { deletionTimestamp, deletionGracePeriodSeconds: seconds } = pod.metadata;
  const heldUntilMs = Date.parse(deletionTimestamp) - seconds * 1000 + SHORT_HOLD * 1000;
  await disrupted.told(name, 'MoveTooLate');
  // Events have times of whole seconds.
  expect(await disrupted.told(name, 'ShuttingDown')).toBeGreaterThanOrEqual(heldUntilMs - 1000);
  await disrupted.ends(guest);
  await hasShutDown(pod);
}

async function nodeOf(name: string): Promise<Anything> {
  return (await guests.host.api.request('GET', `/api/v1/nodes/${name}`)).expect(200).json;
}
