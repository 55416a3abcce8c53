import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { EvictionStrategy } from '../api/kubevirt/eviction-strategy.ts';
import type { KubeObject } from '../api/meta.ts';
import { ApiError } from '../api/status.ts';
import { clusterServices } from '../cluster/cluster.ts';
import { disruptionLoop } from '../cluster/disruption-budgets/loop.ts';
import type { ControlContext } from '../control/context.ts';
import { ControlScene, NAMESPACE } from '../control/control.fixture.ts';
import { DisruptionBudgets } from '../control/disruption-budget/disruption-budgets.ts';
import { makeMigrations, PlayedAgents } from '../control/migration/played-agents.fixture.ts';
import { disruptionBudgets, type LauncherPod, pods } from '../control/resources.ts';
import { VirtualMachineInstances } from '../control/vmi/virtual-machine-instances.ts';
import { Client } from '../kube/client.ts';
import {
  virtualMachineInstanceMigrations as migrations,
  virtualMachineInstances as guests,
} from '../kube/kubevirt-resources.ts';
import type { LocalIdentity } from '../kube/in-process-transport.ts';
import { Manager } from '../kube/manager.ts';
import { KubeMetrics } from '../kube/metrics.ts';
import { controllerOf } from '../kube/owner.ts';
import type { Service } from '../kube/service.ts';

/**
 * Somebody evicts all that runs, at every moment, and no webhook is there: whoever is protected stays for all of its life.
 * The scheduler's and the agents' parts are played by hand.
 */

/** Counts what budgets allow, as the cluster does. */
function disruptions({ env }: ControlContext): Service {
  return {
    name: 'disruptions',
    run: async (signal) => {
      const manager = new Manager({ env, name: 'disruptions' });
      const clientOf = (identity: LocalIdentity): Client => new Client(scene.clientTransport(identity), 'disruptions');
      const metrics = new KubeMetrics(env.clock);
      manager.add(...clusterServices({ env, clientOf, metrics, loops: [disruptionLoop] }));
      await manager.run(signal);
    },
  };
}

const scene: ControlScene = new ControlScene(
  (context) => new VirtualMachineInstances({ ...context, launcherImage: 'launcher:1' }),
  makeMigrations,
  (context) => new DisruptionBudgets(context),
  disruptions,
);
const agents = new PlayedAgents(scene);

/** Pods of guests that were let go, and how often one was not. */
let evicted: string[] = [];
let refusals = 0;
let stopPestering = async (): Promise<void> => undefined;

async function evict(pod: LauncherPod): Promise<void> {
  const { name = '' } = pod.metadata;
  const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name } } as KubeObject;
  try {
    await scene.client.post(pods, NAMESPACE, name, 'eviction', eviction, scene.signal);
    evicted.push(name);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    expect([404, 429], error.message).toContain(error.code);
    if (error.code === 429) refusals++;
  }
}

/** Tries, for as long as it is not told to stop, to evict each pod that runs. */
function pester(): () => Promise<void> {
  const stopping = new AbortController();
  const pestering = (async () => {
    while (!stopping.signal.aborted) {
      for (const pod of await scene.list(pods)) {
        const isUp = pod.status?.phase === 'Running' && pod.metadata.deletionTimestamp === undefined;
        if (isUp && controllerOf(pod)) await evict(pod);
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
  })();
  return async () => {
    stopping.abort();
    await pestering;
  };
}

beforeAll(async () => {
  await scene.start();
  await agents.addNodes('node-a', 'node-b');
});
afterAll(() => scene.stop());
beforeEach(() => {
  evicted = [];
  refusals = 0;
  stopPestering = pester();
});
afterEach(() => stopPestering());

/** Starts a guest's pod on node-a, by the hands of controllers and those that are played. */
async function launched(name: string, evictionStrategy: EvictionStrategy): Promise<LauncherPod> {
  const domain = { devices: {}, memory: { guest: '64Mi' } };
  await scene.create(guests, { metadata: { name }, spec: { domain, evictionStrategy } });
  const pod = await scene.until(async () => {
    const found = (await scene.list(pods)).find((each) => controllerOf(each)?.name === name);
    if (!found) throw new Error(`${name} has no pod`);
    return found;
  });
  await agents.bind(pod.metadata.name ?? '', 'node-a');
  await start(pod.metadata.name ?? '');
  return pod;
}

/** The same, until the guest runs. */
async function started(name: string, evictionStrategy: EvictionStrategy): Promise<void> {
  const { uid = '' } = (await launched(name, evictionStrategy)).metadata;
  await scene.until(async () => expect((await scene.get(guests, name)).status?.phase).toBe('Scheduled'));
  const holder = { node: 'node-a', nodeUID: 'uid-of-node-a', podUID: uid };
  await agents.says(name, { phase: 'Running', rightToRun: { epoch: 1, holder } });
}

/** What runs is ready, and so counts for budgets. */
async function start(pod: string): Promise<void> {
  await agents.start(pod);
  const conditions = [{ type: 'Ready', status: 'True' }];
  await scene.client.patch(
    pods,
    NAMESPACE,
    pod,
    { type: 'strategic', body: { status: { conditions } } },
    scene.signal,
    { subresource: 'status' },
  );
}

/** The guest has one budget, which keeps one pod. */
async function expectOneKept(name: string): Promise<void> {
  const found = (await scene.list(disruptionBudgets)).filter((each) => controllerOf(each)?.name === name);
  expect(found.map(({ spec }) => spec?.minAvailable)).toEqual([1]);
}

describe('a guest that somebody evicts all the time', () => {
  it.each<EvictionStrategy>(['LiveMigrate', 'LiveMigrateIfPossible', 'External'])(
    'starts, runs, moves twice, and stays: %s',
    async (strategy) => {
      const name = strategy.toLowerCase();
      await started(name, strategy);
      await scene.settle();
      let source = (await scene.list(pods)).find((each) => controllerOf(each)?.name === name)?.metadata.name ?? '';
      for (const target of ['node-b', 'node-a']) {
        const move = `${name}-to-${target}`;
        await agents.move(move, name);
        const pod = (await agents.targetPod(move)).metadata.name ?? '';
        await agents.bind(pod, target);
        await start(pod);
        await agents.reaches(move, 'PreparingTarget');
        await agents.finish(move, name);
        await scene.delete(pods, source, 0);
        source = pod;
        await scene.until(() => expectOneKept(name));
      }
      expect(evicted).toEqual([]);
      expect(refusals).toBeGreaterThan(10);
    },
  );

  it('stays when its migration fails, and when it is called off', async () => {
    await started('unlucky', 'LiveMigrate');
    for (const move of ['called-off', 'failed']) {
      await agents.move(move, 'unlucky');
      const pod = (await agents.targetPod(move)).metadata.name ?? '';
      await agents.bind(pod, 'node-b');
      await start(pod);
      await agents.reaches(move, 'PreparingTarget');
      if (move === 'failed') await scene.delete(pods, pod, 0);
      else await scene.delete(migrations, move);
      await scene.until(async () => {
        const found = await scene.find(migrations, move);
        expect(found?.status?.phase ?? 'Failed').toBe('Failed');
        // Its node has ended what was there.
        if (await scene.find(pods, pod)) await scene.delete(pods, pod, 0);
        await expectOneKept('unlucky');
      });
    }
    expect(evicted).toEqual([]);
  });

  it('goes where nobody protects it', async () => {
    await launched('nobody', 'None');
    await scene.until(() => expect(evicted).toHaveLength(1));
  });
});
