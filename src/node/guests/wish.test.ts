import { describe, expect, it } from 'vitest';
import type { Runner } from '../../api/kubevirt/right-to-run.ts';
import type {
  VirtualMachineInstance,
  VirtualMachineInstanceStatus,
} from '../../api/kubevirt/virtual-machine-instance.ts';
import type { ObjectMeta } from '../../api/meta.ts';
import type { View } from '../../migration/right-to-run/view.ts';
import type { LauncherPod } from './launcher-pod.ts';
import { nextPlan, startIntent } from './wish.ts';

const guest = (status: VirtualMachineInstanceStatus = {}, metadata: ObjectMeta = {}): VirtualMachineInstance => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  metadata: { labels: { 'kubevirt.io/nodeName': 'node-a' }, ...metadata },
  spec: { domain: { devices: {} } },
  status: { phase: 'Scheduled', nodeName: 'node-a', ...status },
});
const pod = (phase = 'Running', metadata: ObjectMeta = {}): LauncherPod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata,
  status: { phase },
});
const GOING = { deletionTimestamp: '2026-01-01T00:00:00Z' };
const all = { node: 'node-a', guest: guest(), pod: pod(), isPrepared: true, isCrowded: false };

describe('whether a guest is to be started', () => {
  it.each([
    ['start', 'all is there', {}],
    ['start', 'the pod was not told of yet', { pod: pod('Pending') }],
    ['wait', 'the guest is not handed over', { guest: guest({ phase: 'Scheduling' }) }],
    ['wait', 'it was given to another node', { guest: guest({ nodeName: 'node-b' }) }],
    ['wait', 'it has no label yet', { guest: guest({}, { labels: {} }) }],
    ['wait', 'a volume is missing', { isPrepared: false }],
    ['wait', 'another pod of its machine is here', { isCrowded: true }],
    ['wait', 'it runs', { guest: guest({ phase: 'Running' }) }],
    ['never', 'it is deleted', { guest: guest({}, GOING) }],
    ['never', 'its pod is deleted', { pod: pod('Running', GOING) }],
    ['never', 'it has failed', { guest: guest({ phase: 'Failed' }) }],
    ['never', 'its pod has failed', { pod: pod('Failed') }],
    ['never', 'it is gone', { guest: undefined }],
    ['never', 'its pod is gone', { pod: undefined }],
  ] as const)('%s: %s', (intent, _, change) => expect(startIntent({ ...all, ...change })).toBe(intent));
});

describe('a start that was begun', () => {
  const self: Runner = { node: 'node-a', nodeUID: 'n', podUID: 'p' };
  const view: View = {
    self,
    record: undefined,
    standing: { kind: 'starting', epoch: 5 },
    machine: 'dead',
    hasMigrationFailed: false,
    peerMachine: 'unknown',
    inbox: [],
    outOfService: new Set(),
    unheard: [],
    wish: {},
  };
  const entries = (plan: ReturnType<typeof nextPlan>): unknown =>
    plan.steps.map((step) => (step.kind === 'journal' ? step.entry : step.kind));
  it('goes on when it is wanted', () => {
    const plan = nextPlan({ ...view, wish: { start: { remembered: { epoch: 4 } } } }, 'start', true);
    expect(entries(plan)).toEqual(['record', { kind: 'started', epoch: 5 }, 'machine', 'machine']);
  });
  it('rests while something is missing', () => expect(nextPlan(view, 'wait', true).steps).toEqual([]));
  it('is over when it is not wanted any more, also for a claim that arrives late', () => {
    expect(entries(nextPlan(view, 'never', true))).toEqual([{ kind: 'ended', epoch: 5 }]);
    const claimed = { ...view, record: { epoch: 4, holder: self } };
    expect(entries(nextPlan(claimed, 'never', true))).toEqual([{ kind: 'ended', epoch: 4 }]);
  });
  it('and came to hold the right of a guest that is gone is over once its machine is', () => {
    const holding: View = {
      ...view,
      standing: { kind: 'holding', epoch: 5, mustContinue: false, isCompleted: false },
    };
    expect(entries(nextPlan(holding, 'never', false))).toEqual([{ kind: 'ended', epoch: 5 }]);
    expect(nextPlan({ ...holding, machine: 'running' }, 'never', false).refusal?.code).toBe('Quarantined');
  });
  it('and took a guest from elsewhere that is deleted at once says first that it took it, and then that it ended', () => {
    const source = { ...self, podUID: 'other' };
    const across = { targetEpoch: 5 };
    const taken = { epoch: 4, source, target: self, sourceMigrationUID: 's', targetMigrationUID: 't', across };
    const standing = { kind: 'holding', epoch: 5, mustContinue: false, isCompleted: false, taken } as const;
    const next = nextPlan({ ...view, standing }, 'never', true);
    expect(next.steps).toContainEqual(expect.objectContaining({ kind: 'record', to: { epoch: 5, holder: self } }));
    const told = { ...view, standing, record: { epoch: 5, holder: self } };
    expect(entries(nextPlan(told, 'never', true))).toEqual([{ kind: 'ended', epoch: 5 }]);
    expect(entries(nextPlan({ ...view, standing }, 'never', false))).toEqual([{ kind: 'ended', epoch: 5 }]);
  });
  it('and holds a right that was taken from all ends with its guest, also where it was not heard since a restore', () => {
    const standing = { kind: 'holding', epoch: 5, mustContinue: false, isCompleted: false } as const;
    const afresh: View = { ...view, standing, machine: 'running', record: { epoch: 6 }, unheard: [self.node] };
    expect(entries(nextPlan(afresh, 'never', true))).toEqual(['machine', { kind: 'ended', epoch: 5 }]);
    // One that has not ended is had back.
    expect(entries(nextPlan(afresh, 'wait', true))).toEqual([{ kind: 'regained', epoch: 7 }, 'record']);
  });
  it('and holds a right that nobody has by data that was restored claims nothing for a pod that is gone', () => {
    const standing = { kind: 'holding', epoch: 5, mustContinue: false, isCompleted: false } as const;
    const restored: View = { ...view, standing, machine: 'running', record: { epoch: 4 }, unheard: [self.node] };
    expect(nextPlan(restored, 'never', true).steps).toEqual([{ kind: 'record', from: { epoch: 4 }, to: { epoch: 5 } }]);
    const raised = { ...restored, record: { epoch: 5 } };
    expect(entries(nextPlan(raised, 'never', true))).toEqual(['machine', { kind: 'ended', epoch: 5 }]);
  });
  it('and has ended is not recorded where nobody would believe it: the guest was never started, by the data there is', () => {
    const standing = { kind: 'holding', epoch: 5, mustContinue: false, isCompleted: false } as const;
    const restored: View = { ...view, standing, unheard: [self.node] };
    expect(entries(nextPlan(restored, 'never', true))).toEqual([{ kind: 'ended', epoch: 5 }]);
  });
  it('is left alone while a machine may live', () => {
    expect(nextPlan({ ...view, machine: 'unknown' }, 'never', true).steps).toEqual([]);
  });
});
