import { describe, expect, it } from 'vitest';
import { makeNode } from '../../migration/fit/cluster.fixture.ts';
import type { Node } from '../../migration/fit/objects.ts';
import { zoneOf, Zones } from './zones.ts';

function node(name: string, zone: string, status?: string, labels: Record<string, string> = {}): Node {
  const made = makeNode(name, { labels: { 'topology.kubernetes.io/zone': zone, ...labels } });
  return status === undefined ? made : { ...made, status: { conditions: [{ type: 'Ready', status }] } };
}

/** So many nodes of a zone, so many of them ready. */
function fill(zones: Zones, zone: string, ready: number, notReady: number): void {
  for (let index = 0; index < ready + notReady; index++)
    zones.setNode(node(`${zone}-${index}`, zone, index < ready ? 'True' : 'Unknown'));
}

const NORMAL = 0.1;
const SLOW = 0.01;

describe('the rate of a zone', () => {
  // Upstream's thresholds: 55 % and more than two.
  it.each<[number, number, number]>([
    [10, 0, NORMAL],
    [1, 2, NORMAL],
    [5, 6, NORMAL],
    [3, 3, NORMAL],
    [2, 3, 0],
    [9, 11, 0],
    [10, 12, NORMAL],
    [10, 13, 0],
    [0, 1, NORMAL],
    [0, 60, NORMAL],
    [22, 28, 0],
    [22, 29, SLOW],
  ])('%i ready, %i not: %f', (ready, notReady, rate) => {
    const zones = new Zones();
    fill(zones, 'elsewhere', 1, 0);
    fill(zones, 'z', ready, notReady);
    expect(zones.rateOf(zoneOf(node('any', 'z')))).toBe(rate);
  });

  it('is none where all zones are lost', () => {
    const zones = new Zones();
    fill(zones, 'a', 0, 2);
    fill(zones, 'b', 1, 0);
    expect(zones.areAllLost).toBe(false);
    zones.setNode(node('b-0', 'b', 'False'));
    expect([zones.areAllLost, zones.rateOf(zoneOf(node('any', 'a')))]).toEqual([true, 0]);
    zones.deleteNode('b-0');
    expect(zones.areAllLost).toBe(true);
    zones.setNode(node('a-0', 'a', 'True'));
    expect([zones.areAllLost, zones.rateOf(zoneOf(node('any', 'a')))]).toEqual([false, NORMAL]);
  });
});

describe('what counts', () => {
  it('is no node that says to be left out', () => {
    const zones = new Zones();
    zones.setNode(node('out', 'z', 'True', { 'node.kubernetes.io/exclude-disruption': '' }));
    expect(zones.areAllLost).toBe(false);
    zones.setNode(node('in', 'z', 'Unknown'));
    expect(zones.areAllLost).toBe(true);
  });

  it('is a node of which nobody has said anything, as lost', () => {
    const zones = new Zones();
    zones.setNode(node('new', 'z'));
    expect(zones.areAllLost).toBe(true);
  });

  it('is a node in the zone where it is now', () => {
    const zones = new Zones();
    zones.setNode(node('n', 'a', 'Unknown'));
    zones.setNode(node('n', 'b', 'True'));
    zones.deleteNode('nobody');
    expect(zones.areAllLost).toBe(false);
    zones.deleteNode('n');
    expect(zones.areAllLost).toBe(false);
  });
});

describe('a zone', () => {
  it.each<[Record<string, string>, Record<string, string>, boolean]>([
    [{}, {}, true],
    [{ 'topology.kubernetes.io/zone': 'a' }, { 'failure-domain.beta.kubernetes.io/zone': 'a' }, true],
    [{ 'topology.kubernetes.io/zone': 'a' }, { 'topology.kubernetes.io/zone': 'b' }, false],
    [{ 'topology.kubernetes.io/zone': 'a' }, { 'topology.kubernetes.io/region': 'a' }, false],
  ])('%j and %j are the same: %s', (a, b, expected) => {
    expect(zoneOf(makeNode('x', { labels: a })) === zoneOf(makeNode('y', { labels: b }))).toBe(expected);
  });
});
