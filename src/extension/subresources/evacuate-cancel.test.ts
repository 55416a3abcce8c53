import { describe, expect, it } from 'vitest';
import type { VirtualMachineInstanceStatus } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { JsonObject, KubeObject, ObjectMeta } from '../../api/meta.ts';
import { type ApiError, conflict } from '../../api/status.ts';
import type { Client, Patch, WriteOptions } from '../../kube/client.ts';
import type { Resource } from '../../kube/resource.ts';
import { applyMergePatch } from '../../machinery/patch/merge-patch.ts';
import { cancelEvacuation, type StayWish } from './evacuate-cancel.ts';

const { signal } = new AbortController();

interface Scene {
  readonly status?: VirtualMachineInstanceStatus;
  readonly metadata?: ObjectMeta;
  readonly missing?: string;
  readonly taints?: readonly { readonly key: string; readonly effect: string }[];
  readonly pod?: ObjectMeta;
  readonly conflicts?: number;
}

const MARKED: VirtualMachineInstanceStatus = {
  nodeName: 'node01',
  evacuationNodeName: 'node01',
  evacuationCauses: [{ cause: 'APIEviction', untilUncordon: true }, { cause: 'Descheduler' }],
  rightToRun: { epoch: 1, holder: { node: 'node01', nodeUID: 'n', podUID: 'pod' } },
};
const OWNER = {
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  name: 'a',
  uid: 'guest',
  controller: true,
};

/** The guest after somebody had it stay, and what was written. */
async function stay(scene: Scene = {}, wish: Partial<StayWish> = {}) {
  const { status = MARKED, metadata = {}, missing, taints = [], pod, conflicts = 0 } = scene;
  let guest: KubeObject = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'a', namespace: 'shop', uid: 'guest', resourceVersion: '1', ...metadata },
    status,
  };
  const writes: string[] = [];
  let conflictsLeft = conflicts;
  const client = {
    find: async ({ plural }: Resource) => {
      if (plural === missing) return undefined;
      return plural === 'nodes' ? { metadata: { name: 'node01' }, spec: { taints } } : guest;
    },
    list: async () => ({ items: pod ? [{ metadata: { uid: 'pod', name: 'virt-launcher-a', ...pod } }] : [] }),
    patch: async (
      _resource: Resource,
      _: string,
      name: string,
      patch: Patch,
      _signal: unknown,
      options: WriteOptions,
    ) => {
      writes.push(`${options.subresource ?? 'object'}${options.dryRun ? ' dry' : ''}`);
      if (conflictsLeft-- > 0) throw conflict({ group: '', plural: '' }, name, 'changed');
      const patched = applyMergePatch(
        guest as unknown as JsonObject,
        patch.body as JsonObject,
      ) as unknown as KubeObject;
      if (!options.dryRun) guest = patched;
      return patched;
    },
  } as unknown as Client;
  const whole: StayWish = {
    resource: 'virtualmachineinstances',
    namespace: 'shop',
    name: 'a',
    evacuationNodeName: undefined,
    dryRun: false,
    ...wish,
  };
  await cancelEvacuation(client, {}, whole, signal);
  return { guest, writes };
}

describe('evacuate/cancel', () => {
  it.each<StayWish['resource']>(['virtualmachines', 'virtualmachineinstances'])(
    'takes back all causes: %s',
    async (resource) => {
      const { guest, writes } = await stay({}, { resource });
      expect(guest['status']).toEqual({ nodeName: 'node01', rightToRun: MARKED.rightToRun });
      expect(writes).toEqual(['status']);
    },
  );

  it('takes back who asked, too', async () => {
    const annotations = { 'kubevirt.io/eviction-source': 'descheduler', other: 'x' };
    const { guest, writes } = await stay({ metadata: { annotations } });
    expect(guest.metadata.annotations).toEqual({ other: 'x' });
    expect(writes).toEqual(['status', 'object']);
  });

  it('takes back a mark for a node that the guest has left', async () => {
    const { guest } = await stay({ status: { ...MARKED, nodeName: 'node02' } });
    expect(guest['status']).not.toHaveProperty('evacuationNodeName');
  });

  it('changes nothing in a dry run, nor where there is no mark', async () => {
    expect((await stay({}, { dryRun: true })).writes).toEqual(['status dry']);
    expect((await stay({ status: { nodeName: 'node01' } })).writes).toEqual([]);
  });

  it('is decided anew when somebody else writes', async () => {
    const { guest, writes } = await stay({ conflicts: 2 });
    expect(writes).toEqual(['status', 'status', 'status']);
    expect(guest['status']).not.toHaveProperty('evacuationNodeName');
  });

  it('means the mark that it names', async () => {
    expect((await stay({}, { evacuationNodeName: 'node01' })).writes).toEqual(['status']);
  });

  it.each<[string, Scene, Partial<StayWish>, number, string]>([
    ['no machine', { missing: 'virtualmachines' }, { resource: 'virtualmachines' }, 404, 'not found'],
    ['no guest', { missing: 'virtualmachineinstances' }, {}, 404, 'not found'],
    ['another mark', {}, { evacuationNodeName: 'node02' }, 409, 'it has to leave node "node01", not "node02"'],
    [
      'the drain taint',
      { taints: [{ key: 'kubevirt.io/drain', effect: 'NoSchedule' }] },
      {},
      400,
      'Node "node01" has NodeDrainTaintKey "kubevirt.io/drain"',
    ],
    [
      'a pod that ends',
      { pod: { ownerReferences: [OWNER], deletionTimestamp: '2026-01-01T00:00:00Z' } },
      {},
      409,
      'its pod virt-launcher-a is terminating',
    ],
  ])('is refused for %s', async (_, scene, wish, code, message) => {
    const error = await stay(scene, wish).catch((refusal: unknown) => refusal as ApiError);
    expect(error).toMatchObject({ code, message: expect.stringContaining(message) as unknown });
  });

  it.each<[string, ObjectMeta]>([
    ['does not end', { ownerReferences: [OWNER] }],
    ['is another one', { uid: 'old', ownerReferences: [OWNER], deletionTimestamp: '2026-01-01T00:00:00Z' }],
    ['only says that it is the guest’s', { deletionTimestamp: '2026-01-01T00:00:00Z' }],
  ])('minds no pod that %s', async (_, pod) => {
    expect((await stay({ pod })).writes).toEqual(['status']);
  });
});
