import { describe, expect, it } from 'vitest';
import { leaseDefinition } from './coordination/lease.ts';
import { endpointSliceDefinition } from './discovery/endpoint-slice.ts';
import { eventsEventDefinition } from './events/event.ts';
import { runtimeClassDefinition } from './node/runtime-class.ts';
import { priorityClassDefinition } from './scheduling/priority-class.ts';
import { storageClassDefinition } from './storage/storage-class.ts';
import { createErrors, objectOf, updateErrors } from './test-kinds.ts';

describe('a Lease', () => {
  it.each<[object, string[]]>([
    [{ holderIdentity: 'me', leaseDurationSeconds: 15, leaseTransitions: 0 }, []],
    [{ leaseDurationSeconds: 0 }, ['spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0']],
    [{ leaseTransitions: -1 }, ['spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0']],
    [{ preferredHolder: 'x' }, ['spec.preferredHolder: Forbidden: may only be specified if `strategy` is defined']],
  ])('with %j', (spec, errors) => {
    expect(createErrors(leaseDefinition, { spec })).toEqual(errors);
  });
});

describe('a PriorityClass', () => {
  it.each<[string, object, string[]]>([
    ['high', { value: 1_000_000_000 }, []],
    ['low', { value: -5 }, []],
    [
      'high',
      { value: 1_000_000_001 },
      ['value: Forbidden: maximum allowed value of a user defined priority is 1000000000'],
    ],
    ['system-node-critical', { value: 2_000_001_000 }, []],
    [
      'system-node-critical',
      { value: 1 },
      [
        "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: value of system-node-critical PriorityClass must be 2000001000",
      ],
    ],
    [
      'system-mine',
      { value: 1 },
      [
        "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: system-mine is not a known system priority class",
      ],
    ],
  ])('%s with %j', (name, fields, errors) => {
    expect(createErrors(priorityClassDefinition, { metadata: { name }, ...fields })).toEqual(errors);
  });

  it('keeps its value and policy', () => {
    const old = { value: 1, preemptionPolicy: 'Never' };
    expect(updateErrors(priorityClassDefinition, { ...old, globalDefault: true }, old)).toEqual([]);
    expect(updateErrors(priorityClassDefinition, { value: 2, preemptionPolicy: 'PreemptLowerPriority' }, old)).toEqual([
      'value: Forbidden: may not be changed in an update.',
      'preemptionPolicy: Invalid value: "PreemptLowerPriority": field is immutable',
    ]);
  });
});

describe('a StorageClass', () => {
  it('names a provisioner and places', () => {
    const expression = { key: 'zone', values: ['a'] };
    const topologies = [{ matchLabelExpressions: [expression] }];
    expect(
      createErrors(storageClassDefinition, { provisioner: 'Example.com/p', allowedTopologies: topologies }),
    ).toEqual([]);
    const bad = [{ matchLabelExpressions: [expression, { key: 'zone', values: [] }] }];
    expect(createErrors(storageClassDefinition, { provisioner: '', allowedTopologies: bad })).toEqual([
      'provisioner: Required value',
      'allowedTopologies[0].matchLabelExpressions[1].values: Required value',
      'allowedTopologies[0].matchLabelExpressions[1].key: Duplicate value: "zone"',
    ]);
  });

  it('keeps what volumes were made by', () => {
    const old = { provisioner: 'p', reclaimPolicy: 'Delete', volumeBindingMode: 'Immediate' };
    expect(updateErrors(storageClassDefinition, { ...old, allowVolumeExpansion: true }, old)).toEqual([]);
    const changed = { provisioner: 'q', parameters: { a: 'b' }, reclaimPolicy: 'Retain', volumeBindingMode: 'X' };
    expect(updateErrors(storageClassDefinition, changed, old)).toEqual([
      'parameters: Forbidden: updates to parameters are forbidden.',
      'provisioner: Forbidden: updates to provisioner are forbidden.',
      'reclaimPolicy: Forbidden: updates to reclaimPolicy are forbidden.',
      'volumeBindingMode: Invalid value: "X": field is immutable',
    ]);
  });
});

describe('a RuntimeClass', () => {
  it('has a handler, which stays', () => {
    expect(createErrors(runtimeClassDefinition, { handler: 'runc' })).toEqual([]);
    expect(createErrors(runtimeClassDefinition, { handler: 'Run C' })).toHaveLength(1);
    expect(updateErrors(runtimeClassDefinition, { handler: 'b' }, { handler: 'a' })).toHaveLength(1);
  });
});

describe('an EndpointSlice', () => {
  it.each<[object, string[]]>([
    [
      {
        addressType: 'IPv4',
        endpoints: [{ addresses: ['10.0.0.1'], hostname: 'h' }],
        ports: [{ name: 'a' }, { name: '' }],
      },
      [],
    ],
    [{ addressType: 'IPv6', endpoints: [{ addresses: ['fd00::1'] }] }, []],
    [{ addressType: 'FQDN', endpoints: [{ addresses: ['a.example.com'] }] }, []],
    [
      { addressType: 'IPv6', endpoints: [{ addresses: ['10.0.0.1'] }] },
      ['endpoints[0].addresses[0]: Invalid value: "10.0.0.1": must be an IPv6 address'],
    ],
    [
      { addressType: 'IPv4', endpoints: [{ addresses: [] }] },
      ['endpoints[0].addresses: Required value: must contain at least 1 address'],
    ],
    [{ addressType: 'IPv4', ports: [{ name: 'a' }, { name: 'a' }] }, ['ports[1].name: Duplicate value: "a"']],
  ])('with %j', (slice, errors) => {
    expect(createErrors(endpointSliceDefinition, slice)).toEqual(errors);
  });

  it('keeps the type of its addresses', () => {
    expect(updateErrors(endpointSliceDefinition, { addressType: 'IPv6' }, { addressType: 'IPv4' })).toHaveLength(1);
  });
});

describe('an event of events.k8s.io', () => {
  const event = {
    eventTime: '2026-01-02T03:04:05.000000Z',
    reportingController: 'example.com/c',
    reportingInstance: 'i',
    action: 'Doing',
    reason: 'Because',
    note: 'words',
    regarding: { kind: 'Pod', namespace: 'y', name: 'p' },
    deprecatedCount: 2,
    type: 'Normal',
  };

  it('is stored as a core event and comes back as it was', () => {
    const object = objectOf(eventsEventDefinition, event);
    eventsEventDefinition.storage?.toStorage(object);
    expect(object).toMatchObject({
      involvedObject: event.regarding,
      message: 'words',
      count: 2,
      reportingComponent: 'example.com/c',
      reportingInstance: 'i',
      reason: 'Because',
    });
    expect(object).not.toHaveProperty('note');
    expect(object).not.toHaveProperty('regarding');
    eventsEventDefinition.storage?.fromStorage(object);
    expect(object).toEqual(objectOf(eventsEventDefinition, event));
  });

  it('is checked under its own names', () => {
    expect(createErrors(eventsEventDefinition, event)).toEqual([]);
    expect(createErrors(eventsEventDefinition, { ...event, reportingController: '' })).toContain(
      'reportingController: Required value',
    );
  });
});
