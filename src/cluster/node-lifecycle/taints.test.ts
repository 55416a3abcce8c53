import { describe, expect, it } from 'vitest';
import { makeNode } from '../../migration/fit/cluster.fixture.ts';
import type { Node, Taint } from '../../migration/fit/objects.ts';
import { awaitsEviction, type Eviction, taintsFor } from './taints.ts';

const NOW_MS = Date.UTC(2026, 0, 1, 12);
const SINCE = '2026-01-01T10:00:00Z';

/** From `type=status` and `key:effect`, without the prefix that all keys of Kubernetes have. */
function node(conditions: string, taints: string, unschedulable = false): Node {
  const spec = { unschedulable, taints: split(taints).map(parse) };
  const made = makeNode('n', { spec });
  return { ...made, status: { ...made.status, conditions: split(conditions).map((each) => conditionOf(each)) } };
}

const split = (text: string): string[] => (text === '' ? [] : text.split(' '));

function conditionOf(text: string): { type: string; status: string } {
  const [type = '', status = ''] = text.split('=');
  return { type, status };
}

function parse(text: string): Taint {
  const [key = '', effect = ''] = text.split(':');
  return { key: key.includes('.') ? key : `node.kubernetes.io/${key}`, effect, timeAdded: SINCE };
}

/** New taints have a plus. */
function short(taints: readonly Taint[] | undefined): string | undefined {
  return taints
    ?.map(({ key, effect, timeAdded }) => {
      const isNew = timeAdded === '2026-01-01T12:00:00Z';
      return `${isNew ? '+' : ''}${key.replace('node.kubernetes.io/', '')}:${effect}`;
    })
    .join(' ');
}

describe('taints that keep pods from being placed', () => {
  it.each<[string, string, boolean, string | undefined]>([
    ['Ready=True', '', false, undefined],
    ['', '', false, undefined],
    ['Ready=False', '', false, '+not-ready:NoSchedule'],
    ['Ready=Unknown', '', false, '+unreachable:NoSchedule'],
    ['Ready=Unknown', 'not-ready:NoSchedule', false, '+unreachable:NoSchedule'],
    ['Ready=True', 'not-ready:NoSchedule unreachable:NoSchedule', false, ''],
    ['', 'not-ready:NoSchedule', false, ''],
    ['Ready=True MemoryPressure=True', '', false, '+memory-pressure:NoSchedule'],
    [
      'DiskPressure=True PIDPressure=True NetworkUnavailable=True Ready=True',
      '',
      false,
      '+disk-pressure:NoSchedule +pid-pressure:NoSchedule +network-unavailable:NoSchedule',
    ],
    ['Ready=True MemoryPressure=Unknown DiskPressure=False', 'memory-pressure:NoSchedule', false, ''],
    ['Ready=True', '', true, '+unschedulable:NoSchedule'],
    ['Ready=True', 'unschedulable:NoSchedule', false, ''],
    ['Ready=True', 'unschedulable:NoSchedule', true, undefined],
    ['Ready=False', 'example.com/mine:NoSchedule', false, 'example.com/mine:NoSchedule +not-ready:NoSchedule'],
    ['Ready=True', 'example.com/mine:NoExecute not-ready:PreferNoSchedule', false, undefined],
  ])('%s with %s, cordoned %s', (conditions, taints, isCordoned, expected) => {
    expect(short(taintsFor(node(conditions, taints, isCordoned), 'keep', NOW_MS))).toBe(expected);
  });
});

describe('taints that make pods leave', () => {
  it.each<[string, string, Eviction, string | undefined]>([
    ['Ready=False', 'not-ready:NoSchedule', 'keep', undefined],
    ['Ready=False', 'not-ready:NoSchedule', 'add', 'not-ready:NoSchedule +not-ready:NoExecute'],
    ['Ready=False', 'not-ready:NoSchedule not-ready:NoExecute', 'keep', undefined],
    ['Ready=False', 'not-ready:NoSchedule not-ready:NoExecute', 'add', undefined],
    ['Ready=False', 'not-ready:NoSchedule not-ready:NoExecute', 'remove', 'not-ready:NoSchedule'],
    ['Ready=Unknown', '', 'add', '+unreachable:NoSchedule +unreachable:NoExecute'],
    [
      'Ready=Unknown',
      'not-ready:NoSchedule not-ready:NoExecute',
      'keep',
      '+unreachable:NoSchedule +unreachable:NoExecute',
    ],
    ['Ready=False', 'not-ready:NoSchedule unreachable:NoExecute', 'keep', 'not-ready:NoSchedule +not-ready:NoExecute'],
    ['Ready=True', 'not-ready:NoExecute unreachable:NoExecute', 'keep', ''],
    ['Ready=True', '', 'add', undefined],
    ['', 'unreachable:NoExecute', 'keep', undefined],
    ['', '', 'add', undefined],
  ])('%s with %s: %s', (conditions, taints, eviction, expected) => {
    expect(short(taintsFor(node(conditions, taints), eviction, NOW_MS))).toBe(expected);
  });

  it.each<[string, string, boolean]>([
    ['Ready=True', '', false],
    ['', '', false],
    ['Ready=False', '', true],
    ['Ready=Unknown', 'unreachable:NoSchedule', true],
    ['Ready=Unknown', 'not-ready:NoExecute', false],
  ])('%s with %s awaits one: %s', (conditions, taints, expected) => {
    expect(awaitsEviction(node(conditions, taints))).toBe(expected);
  });
});
