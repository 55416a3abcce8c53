import { describe, expect, it } from 'vitest';
import type { RightToRun } from '../../api/kubevirt/right-to-run.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstanceStatus } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { JsonObject, KubeObject } from '../../api/meta.ts';
import { type ApiError, conflict } from '../../api/status.ts';
import { ManualClock } from '../../env/test.ts';
import type { Client, Patch, WriteOptions } from '../../kube/client.ts';
import type { Resource } from '../../kube/resource.ts';
import { applyMergePatch } from '../../machinery/patch/merge-patch.ts';
import { reclaim, type ReclaimWish } from './reclaim.ts';

const { signal } = new AbortController();

const HERE = { node: 'node-a', nodeUID: 'uid-a', podUID: 'pod-a' };
const THERE = { node: 'node-b', nodeUID: 'uid-b', podUID: 'pod-b' };
const volumes = [
  { name: 'root', claimUID: 'claim', imageEpoch: 3 },
  { name: 'local', claimUID: 'other', imageEpoch: 0 },
];
const again = [{ ...volumes[0], imageEpoch: 8 }, volumes[1]];
const UNSETTLED: RightToRun = { epoch: 7, holder: HERE, successor: THERE, across: true, volumes };
const AWAY: RightToRun = { epoch: 7, holder: THERE, across: true, volumes };

interface Scene {
  readonly machine?: VirtualMachine['status'];
  readonly guest?: VirtualMachineInstanceStatus;
  readonly isNodeGone?: boolean;
  readonly conflicts?: number;
}

/** What is there after somebody reclaimed a guest, and what was written in which order. */
async function reclaimed(scene: Scene, wish: Partial<ReclaimWish> = {}) {
  let conflictsLeft = scene.conflicts ?? 0;
  const controller = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'web', uid: 'vm', controller: true };
  const objects = new Map<string, KubeObject>([
    ['virtualmachines', { apiVersion: '', kind: '', metadata: { uid: 'vm' }, status: scene.machine }],
    ['nodes', { apiVersion: '', kind: '', metadata: { uid: 'uid-a' }, spec: { taints: taintsOf(scene) } }],
  ] as [string, KubeObject][]);
  if (scene.guest) {
    const metadata = { uid: 'guest', ownerReferences: [controller] };
    objects.set('virtualmachineinstances', { apiVersion: '', kind: '', metadata, status: scene.guest } as KubeObject);
  }
  const [writes, events]: [string[], string[]] = [[], []];
  const client = {
    find: async ({ plural }: Resource, _: string, name: string) =>
      plural === 'nodes' && name !== 'node-a' ? undefined : objects.get(plural),
    patch: async ({ plural }: Resource, _: string, name: string, patch: Patch, _signal: unknown, how: WriteOptions) => {
      writes.push(`${plural}${how.subresource === undefined ? '' : '/status'}${how.dryRun ? ' dry' : ''}`);
      if (conflictsLeft-- > 0) throw conflict({ group: '', plural }, name, 'changed');
      const next = applyMergePatch(objects.get(plural) as unknown as JsonObject, patch.body as JsonObject);
      if (!how.dryRun) objects.set(plural, next as unknown as KubeObject);
      return next;
    },
  } as unknown as Client;
  const recorder = {
    event: (_: KubeObject, type: string, reason: string, message: string) =>
      void events.push(`${type} ${reason}: ${message}`),
  };
  const nothing = { keep: undefined, afresh: undefined };
  const whole = { namespace: 'shop', name: 'web', user: 'alice', isFenced: true, ...nothing, dryRun: false, ...wish };
  const message = await reclaim({ client, clock: new ManualClock(), recorder }, whole, signal);
  const of = (plural: string) => (objects.get(plural) as VirtualMachine | undefined)?.status;
  const machine = objects.get('virtualmachines');
  return {
    message,
    writes,
    events,
    machine: of('virtualmachines'),
    guest: of('virtualmachineinstances'),
    noted: machine,
  };
}

const taintsOf = ({ isNodeGone }: Scene): object[] =>
  isNodeGone ? [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }] : [];

