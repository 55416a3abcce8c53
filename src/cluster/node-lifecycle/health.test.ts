import { describe, expect, it } from 'vitest';
import { makeNode } from '../../migration/fit/cluster.fixture.ts';
import type { Node, NodeCondition } from '../../migration/fit/objects.ts';
import { NodeHealth } from './health.ts';

const SECOND_MS = 1000;

function node(...conditions: NodeCondition[]): Node {
  const made = makeNode('n');
  return { ...made, metadata: { ...made.metadata, uid: 'u' }, status: { conditions } };
}

const ready = (lastHeartbeatTime: string, status = 'True'): NodeCondition => ({
  type: 'Ready',
  status,
  lastHeartbeatTime,
});

describe('the time that a node has', () => {
  const lease = (renewTime: string) => ({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: 'n', namespace: 'kube-node-lease' },
    spec: { renewTime },
  });

  it('begins when we first see it, whatever times are written in it', () => {
    const health = new NodeHealth();
    expect(health.sawNode(node(ready('2020-01-01T00:00:00Z')), 0)).toBe(true);
    expect(health.graceMs(node(ready('')), 0)).toBe(50 * SECOND_MS);
    expect(health.graceMs(node(), 0)).toBe(60 * SECOND_MS);
  });

  it('begins anew with each sign of life', () => {
    const health = new NodeHealth();
    const left = (atMs: number): number => health.graceMs(node(ready('')), atMs) / SECOND_MS;
    health.sawNode(node(ready('1')), 0);
    expect(health.sawNode(node(ready('1', 'False')), 10 * SECOND_MS)).toBe(false);
    expect(left(10 * SECOND_MS)).toBe(40);
    health.sawNode(node(ready('2')), 20 * SECOND_MS);
    expect(left(20 * SECOND_MS)).toBe(50);
    health.sawLease(lease('a'), 30 * SECOND_MS);
    health.sawLease(lease('a'), 40 * SECOND_MS);
    expect(left(40 * SECOND_MS)).toBe(40);
    health.sawLease(lease('b'), 50 * SECOND_MS);
    expect(left(60 * SECOND_MS)).toBe(40);
    expect(left(100 * SECOND_MS)).toBe(0);
  });

  it('begins anew where we were away ourselves', () => {
    const health = new NodeHealth();
    health.sawNode(node(ready('1')), 0);
    expect(health.graceMs(node(ready('1')), 60 * SECOND_MS)).toBe(-10 * SECOND_MS);
    expect(health.graceMs(node(ready('1')), 3600 * SECOND_MS)).toBe(50 * SECOND_MS);
  });

  it('begins anew for another node of its name', () => {
    const health = new NodeHealth();
    health.sawNode(node(ready('1')), 0);
    const other = node(ready('1'));
    expect(health.sawNode({ ...other, metadata: { ...other.metadata, uid: 'x' } }, 40 * SECOND_MS)).toBe(true);
    expect(health.graceMs(other, 40 * SECOND_MS)).toBe(50 * SECOND_MS);
  });
});
