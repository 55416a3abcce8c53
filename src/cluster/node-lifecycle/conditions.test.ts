import { describe, expect, it } from 'vitest';
import { makeNode } from '../../migration/fit/cluster.fixture.ts';
import type { Node, NodeCondition } from '../../migration/fit/objects.ts';
import { silencePatch } from './conditions.ts';

const NOON_MS = Date.UTC(2026, 0, 1, 12);

function node(...conditions: NodeCondition[]): Node {
  const made = makeNode('n');
  const metadata = { ...made.metadata, uid: 'u', resourceVersion: '7', creationTimestamp: '2026-01-01T11:00:00Z' };
  return { ...made, metadata, status: { conditions } };
}

const ready = (lastHeartbeatTime: string, status = 'True'): NodeCondition => ({
  type: 'Ready',
  status,
  lastHeartbeatTime,
});

describe('of a node that has fallen silent it is said', () => {
  const stopped = (type: string) => ({
    type,
    status: 'Unknown',
    reason: 'NodeStatusUnknown',
    message: 'Kubelet stopped posting node status.',
    lastTransitionTime: '2026-01-01T12:00:00Z',
  });
  const never = (type: string) => ({
    type,
    status: 'Unknown',
    reason: 'NodeStatusNeverUpdated',
    message: 'Kubelet never posted node status.',
    lastHeartbeatTime: '2026-01-01T11:00:00Z',
    lastTransitionTime: '2026-01-01T12:00:00Z',
  });
  const written = (...conditions: object[]) => ({
    metadata: { uid: 'u', resourceVersion: '7' },
    status: { conditions },
  });

  it('that nothing is known of what it reported, and that it never reported the rest', () => {
    const network = { type: 'NetworkUnavailable', status: 'False' };
    const pressure = { type: 'MemoryPressure', status: 'Unknown', reason: 'Own' };
    expect(
      silencePatch(node(ready('t'), pressure, { type: 'DiskPressure', status: 'False' }, network), NOON_MS),
    ).toEqual(written(stopped('Ready'), stopped('DiskPressure'), never('PIDPressure')));
  });

  it('also where it was not ready', () => {
    expect(silencePatch(node(ready('t', 'False')), NOON_MS)?.['status']).toMatchObject({
      conditions: [stopped('Ready'), {}, {}, {}],
    });
  });

  it('that it never said anything, where it never did', () => {
    const types = ['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure'];
    expect(silencePatch(node(), NOON_MS)).toEqual(written(...types.map(never)));
  });

  it('nothing more once that is known', () => {
    expect(
      silencePatch(node(ready('t', 'Unknown'), { type: 'DiskPressure', status: 'False' }), NOON_MS),
    ).toBeUndefined();
  });
});
