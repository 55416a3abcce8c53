import { describe, expect, it } from 'vitest';
import { asking, makeNode, makePod } from '../../migration/fit/cluster.fixture.ts';
import type { Pod } from '../../migration/fit/objects.ts';
import { podInfoOf } from '../../migration/fit/pod-info.ts';
import { SchedulerState } from './state.ts';

const none = () => undefined;

function stateWith(...nodes: string[]): SchedulerState {
  const state = new SchedulerState({
    namespaceLabels: none,
    claim: none,
    volume: none,
    storageClass: none,
    unboundVolumes: () => [],
  });
  for (const name of nodes) state.setNode(makeNode(name), undefined);
  return state;
}

const on = (node: string, pod: Pod): Pod => ({ ...pod, spec: { ...pod.spec, nodeName: node } });
const used = (state: SchedulerState, node: string) => state.cluster.nodes.get(node)?.requested.cpu;
const types = (events: readonly { readonly type: string }[]) => events.map(({ type }) => type);
const pending = makePod('p', asking({ cpu: '1' }));

describe('assumed pods', () => {
  it('use their node until it is known where they are', () => {
    const state = stateWith('n', 'm');
    state.setPod(pending, undefined);
    state.assume(podInfoOf(pending), 'n');
    expect(used(state, 'n')).toBe(1000);
    // News from before the binding.
    state.setPod({ ...pending, status: { phase: 'Pending' } }, pending);
    expect(used(state, 'n')).toBe(1000);
    expect(types(state.setPod(on('n', pending), pending))).toEqual(['pod-placed']);
    expect(state.isAssumed(podInfoOf(pending).uid)).toBe(false);
    expect(used(state, 'n')).toBe(1000);
  });

  it('are where they are seen, whatever was assumed', () => {
    const state = stateWith('n', 'm');
    state.assume(podInfoOf(pending), 'n');
    expect(types(state.setPod(on('m', pending), pending))).toEqual(['pod-removed', 'pod-placed']);
    expect([used(state, 'n'), used(state, 'm')]).toEqual([0, 1000]);
  });

  it('free their node when they are forgotten or gone', () => {
    const state = stateWith('n');
    const { uid } = podInfoOf(pending);
    state.assume(podInfoOf(pending), 'n');
    expect(types(state.forget(uid))).toEqual(['pod-removed']);
    expect(types(state.forget(uid))).toEqual([]);
    state.assume(podInfoOf(pending), 'n');
    expect(types(state.removePod(pending))).toEqual(['pod-removed']);
    expect(used(state, 'n')).toBe(0);
    expect(state.isAssumed(uid)).toBe(false);
  });

  it('are overdue only once their binding was accepted', () => {
    const state = stateWith('n');
    const info = podInfoOf(pending);
    state.assume(info, 'n');
    expect(state.overdue(1000)).toEqual([]);
    state.confirm(info.uid, 500);
    expect(state.overdue(500)).toEqual([]);
    expect(state.overdue(501)).toEqual([info]);
  });

  it('are not confused with another pod of the same name', () => {
    const state = stateWith('n');
    state.setPod(on('n', pending), undefined);
    const another = { ...pending, metadata: { ...pending.metadata, uid: 'another' } };
    expect(types(state.setPod(another, on('n', pending)))).toEqual(['pod-removed']);
    expect(used(state, 'n')).toBe(0);
  });
});

describe('placed pods', () => {
  it('use nothing once they have come to their end', () => {
    const state = stateWith('n');
    state.setPod(on('n', pending), undefined);
    const done = { ...on('n', pending), status: { phase: 'Succeeded' } };
    expect(types(state.setPod(done, on('n', pending)))).toEqual(['pod-removed']);
    expect(used(state, 'n')).toBe(0);
  });

  it('tell of changes that matter to others only', () => {
    const state = stateWith('n');
    const placed = on('n', pending);
    expect(types(state.setPod(placed, undefined))).toEqual(['pod-placed']);
    expect(types(state.setPod({ ...placed, status: { phase: 'Running' } }, placed))).toEqual([]);
    const relabelled = { ...placed, metadata: { ...placed.metadata, labels: { app: 'web' } } };
    expect(types(state.setPod(relabelled, placed))).toEqual(['pod-relabelled']);
    const leaving = { ...placed, metadata: { ...placed.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
    expect(types(state.setPod(leaving, placed))).toEqual(['pod-leaving']);
    expect(types(state.setPod(on('n', makePod('p', asking({ cpu: '500m' }))), placed))).toEqual(['room-freed']);
    expect(used(state, 'n')).toBe(500);
  });

  it('are remembered while their node is away', () => {
    const state = stateWith();
    state.setPod(on('n', pending), undefined);
    state.setNode(makeNode('n'), undefined);
    expect(used(state, 'n')).toBe(1000);
    expect(types(state.removeNode('n'))).toEqual(['node-removed']);
    state.setNode(makeNode('n'), undefined);
    expect(used(state, 'n')).toBe(1000);
  });
});

describe('nodes', () => {
  it('tell of changes that matter to pods only', () => {
    const state = stateWith('n');
    const node = makeNode('n');
    const heartbeat = { ...node, status: { ...node.status, conditions: [] } };
    expect(types(state.setNode(heartbeat, node))).toEqual([]);
    expect(types(state.setNode(makeNode('n', { spec: { unschedulable: true } }), node))).toEqual(['node-changed']);
    expect(state.cluster.nodes.get('n')?.info.isUnschedulable).toBe(true);
  });
});

describe('nominations', () => {
  const waiting = (node?: string): Pod => ({ ...pending, status: { nominatedNodeName: node } });
  const nominated = (state: SchedulerState) => state.nominations.nodeOf(podInfoOf(pending).uid);

  it('are as the pod says', () => {
    const state = stateWith('n', 'm');
    state.setPod(waiting('n'), undefined);
    expect(nominated(state)).toBe('n');
    expect(types(state.setPod(waiting('m'), waiting('n')))).toEqual(['room-freed']);
    expect(nominated(state)).toBe('m');
    expect(types(state.setPod(waiting(), waiting('m')))).toEqual(['room-freed']);
    expect(nominated(state)).toBeUndefined();
  });

  it('are not undone by news from before they were made', () => {
    const state = stateWith('n');
    state.setPod(waiting(), undefined);
    state.nominations.set(podInfoOf(pending), 'n');
    expect(types(state.setPod({ ...waiting(), status: { phase: 'Pending' } }, waiting()))).toEqual([]);
    expect(nominated(state)).toBe('n');
    state.setPod(waiting('n'), waiting());
    expect(nominated(state)).toBe('n');
  });

  it('end with the pod, and with its placement', () => {
    const state = stateWith('n', 'm');
    state.setPod(waiting('n'), undefined);
    expect(types(state.setPod(on('m', waiting('n')), waiting('n')))).toEqual(['room-freed', 'pod-placed']);
    state.setPod(waiting('n'), undefined);
    expect(types(state.removePod(pending))).toContain('room-freed');
    expect([...state.nominations.on('n')]).toEqual([]);
  });
});
