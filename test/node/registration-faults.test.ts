import { expect, it } from 'vitest';
import { nodeLifecycleLoop } from '../../src/cluster/node-lifecycle/loop.ts';
import { seededRandom } from '../../src/env/test.ts';
import { Client } from '../../src/kube/client.ts';
import { FaultyTransport } from '../../src/kube/faulty-transport.ts';
import { InProcessTransport } from '../../src/kube/in-process-transport.ts';
import { leaseResource } from '../../src/kube/leader-lease.ts';
import { Manager } from '../../src/kube/manager.ts';
import { nodeResource, registrationServices } from '../../src/node/registration/node-registration.ts';
import { LoopsInTime } from '../support/loops-in-time.ts';
import { PLENTY, PROFILE, TestHost } from './host.ts';

/** A node whose way to the API server is as bad as it gets, while others cordon, delete and give up the node. */

const STEP_MS = 1000;
const STEPS = 240;

it.each([1, 2, 3, 4])('a node is what it should be once the storm is over (seed %i)', async (seed) => {
  const random = seededRandom(seed);
  const chance = (): number => random.number();
  const cluster = await LoopsInTime.start(nodeLifecycleLoop);
  const { env, client, signal } = cluster;
  const identity = { user: 'system:node:n1', groups: ['system:nodes'] };
  const plan = {
    requestLost: 0.1,
    answerLost: 0.1,
    timeoutMs: 30_000,
    conflict: 0.1,
    unavailable: 0.1,
    slow: 0.2,
    slowMsMax: 5_000,
    stale: 0.05,
    staleMsMax: 20_000,
    staleRevisionsMax: 20,
    watchCut: 0.05,
    watchExpired: 0.02,
    watchDelay: 0.1,
    watchDelayMsMax: 10_000,
    watchDuplicate: 0.05,
  };
  const inner = new InProcessTransport(cluster.api.core.handle.bind(cluster.api.core), identity);
  const faulty = new FaultyTransport(inner, { clock: env.clock, random, plan, readsAreConsistent: true });
  let writes = 0;
  const counted = {
    send: (request: Parameters<typeof faulty.send>[0]) => {
      if (request.method !== 'GET') writes++;
      return faulty.send(request);
    },
    close: () => faulty.close(),
  };
  const host = new TestHost();
  const { services, registration } = registrationServices({
    env,
    client: new Client(counted, 'agent'),
    host,
    profile: PROFILE,
    dataDirectory: '/data',
    port: () => 4711,
  });
  const halt = new AbortController();
  const ended = new Manager({ env, name: 'agent' }).add(...services).run(halt.signal);
  try {
    for (let step = 0; step < STEPS; step++) {
      if (chance() < 0.05) host.usageNow = chance() < 0.5 ? PLENTY : { ...PLENTY, memoryAvailableBytes: 0 };
      if (chance() < 0.01) await client.delete(nodeResource, '', 'n1', signal).catch(() => undefined);
      if (chance() < 0.02) {
        const body = { spec: { unschedulable: chance() < 0.5 } };
        await client.patch(nodeResource, '', 'n1', { type: 'merge', body }, signal).catch(() => undefined);
      }
      await cluster.pass(STEP_MS);
    }
    // A lease four times in forty seconds, and what changed; twice as much for what was lost.
    expect(writes).toBeLessThan(STEPS);
    faulty.calm();
    host.usageNow = PLENTY;
    const body = { spec: { unschedulable: true } };
    await cluster.pass(60_000, STEP_MS);
    await client.patch(nodeResource, '', 'n1', { type: 'merge', body }, signal);
    await cluster.pass(6 * 60_000, 5_000);
    const node = await client.get(nodeResource, '', 'n1', signal);
    expect(registration.uid).toBe(node.metadata.uid);
    expect(node.metadata.labels).toMatchObject({ 'kubevirt.io/schedulable': 'true' });
    expect(node.spec?.unschedulable).toBe(true);
    expect(node.status?.conditions?.map(({ type, status }) => `${type}=${status}`).toSorted()).toEqual([
      'DiskPressure=False',
      'MemoryPressure=False',
      'PIDPressure=False',
      'Ready=True',
    ]);
    expect(node.status?.daemonEndpoints?.kubeletEndpoint?.Port).toBe(4711);
    const { metadata, spec } = await client.get(leaseResource, 'kube-node-lease', 'n1', signal);
    expect(metadata.ownerReferences?.[0]?.uid).toBe(node.metadata.uid);
    expect(env.clock.now() - Date.parse(spec?.renewTime ?? '')).toBeLessThanOrEqual(15_000);
  } finally {
    halt.abort();
    faulty.calm();
    await ended;
    await cluster.stop();
  }
});
