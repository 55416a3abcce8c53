import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Anything } from '../support/api.ts';
import { DisruptedGuests } from '../support/disrupted-guests.ts';
import { eventually } from '../support/eventually.ts';
import { probe } from '../support/guest-manifests.ts';
import type { MovingGuests } from '../support/moving-guests.ts';
import { allOnKubernetes, someOf } from '../support/sample.ts';
import { conditionOf } from '../support/virtual-machines.ts';

/** Guests on nodes that get a NoExecute taint: those that ask for it move, unless the node itself is lost. */

vi.setConfig({ testTimeout: 300_000, hookTimeout: 180_000 });

const UNREACHABLE = 'node.kubernetes.io/unreachable';
const OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service';

let disrupted: DisruptedGuests;
let guests: MovingGuests;

beforeAll(async () => {
  disrupted = await DisruptedGuests.start({ nodes: 2 });
  ({ guests } = disrupted);
});
afterAll(() => disrupted.stop());

const spec = (more: object = {}): object => ({
  ...probe({ evictionStrategy: 'LiveMigrate', memory: '48Mi', arguments: 'mib=16 hz=100 rate=2' }),
  ...more,
});

async function taint(node: string, ...taints: readonly string[]): Promise<void> {
  await guests.host.kubectl.ok(['taint', 'node', node, ...taints]);
}

describe('a guest on a node with a NoExecute taint', () => {
  it('moves, and is neither stopped nor started anew', async () => {
    await guests.create('driven', spec());
    const pod = await disrupted.launcher('driven');
    await taint(pod.spec.nodeName, 'CriticalAddonsOnly=true:NoExecute');
    const migration = await disrupted.hasMoved('driven', pod, 'NoExecuteTaint');
    expect(migration.status.causes).toEqual([
      expect.objectContaining({ cause: 'NoExecuteTaint', deadline: expect.any(String) as unknown }),
    ]);
    expect(await disrupted.toldMs('driven', 'ShuttingDown')).toBeUndefined();
    // The node is as alive as before.
    await guests.host.nodesAreReady(2);
    await taint(pod.spec.nodeName, 'CriticalAddonsOnly-');
    await guests.remove('driven');
  });

  const some = someOf(...allOnKubernetes(4, 1));
  some('moves though the taint is gone again before it could', async () => {
    await guests.create('briefly', spec());
    const pod = await disrupted.launcher('briefly');
    await taint(pod.spec.nodeName, 'maintenance:NoExecute');
    await eventually(async () => {
      expect((await disrupted.pod(pod.metadata.name))?.metadata.deletionTimestamp).toBeDefined();
    });
    await taint(pod.spec.nodeName, 'maintenance-');
    await disrupted.hasMoved('briefly', pod, 'NoExecuteTaint');
    await guests.remove('briefly');
  });

  some('stays where it tolerates that', async () => {
    await guests.create('tolerant', spec({ tolerations: [{ key: 'maintenance', operator: 'Exists' }] }));
    const pod = await disrupted.launcher('tolerant');
    await guests.create('bystander', spec({ nodeSelector: { 'kubernetes.io/hostname': pod.spec.nodeName } }));
    const other = await disrupted.launcher('bystander');
    await taint(pod.spec.nodeName, 'maintenance:NoExecute');
    // Whoever else is there has to go, and cannot: it is told so, and held.
    await disrupted.isMarked('bystander', 'NoExecuteTaint');
    expect((await disrupted.pod(pod.metadata.name)).metadata.deletionTimestamp).toBeUndefined();
    expect((await disrupted.pod(other.metadata.name)).metadata.deletionTimestamp).toBeDefined();
    expect((await guests.host.guest('tolerant')).status.evacuationNodeName).toBeUndefined();
    await taint(pod.spec.nodeName, 'maintenance-');
    await guests.remove('tolerant');
    await guests.remove('bystander');
  });

  some('is not moved where the node itself is not heard of, and shut down when it is again', async () => {
    const impatient = { key: UNREACHABLE, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 1 };
    await guests.create('cut-off', spec({ tolerations: [impatient] }));
    const guest = await guests.host.guest('cut-off');
    const pod = await disrupted.launcher('cut-off');
    const goOn = await guests.host.holdAgent(pod.spec.nodeName);
    const going = await eventually(async (): Promise<Anything> => {
      const found = await disrupted.pod(pod.metadata.name);
      expect(found?.metadata.deletionTimestamp).toBeDefined();
      return found;
    }, 180_000);
    expect(going.status.conditions).toContainEqual(
      expect.objectContaining({ type: 'DisruptionTarget', reason: 'DeletionByTaintManager' }),
    );
    goOn();
    await disrupted.ends(guest);
    expect(await disrupted.migrationsOf('cut-off')).toEqual([]);
    await guests.host.nodesAreReady(2);
    await guests.remove('cut-off');
  });

  some('that is lost is started elsewhere once somebody says that the node is off, and not before', async () => {
    await guests.create('lost', spec());
    const guest = await guests.host.guest('lost');
    const { metadata, spec: where } = await disrupted.launcher('lost');
    const node: string = where.nodeName;
    // Its agent is not heard of again before all is over, and nothing of it runs any more.
    const goOn = await guests.host.holdAgent(node);
    process.kill(guests.host.qemuIn(node, metadata.uid), 'SIGKILL');
    await eventually(async () => {
      const { json } = (await guests.host.api.request('GET', `/api/v1/nodes/${node}`)).expect(200);
      expect(conditionOf(json, 'Ready')?.status).toBe('Unknown');
    }, 180_000);
    expect((await guests.holder('lost')).node).toBe(node);
    await taint(node, `${OUT_OF_SERVICE}=nodeshutdown:NoExecute`);
    await guests.host.livesAnew('lost', guest);
    expect((await guests.holder('lost')).node).not.toBe(node);
    await eventually(async () => expect(await disrupted.pod(metadata.name)).toBeUndefined(), 180_000);
    expect(await disrupted.migrationsOf('lost')).toEqual([]);
    goOn();
    await taint(node, `${OUT_OF_SERVICE}-`);
    await guests.host.nodesAreReady(2);
    await guests.remove('lost');
  });
});

describe('what ran', () => {
  it('never ran twice', () => expect(guests.host.assertNeverDoubled()).toBeGreaterThan(50));
});
