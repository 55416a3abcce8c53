import { describe, expect, it } from 'vitest';
import { created, createErrors, statusErrors } from '../test-kinds.ts';
import { apiServiceDefinition as services } from './api-service.ts';

const metadata = { name: 'v1.example.com', creationTimestamp: '2026-01-02T03:04:05Z' };
const spec = { group: 'example.com', version: 'v1', groupPriorityMinimum: 1000, versionPriority: 15 };
const service = { namespace: 'n', name: 's', port: 443 };

describe('an APIService', () => {
  it.each<[object, string[]]>([
    [{}, []],
    [{ service }, []],
    [{ service, insecureSkipTLSVerify: true }, []],
    [
      { service, insecureSkipTLSVerify: true, caBundle: 'x' },
      ['spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present'],
    ],
    [
      { insecureSkipTLSVerify: true },
      ['spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have insecureSkipTLSVerify'],
    ],
    [{ caBundle: 'abcd' }, ['spec.caBundle: Invalid value: "4 bytes": local APIServices may not have a caBundle']],
    [{ service: {} }, ['spec.service.namespace: Required value', 'spec.service.name: Required value']],
    [
      { groupPriorityMinimum: 0 },
      ['spec.groupPriorityMinimum: Invalid value: 0: must be positive and less than 20000'],
    ],
    [{ versionPriority: 1001 }, ['spec.versionPriority: Invalid value: 1001: must be positive and less than 1000']],
  ])('with %j', (change, errors) => {
    expect(createErrors(services, { metadata, spec: { ...spec, ...change } })).toEqual(errors);
  });

  it('is named by what it serves', () => {
    expect(createErrors(services, { metadata: { name: 'x' }, spec })).toEqual([
      'metadata.name: Invalid value: "x": must be `spec.version+"."+spec.group`: "v1.example.com"',
    ]);
    expect(createErrors(services, { metadata: { name: 'v1.' }, spec: { ...spec, group: '' } })).toEqual([]);
    expect(createErrors(services, { metadata: { name: 'v2.' }, spec: { ...spec, group: '', version: 'v2' } })).toEqual([
      'spec.group: Required value: only v1 may have an empty group and it better be legacy kube',
    ]);
  });

  it('is available at once when it is served here', () => {
    expect(created(services, { metadata, spec }).status).toMatchObject({
      conditions: [{ type: 'Available', status: 'True', reason: 'Local', lastTransitionTime: '2026-01-02T03:04:05Z' }],
    });
    expect(created(services, { metadata, spec: { ...spec, service } }).status).toEqual({});
  });

  it('has a status of three values', () => {
    expect(statusErrors(services, { conditions: [{ type: 'Available', status: 'Maybe' }] })).toHaveLength(1);
    expect(statusErrors(services, { conditions: [{ type: 'Available', status: 'False' }] })).toEqual([]);
  });
});
