import { afterEach, describe, expect, it } from 'vitest';
import { withMigrationDefaults } from '../api/kubevirt/complete-migration.ts';
import type { VirtualMachine } from '../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstanceMigration } from '../api/kubevirt/virtual-machine-instance-migration.ts';
import { clusterLoops } from '../cluster/cluster.ts';
import { virtualMachineInstanceMigrations, virtualMachines } from '../kube/kubevirt-resources.ts';
import type { TransportRequest } from '../kube/transport.ts';
import { controlProgram } from './control-program.ts';
import { loopProgram } from './loops.ts';
import { TwoNodes } from './two-nodes.fixture.ts';

/**
 * What one move costs the API server: every request of controllers, loops and agents, while nothing else happens. The guest
 * and its copy are models that take no time. Whoever adds a request to each move meets this test, and says what for.
 */

let nodes: TwoNodes;
afterEach(() => {
  nodes.stop();
  expect(nodes.violations).toEqual([]);
});

/** Requests by what they do and to what; heartbeats and watches are there without any move. */
class Requests {
  readonly #counts = new Map<string, number>();

  readonly count = (_component: string, { method, path }: TransportRequest): void => {
    const [, resource = '', subresource = ''] =
      /^\/apis?\/(?:[^/]+\/)?v1(?:alpha1)?\/(?:namespaces\/[^/]+\/)?([^/?]+)(?:\/[^/?]+(\/[^/?]+)?)?/.exec(path) ?? [];
    if (resource === 'leases' || resource === '' || path.includes('watch=true')) return;
    const what = `${method} ${resource}${subresource}`;
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + 1);
  };

  /** What there was since it was asked last. */
  take(): Record<string, number> {
    const counts = Object.fromEntries(this.#counts);
    this.#counts.clear();
    return counts;
  }
}

async function runningMachine(requests: Requests): Promise<void> {
  const onCaches = (): void => undefined;
  nodes = new TwoNodes({
    onRequest: requests.count,
    others: {
      loops: loopProgram({ loops: clusterLoops, lease: undefined, onCaches }),
      control: controlProgram({ lease: undefined, onCaches }),
    },
    bytesPerSecond: 1e12,
    traits: { bootMs: 0, dirtyBytesPerSecond: 0 },
  });
  await nodes.start();
  const template = { spec: { domain: { devices: {}, memory: { guest: '64Mi' } } } };
  const machine: unknown = { metadata: { name: 'web' }, spec: { runStrategy: 'Always', template } };
  await nodes.create(virtualMachines, machine as VirtualMachine);
  await nodes.pass(2000);
  await nodes.guestIs('running', ({ status }) => status?.phase === 'Running');
  await nodes.pass(20_000);
  requests.take();
}

async function move(name: string): Promise<void> {
  const asked: unknown = { metadata: { name }, spec: { vmiName: 'web' } };
  const whole = withMigrationDefaults(asked as VirtualMachineInstanceMigration, { isOwnComponent: false });
  await nodes.create(virtualMachineInstanceMigrations, whole);
  await nodes.pass(20_000);
}

describe('a quick move', () => {
  it('costs the API server no more than these requests', async () => {
    const requests = new Requests();
    await runningMachine(requests);
    await move('move');
    const made = requests.take();
    expect((await nodes.guest()).status?.migrationState).toMatchObject({ completed: true });
    expect(made).toEqual({
      // Asked for by the user.
      'POST virtualmachineinstancemigrations': 1,
      // Pending, Scheduling, PreparingTarget, Succeeded; phases that were over before anybody looked are told with the last.
      'PATCH virtualmachineinstancemigrations/status': 4,
      // Its finalizer goes.
      'PATCH virtualmachineinstancemigrations': 1,
      // Reserved, committed, given back; many migrations share a write.
      'PUT configmaps': 3,
      // The target pod, which is made only for the newest version of its migration.
      'GET virtualmachineinstancemigrations': 1,
      'POST pods': 1,
      'POST pods/binding': 1,
      // The target runs, the source has ended.
      'PATCH pods/status': 2,
      // A node that got a pod has to ask whose it is.
      'GET virtualmachineinstances': 1,
      // Both pods are active; hand-off; target waits; reserved; granted; taken; arrived, and the source is gone.
      'PATCH virtualmachineinstances/status': 7,
      // The label of the target comes; it goes, and that of the node changes.
      'PATCH virtualmachineinstances': 2,
      // The epoch is remembered.
      'PATCH virtualmachines/status': 1,
      // KubeVirt's and the scheduler's: SuccessfulCreate, Scheduled, SuccessfulHandOver, PreparingTarget twice, Migrating,
      // Migrated, SuccessfulMigration.
      'POST events': 8,
    });
  });
});
