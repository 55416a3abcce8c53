import { describe, expect, it } from 'vitest';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import { isUsedBy, type PlannedObject } from './planned-objects.ts';
import { referencesOf } from './references.ts';

/** What machines refer to, wherever that stands. */

const machine = (spec: object, more: object = {}): VirtualMachine =>
  ({ metadata: {}, spec: { template: { spec: { domain: { devices: {} }, ...spec } }, ...more } }) as never;
const names = (spec: object) => {
  const { claims, secrets, configMaps, serviceAccounts } = referencesOf(machine(spec));
  return [...[claims, secrets, configMaps].flatMap((each) => each.map(({ name }) => name)), ...serviceAccounts];
};
const volumes = (...sources: readonly object[]): object => ({
  volumes: sources.map((source, index) => ({ name: `v-${index}`, ...source })),
});

describe('references', () => {
  it.each<[string, object, string[]]>([
    ['nothing', {}, []],
    ['claims', volumes({ persistentVolumeClaim: { claimName: 'a' } }, { dataVolume: { name: 'b' } }), ['a', 'b']],
    ['claims below', volumes({ ephemeral: { persistentVolumeClaim: { claimName: 'a' } } }), ['a']],
    ['secrets', volumes({ secret: { secretName: 'a' } }, { containerDisk: { imagePullSecret: 'b' } }), ['a', 'b']],
    [
      'secrets of cloud-init',
      volumes({ cloudInitConfigDrive: { secretRef: { name: 'a' }, networkDataSecretRef: { name: 'b' } } }),
      ['a', 'b'],
    ],
    ['config maps', volumes({ configMap: { name: 'a' } }, { sysprep: { configMap: { name: 'b' } } }), ['a', 'b']],
    ['service accounts', volumes({ serviceAccount: { serviceAccountName: 'a' } }), ['a']],
    [
      'secrets of credentials',
      {
        accessCredentials: [
          { sshPublicKey: { source: { secret: { secretName: 'a' } } } },
          { userPassword: { source: { secret: { secretName: 'b' } } } },
          { userPassword: 7 },
        ],
      },
      ['a', 'b'],
    ],
    [
      'secrets of kernels',
      { domain: { devices: {}, firmware: { kernelBoot: { container: { imagePullSecret: 'a' } } } } },
      ['a'],
    ],
  ])('to %s', (_, spec, expected) => expect(names(spec)).toEqual(expected));

  it('are needed where anybody needs them', () => {
    const optional = { configMap: { name: 'a', optional: true } };
    const { configMaps } = referencesOf(machine(volumes(optional, { configMap: { name: 'a' } })));
    expect(configMaps).toEqual([{ name: 'a', isOptional: false }]);
    expect(referencesOf(machine(volumes(optional))).configMaps).toEqual([{ name: 'a', isOptional: true }]);
  });

  it('keep what other machines refer to', () => {
    const planned = (plural: string, group: string): PlannedObject =>
      ({ resource: { plural, group }, object: { metadata: { name: 'a' } } }) as never;
    const other = [machine(volumes({ secret: { secretName: 'a' } }), { preference: { name: 'a' } })];
    expect(isUsedBy(other, planned('secrets', ''))).toBe(true);
    expect(isUsedBy(other, planned('configmaps', ''))).toBe(false);
    expect(isUsedBy(other, planned('virtualmachinepreferences', 'instancetype.kubevirt.io'))).toBe(true);
    expect(isUsedBy([], planned('secrets', ''))).toBe(false);
  });

  it.each<[string, object]>([
    ['a claim', { persistentVolumeClaim: { claimName: 'a' } }],
    ['the claim of a DataVolume', { dataVolume: { name: 'a' } }],
    ['a claim that is only read', { ephemeral: { persistentVolumeClaim: { claimName: 'a' } } }],
  ])('keep %s that another machine is on', (_, source) => {
    const planned = (name: string): PlannedObject =>
      ({ resource: { plural: 'persistentvolumeclaims', group: '' }, object: { metadata: { name } } }) as never;
    const other = [machine(volumes(source))];
    expect(isUsedBy(other, planned('a'))).toBe(true);
    expect(isUsedBy(other, planned('b'))).toBe(false);
  });
});
