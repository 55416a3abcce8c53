import { describe, expect, it } from 'vitest';
import { KUBEVIRT_CRDS } from './crds.ts';
import {
  GUEST_STATUS_TWINS,
  MIGRATION_SPEC_TWINS,
  MIGRATION_STATUS_TWINS,
  type Twins,
  twinErrors,
  withTwins,
} from './migration-twins.ts';
import type { Schema } from '../schema.ts';

interface Definition {
  readonly names: { readonly plural: string };
  readonly versions: readonly { readonly schema: { readonly openAPIV3Schema: Schema } }[];
}

function schemaAt(plural: string, path: string): Schema | undefined {
  const definitions = KUBEVIRT_CRDS.map(({ spec }) => spec as Definition);
  let schema = definitions.find(({ names }) => names.plural === plural)?.versions[0]?.schema.openAPIV3Schema;
  for (const step of path.split('.')) schema = step === '0' ? schema?.items : schema?.properties?.[step];
  return schema;
}

describe('fields with two names', () => {
  it.each<[string, string, readonly Twins[]]>([
    ['virtualmachineinstancemigrations', 'spec', MIGRATION_SPEC_TWINS],
    ['virtualmachineinstancemigrations', 'status', MIGRATION_STATUS_TWINS],
    ['virtualmachineinstances', 'status', GUEST_STATUS_TWINS],
  ])('%s have both in their %s, of one type', (plural, root, twins) => {
    for (const [proposed, shipped] of twins) {
      const [one, other] = [schemaAt(plural, `${root}.${proposed}`), schemaAt(plural, `${root}.${shipped}`)];
      expect(one?.type, proposed).toBeDefined();
      expect(one?.type, `${proposed} and ${shipped}`).toBe(other?.type);
    }
  });
  it.each<[string, object, object]>([
    [
      'the proposed',
      { vmName: 'a', receive: { key: 'k' } },
      { vmName: 'a', vmiName: 'a', receive: { key: 'k', migrationID: 'k' } },
    ],
    [
      'the shipped',
      { vmiName: 'a', sendTo: { migrationID: 'k', connectURL: 'u' } },
      { vmName: 'a', vmiName: 'a', sendTo: { key: 'k', migrationID: 'k', connectURL: 'u' } },
    ],
    ['an empty', { vmName: '', vmiName: 'a' }, { vmName: 'a', vmiName: 'a' }],
    ['neither', { priority: 'x', sendTo: null }, { priority: 'x', sendTo: null }],
    [
      'a hostile',
      JSON.parse('{"vmName":"a","__proto__":{"vmiName":"b"}}') as object,
      JSON.parse('{"vmName":"a","vmiName":"a","__proto__":{"vmiName":"b"}}') as object,
    ],
  ])('are filled in from %s one', (_, spec, filled) => {
    expect(withTwins(spec, MIGRATION_SPEC_TWINS)).toEqual(filled);
  });
  it('are left alone where nothing is missing', () => {
    const spec = { vmName: 'a', vmiName: 'a' };
    expect(withTwins(spec, MIGRATION_SPEC_TWINS)).toBe(spec);
  });
  it('may be one and a list, whose first is meant', () => {
    expect(withTwins({ syncEndpoint: 'a:1' }, MIGRATION_STATUS_TWINS)).toEqual({
      syncEndpoint: 'a:1',
      synchronizationAddresses: ['a:1'],
    });
    expect(withTwins({ synchronizationAddresses: ['a:1', 'b:1'] }, MIGRATION_STATUS_TWINS)).toEqual({
      syncEndpoint: 'a:1',
      synchronizationAddresses: ['a:1', 'b:1'],
    });
  });
  it('are in different places in the status of a guest', () => {
    const status = { migrationState: { mode: 'PreCopy', targetState: { node: 'n', domainDetected: true } } };
    expect(withTwins(status, GUEST_STATUS_TWINS)).toEqual({
      ...status,
      sourceMigrationState: { mode: 'PreCopy' },
      targetMigrationState: { mode: 'PreCopy', node: 'n', nodeDomainDetected: true },
    });
  });
  it('are refused when they differ', () => {
    const spec = {
      vmName: 'a',
      vmiName: 'b',
      sendTo: { key: '1', migrationID: '1' },
      receive: { key: '1', migrationID: '2' },
    };
    expect(twinErrors(spec, MIGRATION_SPEC_TWINS, 'spec').map(({ field, message }) => `${field}: ${message}`)).toEqual([
      'spec.vmName: Invalid value: "a": must be the same as spec.vmiName, "b"',
      'spec.receive.key: Invalid value: "1": must be the same as spec.receive.migrationID, "2"',
    ]);
  });
});