describe('a guest is reclaimed', () => {
  it('for its holder, which reads that in the record', async () => {
    const { message, guest, machine, writes, events, noted } = await reclaimed({
      machine: { rightToRun: { epoch: 7 } },
      guest: { phase: 'Running', rightToRun: UNSETTLED },
    });
    expect(guest).toEqual({ phase: 'Running', rightToRun: { epoch: 8, holder: HERE, volumes } });
    expect(machine).toEqual({ rightToRun: { epoch: 7 } });
    expect(message).toBe('the guest goes on at node node-a, unless the other side was heard to have it');
    expect(writes).toEqual(['virtualmachines', 'virtualmachineinstances/status']);
    expect(events).toEqual([`Warning Reclaimed: alice says that the other side is fenced: ${message}`]);
    expect(noted?.metadata.annotations).toMatchObject({
      'godwit.dev/reclaimed-by': 'alice',
      'godwit.dev/reclaimed-at': expect.stringMatching(/Z$/) as string,
    });
  });
  it('for nobody where its holder is out of service, to start afresh on its own disks', async () => {
    const { guest, machine } = await reclaimed({
      machine: { rightToRun: { epoch: 7, volumes } },
      guest: { phase: 'Running', rightToRun: UNSETTLED },
      isNodeGone: true,
    });
    expect(guest).toMatchObject({ phase: 'Failed', phaseTransitionTimestamps: [{ phase: 'Failed' }] });
    expect(guest?.rightToRun).toEqual({ epoch: 8, volumes: again });
    expect(machine?.rightToRun).toEqual({ epoch: 8, volumes: again });
  });
  it('for nobody where it went away, and its machine first, which would be told of it again', async () => {
    const { guest, machine, writes } = await reclaimed({
      machine: { rightToRun: { epoch: 7, grantedAway: true, volumes } },
      guest: { phase: 'Succeeded', rightToRun: AWAY },
    });
    expect(guest).toEqual({ phase: 'Succeeded', rightToRun: { epoch: 8, volumes: again } });
    expect(machine?.rightToRun).toEqual({ epoch: 8, volumes: again });
    expect(writes).toEqual(['virtualmachines', 'virtualmachines/status', 'virtualmachineinstances/status']);
  });
  it('by its machine alone, once it is gone', async () => {
    const { machine, message } = await reclaimed({ machine: { rightToRun: { epoch: 7, grantedAway: true, volumes } } });
    expect(machine?.rightToRun).toEqual({ epoch: 8, volumes: again });
    expect(message).toContain('can be started here again');
  });
  it('by a receiver, which is asked to refuse', async () => {
    const sourceState = { runner: THERE, epoch: 5, migrationUID: 'source', virtualMachineInstanceUID: 'far' };
    const targetState = { migrationUID: 'target', virtualMachineInstanceUID: 'guest' };
    const migrationState = { migrationUid: 'source', targetRunner: HERE, sourceState, targetState };
    const { guest } = await reclaimed({ guest: { phase: 'WaitingForSync', migrationState } });
    expect(guest).toMatchObject({
      migrationState: {
        sourceLetter: {
          kind: 'please-refuse',
          epoch: 5,
          migrationUid: 'source',
          sourcePodUID: 'pod-b',
          targetPodUID: 'pod-a',
        },
      },
    });
  });
  it('again when somebody else wrote at the same time', async () => {
    const { machine, writes } = await reclaimed({
      machine: { rightToRun: { epoch: 7, grantedAway: true } },
      conflicts: 2,
    });
    expect(machine?.rightToRun).toEqual({ epoch: 8 });
    expect(writes).toHaveLength(4);
  });
  it('by nobody who only tries', async () => {
    const { machine, writes, events } = await reclaimed(
      { machine: { rightToRun: { epoch: 7, grantedAway: true } } },
      { dryRun: true },
    );
    expect(machine?.rightToRun).toEqual({ epoch: 7, grantedAway: true });
    expect(writes).toEqual(['virtualmachines dry', 'virtualmachines/status dry']);
    expect(events).toEqual([]);
  });
});

