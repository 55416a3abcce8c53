import { describe, expect, it } from 'vitest';
import type { FieldError } from './field-error.ts';
import type { ObjectMeta } from './meta.ts';
import { dnsSubdomainErrors } from './names.ts';
import { annotationsErrors, validateObjectMeta, validateObjectMetaUpdate } from './validate-meta.ts';

const lines = (errors: FieldError[]): string[] => errors.map((error) => `${error.field}: ${error.message}`);
const owner = { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u' };

describe('validateObjectMeta', () => {
  const create = (meta: ObjectMeta, namespaced = true): string[] =>
    lines(validateObjectMeta(meta, namespaced, dnsSubdomainErrors));

  it('accepts a full, well-formed object', () => {
    expect(
      create({
        name: 'web-1',
        generateName: 'web-',
        namespace: 'default',
        labels: { 'app.kubernetes.io/name': 'web', empty: '' },
        annotations: { 'Example.com/Mixed': '{"any": "text"}' },
        finalizers: ['example.com/hold', 'foregroundDeletion'],
        ownerReferences: [
          { ...owner, controller: true },
          { ...owner, uid: 'v', controller: false },
        ],
      }),
    ).toEqual([]);
  });

  const refused: [ObjectMeta, RegExp][] = [
    [{ namespace: 'a' }, /^metadata\.name: Required value: name or generateName is required$/],
    [{ name: 'A', namespace: 'a' }, /^metadata\.name: Invalid value: "A": a lowercase RFC 1123 subdomain/],
    [{ name: 'a', generateName: 'A-', namespace: 'a' }, /^metadata\.generateName: Invalid value: "A-": a lowercase/],
    [{ name: 'a' }, /^metadata\.namespace: Required value$/],
    [{ name: 'a', namespace: 'a.b' }, /^metadata\.namespace: Invalid value: "a\.b": must not contain dots$/],
    [{ name: 'a', namespace: 'a', generation: -1 }, /^metadata\.generation: Invalid value: -1: must be greater/],
    [{ name: 'a', namespace: 'a', labels: { 'a b': '' } }, /^metadata\.labels: Invalid value: "a b": name part must/],
    [{ name: 'a', namespace: 'a', labels: { a: '-' } }, /^metadata\.labels: Invalid value: "-": a valid label must/],
    [{ name: 'a', namespace: 'a', annotations: { '/': '' } }, /^metadata\.annotations: Invalid value: "\/": prefix/],
    [{ name: 'a', namespace: 'a', finalizers: ['a b'] }, /^metadata\.finalizers: Invalid value: "a b": name part/],
    [
      { name: 'a', namespace: 'a', finalizers: ['orphan', 'foregroundDeletion'] },
      /^metadata\.finalizers: .* finalizer orphan and foregroundDeletion cannot be both set$/,
    ],
    [
      { name: 'a', namespace: 'a', ownerReferences: [{ ...owner, apiVersion: 'apps/' }] },
      /^metadata\.ownerReferences\.apiVersion: Invalid value: "apps\/": version must not be empty$/,
    ],
    [
      { name: 'a', namespace: 'a', ownerReferences: [{ ...owner, uid: '' }] },
      /^metadata\.ownerReferences\.uid: Invalid value: "": must not be empty$/,
    ],
    [
      { name: 'a', namespace: 'a', ownerReferences: [{ ...owner, kind: 'Event' }] },
      /^metadata\.ownerReferences: .*: \/v1, Kind=Event is disallowed from being an owner$/,
    ],
    [
      {
        name: 'a',
        namespace: 'a',
        ownerReferences: [
          { ...owner, controller: true },
          { ...owner, name: 'q', controller: true },
        ],
      },
      /Only one reference can have Controller set to true\. Found "true" in references for Pod\/p and Pod\/q$/,
    ],
  ];
  it.each(refused)('refuses %j', (meta, message) => {
    expect(create(meta)[0]).toMatch(message);
  });

  it('allows no namespace on cluster-scoped kinds', () => {
    expect(create({ name: 'a' }, false)).toEqual([]);
    expect(create({ name: 'a', namespace: 'b' }, false)).toEqual([
      'metadata.namespace: Forbidden: not allowed on this type',
    ]);
  });

  it('treats keys of the prototype as data', () => {
    const labels = JSON.parse('{"__proto__": "x", "constructor": "y"}') as Record<string, string>;
    expect(create({ name: 'a', namespace: 'b', labels })).toEqual([
      expect.stringContaining('metadata.labels: Invalid value: "__proto__": name part must consist of'),
    ]);
  });

  it('limits annotations in bytes, all together', () => {
    const half = 'ä'.repeat(64 * 1024);
    expect(lines(annotationsErrors({ a: half, b: half }, 'metadata.annotations'))).toEqual([
      'metadata.annotations: Too long: may not be more than 262144 bytes',
    ]);
    expect(annotationsErrors({ a: half }, 'metadata.annotations')).toEqual([]);
  });
});

describe('validateObjectMetaUpdate', () => {
  const old: ObjectMeta = {
    name: 'a',
    namespace: 'b',
    uid: 'u',
    generation: 2,
    creationTimestamp: '2026-01-01T00:00:00Z',
    deletionTimestamp: '2026-01-02T00:00:00Z',
    deletionGracePeriodSeconds: 30,
    finalizers: ['a.b/c'],
  };
  const update = (change: Partial<ObjectMeta>): string[] => lines(validateObjectMetaUpdate({ ...old, ...change }, old));

  it('accepts new labels, and fewer finalizers during deletion', () => {
    expect(update({ labels: { a: 'b' }, finalizers: [] })).toEqual([]);
  });

  it.each<[Partial<ObjectMeta>, string]>([
    [{ name: 'x' }, 'metadata.name: Invalid value: "x": field is immutable'],
    [{ namespace: 'x' }, 'metadata.namespace: Invalid value: "x": field is immutable'],
    [{ uid: 'x' }, 'metadata.uid: Invalid value: "x": field is immutable'],
    [{ creationTimestamp: null }, 'metadata.creationTimestamp: Invalid value: null: field is immutable'],
    [{ deletionTimestamp: undefined }, 'metadata.deletionTimestamp: Invalid value: null: field is immutable'],
    [{ deletionGracePeriodSeconds: 0 }, 'metadata.deletionGracePeriodSeconds: Invalid value: 0: field is immutable'],
    [{ generation: 1 }, 'metadata.generation: Invalid value: 1: must not be decremented'],
    [
      { finalizers: ['a.b/c', 'z', 'y', 'y'] },
      'metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"y", "z"}',
    ],
    [{ labels: { a: '!' } }, expect.stringContaining('metadata.labels: Invalid value: "!"')],
  ])('refuses %j', (change, message) => {
    expect(update(change)).toEqual([message]);
  });

  it('lets finalizers be added while the object lives', () => {
    const alive = { ...old, deletionTimestamp: undefined };
    expect(validateObjectMetaUpdate({ ...alive, finalizers: ['x'] }, alive)).toEqual([]);
  });
});
