import { describe, expect, it } from 'vitest';
import type { JsonObject, ObjectMeta } from '../../meta.ts';
import { eventDefinition } from './event.ts';
import { cells, changed, lines, object } from './kinds.fixture.ts';

const NOW = Date.parse('2026-01-01T01:00:00Z');

function check(fields: JsonObject, metadata: ObjectMeta = {}): string[] {
  return lines(eventDefinition.strategy?.validate?.(object('Event', fields, metadata)) ?? []);
}

describe('Event', () => {
  const mismatch = (namespace: string): string =>
    `involvedObject.namespace: Invalid value: "${namespace}": does not match event.namespace`;

  it('lives where its object does, or in default', () => {
    expect(check({ involvedObject: { namespace: 'default' } })).toEqual([]);
    expect(check({ involvedObject: {} })).toEqual([]);
    expect(check({ involvedObject: {} }, { namespace: 'other' })).toEqual([mismatch('')]);
    expect(check({ involvedObject: { namespace: 'x' } })).toEqual([mismatch('x')]);
  });

  it('must say more when it has an eventTime', () => {
    const modern = {
      eventTime: '2026-01-01T00:00:00.000000Z',
      involvedObject: { namespace: 'default' },
      reportingComponent: 'example.com/controller',
      reportingInstance: 'one',
      action: 'Act',
      reason: 'Because',
    };
    expect(check(modern)).toEqual([]);
    expect(check({ ...modern, reportingInstance: '', action: 'x'.repeat(129), reason: '' })).toEqual([
      'reportingInstance: Required value',
      'action: Invalid value: "": can have at most 128 characters',
      'reason: Required value',
    ]);
    expect(check({ ...modern, reportingComponent: 'a b' })[0]).toMatch(
      /^reportingComponent: Invalid value: "a b": name/,
    );
    expect(check({ ...modern, message: 'x'.repeat(1025) })).toEqual([
      'message: Invalid value: "": can have at most 1024 characters',
    ]);
  });

  it('shows what happened when', () => {
    const old = object('Event', {
      involvedObject: { kind: 'Pod', name: 'web', fieldPath: 'spec.containers{app}' },
      type: 'Warning',
      reason: 'BackOff',
      message: ' Back-off \n',
      source: { component: 'kubelet', host: 'node-1' },
      firstTimestamp: '2026-01-01T00:00:00Z',
      lastTimestamp: '2026-01-01T00:59:00Z',
      count: 7,
    });
    expect(cells(eventDefinition, old, NOW)).toEqual([
      '60s',
      'Warning',
      'BackOff',
      'pod/web',
      'spec.containers{app}',
      'kubelet, node-1',
      'Back-off',
      '60m',
      7,
      'a',
    ]);
    const modern = object('Event', {
      involvedObject: { kind: 'Node' },
      eventTime: '2026-01-01T00:30:00.000000Z',
      reportingComponent: 'example.com/x',
    });
    expect(cells(eventDefinition, modern, NOW)).toEqual([
      '30m',
      '',
      '',
      'node',
      '',
      'example.com/x',
      '',
      '30m',
      1,
      'a',
    ]);
    const series = changed(modern, { series: { count: 3, lastObservedTime: '2026-01-01T00:59:50.000000Z' } });
    expect(cells(eventDefinition, series, NOW)[0]).toBe('10s');
    expect(cells(eventDefinition, series, NOW)[8]).toBe(3);
  });
});