describe('of a guest that is here it is said which copy counts', () => {
  const HELD: RightToRun = { epoch: 7, holder: THERE, volumes };
  const RUNNING: VirtualMachineInstanceStatus = { phase: 'Running', rightToRun: HELD };

  it('none: its machine starts it afresh, though the node that had it is not known any more', async () => {
    const { guest, machine, message, events } = await reclaimed(
      { machine: { rightToRun: { epoch: 7 } }, guest: RUNNING },
      { afresh: true },
    );
    expect(guest).toMatchObject({ phase: 'Failed', phaseTransitionTimestamps: [{ phase: 'Failed' }] });
    expect(guest?.rightToRun).toEqual({ epoch: 8, volumes });
    expect(machine).toEqual({ rightToRun: { epoch: 7 } });
    expect(events).toEqual([`Warning Reclaimed: alice says that the other side is fenced: ${message}`]);
  });
  it('that of a node, which is named as the next, and whoever was named before is not', async () => {
    const activePods = { 'pod-a': 'node-a', 'pod-b': 'node-b' };
    const named = { ...HELD, successor: HERE };
    const { guest } = await reclaimed({ guest: { ...RUNNING, activePods } }, { keep: 'node-a' });
    expect(guest).toEqual({ ...RUNNING, activePods, rightToRun: named });
    const other = { ...HERE, node: 'node-c', podUID: 'pod-c' };
    const before = { ...RUNNING, activePods, rightToRun: { ...HELD, successor: other } };
    const { guest: after, writes } = await reclaimed({ guest: before }, { keep: 'node-a' });
    expect(after?.rightToRun).toEqual(named);
    expect(writes.slice(1)).toEqual(['virtualmachineinstances/status', 'virtualmachineinstances/status']);
    // No server takes another successor for the first, nor has one that only tries taken that one off.
    const tried = await reclaimed({ guest: before }, { keep: 'node-a', dryRun: true });
    expect(tried.writes).toEqual(['virtualmachines dry', 'virtualmachineinstances/status dry']);
    expect(tried.guest).toEqual(before);
  });
  it.each<[Scene, Partial<ReclaimWish>, RegExp]>([
    [{}, { afresh: true }, /nobody has had the right/],
    [{ guest: { phase: 'Failed', rightToRun: { epoch: 7 } } }, { afresh: true }, /already/],
    [{ guest: { rightToRun: UNSETTLED } }, { afresh: true }, /another namespace or cluster/],
    [{ guest: RUNNING }, { keep: 'node-a' }, /no launcher pod on a node node-a/],
    [{ guest: { ...RUNNING, activePods: { 'pod-c': 'node-c' } } }, { keep: 'node-c' }, /no launcher pod/],
    [{ guest: RUNNING }, { keep: 'node-b' }, /node-b has the right to run its guest already/],
    [
      { guest: { ...RUNNING, rightToRun: { ...HELD, successor: HERE } } },
      { keep: 'node-a' },
      /named as the next already/,
    ],
    [{ guest: { rightToRun: { epoch: 7 } } }, { keep: 'node-a' }, /nothing to keep/],
  ])('and refused where that is no question: %j, %j', async (scene, wish, why) => {
    await expect(reclaimed(scene, wish)).rejects.toThrow(why);
  });
  it.each<Partial<ReclaimWish>>([{ keep: 7 }, { keep: '' }, { afresh: 'true' }, { keep: 'node-a', afresh: true }])(
    'in words that can be understood: %j',
    async (wish) => {
      await expect(reclaimed({ guest: RUNNING }, wish)).rejects.toMatchObject({ code: 400 });
    },
  );
});

describe('nothing is reclaimed', () => {
  const refusal = (scene: Scene, wish: Partial<ReclaimWish> = {}): Promise<ApiError> =>
    reclaimed(scene, wish).then(
      () => Promise.reject(new Error('it was')),
      (error: unknown) => error as ApiError,
    );
  it('on the word of somebody who has not said it', async () => {
    for (const isFenced of [undefined, false, 'true', 1]) {
      const { code } = await refusal({ machine: { rightToRun: { epoch: 7, grantedAway: true } } }, { isFenced });
      expect(code).toBe(400);
    }
  });
  it.each<Scene>([
    {},
    { machine: { rightToRun: { epoch: 7 } } },
    { guest: { rightToRun: { epoch: 7, holder: HERE } } },
    { guest: { rightToRun: { epoch: 7, holder: HERE, successor: THERE } } },
    // It waits to have it back.
    { machine: { rightToRun: { epoch: 7, grantedAway: true } }, guest: { phase: 'WaitingForSync' } },
  ])('where nothing went away: %j', async (scene) => {
    expect(await refusal(scene)).toMatchObject({ code: 409 });
  });
});
