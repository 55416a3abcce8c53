import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../meta.ts';
import { cells, changed, created, lines, object } from './kinds.fixture.ts';
import { persistentVolumeClaimDefinition } from './persistent-volume-claim.ts';
import { persistentVolumeDefinition } from './persistent-volume.ts';

const claimSpec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } };
const volumeSpec = { accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' }, hostPath: { path: '/data' } };

describe('PersistentVolumeClaim', () => {
  const { strategy } = persistentVolumeClaimDefinition;
  const claim = (spec: JsonObject = {}): ReturnType<typeof object> =>
    created(persistentVolumeClaimDefinition, object('PersistentVolumeClaim', { spec: { ...claimSpec, ...spec } }));

  it('has a mode and a phase, and says its source twice', () => {
    const dataSource = { kind: 'PersistentVolumeClaim', name: 'other' };
    expect(claim({ dataSource, resources: { requests: { storage: '1024Mi' } } })).toMatchObject({
      spec: { volumeMode: 'Filesystem', dataSourceRef: dataSource, resources: { requests: { storage: '1Gi' } } },
      status: { phase: 'Pending' },
    });
  });

  it.each<[JsonObject, string]>([
    [{ accessModes: [] }, 'spec.accessModes: Required value: at least 1 access mode is required'],
    [
      { accessModes: ['Any'] },
      'spec.accessModes: Unsupported value: "Any": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"',
    ],
    [
      { accessModes: ['ReadWriteOncePod', 'ReadWriteOnce'] },
      'spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes',
    ],
    [{ resources: {} }, 'spec.resources[storage]: Required value'],
    [
      { resources: { requests: { storage: '0' } } },
      'spec.resources[storage]: Invalid value: "0": must be greater than zero',
    ],
    [
      { dataSource: { kind: 'Pod', name: 'x' }, dataSourceRef: { kind: 'Pod', name: 'x' } },
      `spec.dataSource: Invalid value: "Pod": must be 'PersistentVolumeClaim' when referencing the default apiGroup`,
    ],
    [
      {
        dataSource: { kind: 'PersistentVolumeClaim', name: 'x' },
        dataSourceRef: { kind: 'PersistentVolumeClaim', name: 'y' },
      },
      'spec: Invalid value: "spec.dataSource": must match dataSourceRef',
    ],
  ])('refuses %j', (spec, message) => {
    expect(lines(strategy?.validate?.(claim(spec)) ?? [])).toContain(message);
  });

  describe('updates', () => {
    const update = (old: ReturnType<typeof object>, changes: { readonly [path: string]: unknown }): string[] =>
      lines(strategy?.validateUpdate?.(changed(old, changes), old) ?? []);
    const bound = changed(claim({ volumeName: 'pv', storageClassName: 'fast' }), {
      'status.phase': 'Bound',
      'status.capacity': { storage: '1Gi' },
    });

    it('bind once, and choose a class once', () => {
      expect(update(claim(), { 'spec.volumeName': 'pv', 'spec.storageClassName': 'fast' })).toEqual([]);
      expect(update(bound, { 'spec.volumeName': 'other' })[0]).toMatch(
        /^spec: Forbidden: spec is immutable after creation except resources\.requests and volumeAttributesClassName for bound claims\n- {2}volumeName: "pv"\n\+ {2}volumeName: "other"$/,
      );
    });

    it('grow when bound', () => {
      expect(update(bound, { 'spec.resources.requests.storage': '2Gi' })).toEqual([]);
      expect(update(claim(), { 'spec.resources.requests.storage': '2Gi' })).toHaveLength(1);
      // What has no volume yet has no capacity either that it could fall below.
      expect(update(claim(), { 'spec.resources.requests.storage': '1Mi' })).toEqual([
        expect.stringContaining('spec is immutable after creation'),
      ]);
      expect(update(bound, { 'spec.resources.requests.storage': '1Mi' })).toEqual([
        'spec.resources.requests.storage: Forbidden: field can not be less than status.capacity',
      ]);
    });

    it('keep the mode', () => {
      expect(update(bound, { 'spec.volumeMode': 'Block' })).toContain(
        'volumeMode: Invalid value: "Block": field is immutable',
      );
    });

    it('can take back a failed expansion', () => {
      const growing = changed(bound, { 'spec.resources.requests.storage': '5Gi' });
      expect(update(growing, { 'spec.resources.requests.storage': '2Gi' })).toEqual([]);
    });

    it('keep the attributes class once one is in effect', () => {
      const attributed = changed(bound, {
        'spec.volumeAttributesClassName': 'gold',
        'status.currentVolumeAttributesClassName': 'gold',
      });
      expect(update(attributed, { 'spec.volumeAttributesClassName': 'silver' })).toEqual([]);
      expect(update(attributed, { 'spec.volumeAttributesClassName': undefined })).toEqual([
        'spec.volumeAttributesClassName: Forbidden: update to nil is forbidden when status.currentVolumeAttributesClassName is not nil',
      ]);
    });
  });

  it('shows what it got', () => {
    const bound = changed(claim({ volumeName: 'pv', storageClassName: 'fast' }), {
      status: { phase: 'Bound', capacity: { storage: '2Gi' }, accessModes: ['ReadWriteMany', 'ReadWriteOnce'] },
    });
    expect(cells(persistentVolumeClaimDefinition, bound, 0)).toEqual([
      'a',
      'Bound',
      'pv',
      '2Gi',
      'RWO,RWX',
      'fast',
      '<unset>',
      '<unknown>',
      'Filesystem',
    ]);
    expect(cells(persistentVolumeClaimDefinition, claim(), 0).slice(1, 6)).toEqual(['Pending', '', '', '', '']);
    const deleted = changed(bound, { 'metadata.deletionTimestamp': '2026-01-01T00:00:00Z' });
    expect(cells(persistentVolumeClaimDefinition, deleted, 0)[1]).toBe('Terminating');
  });
});

describe('PersistentVolume', () => {
  const { strategy } = persistentVolumeDefinition;
  const volume = (spec: JsonObject = {}): ReturnType<typeof object> =>
    created(persistentVolumeDefinition, object('PersistentVolume', { spec: { ...volumeSpec, ...spec } }));

  it('is kept unless told otherwise', () => {
    expect(volume()).toMatchObject({
      spec: { persistentVolumeReclaimPolicy: 'Retain', volumeMode: 'Filesystem', hostPath: { type: '' } },
      status: { phase: 'Pending' },
    });
    expect(strategy?.validate?.(volume())).toEqual([]);
  });

  it.each<[JsonObject, string[]]>([
    [{ accessModes: [] }, ['spec.accessModes: Required value']],
    [
      { capacity: {} },
      ['spec.capacity: Required value', 'spec.capacity: Unsupported value: {}: supported values: "storage"'],
    ],
    [{ capacity: { storage: '-1' } }, ['spec.capacity[storage]: Invalid value: "-1": must be greater than zero']],
    [{ hostPath: undefined as never }, ['spec: Required value: must specify a volume type']],
    [{ nfs: { server: 's', path: '/p' } }, ['spec.nfs: Forbidden: may not specify more than 1 volume type']],
    [
      { hostPath: undefined as never, local: { path: '/x' } },
      ['spec.nodeAffinity: Required value: Local volume requires node affinity'],
    ],
    [{ nodeAffinity: {} }, ['spec.nodeAffinity.required: Required value: must specify required node constraints']],
    [
      { hostPath: { path: '//.' }, persistentVolumeReclaimPolicy: 'Recycle' },
      [`spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'`],
    ],
    [
      { volumeAttributesClassName: 'x' },
      ['spec.csi: Required value: has to be specified when using volumeAttributesClassName'],
    ],
  ])('refuses %j', (spec, messages) => {
    expect(lines(strategy?.validate?.(volume(spec)) ?? [])).toEqual(messages);
  });

  it('stays the volume it is', () => {
    const csi = { driver: 'a.b', volumeHandle: 'h' };
    const old = volume({ hostPath: undefined as never, csi, nodeAffinity: { required: { nodeSelectorTerms: [{}] } } });
    const update = (changes: { readonly [path: string]: unknown }): string[] =>
      lines(strategy?.validateUpdate?.(changed(old, changes), old) ?? []);
    expect(update({ 'spec.capacity.storage': '2Gi', 'spec.claimRef': { name: 'c' } })).toEqual([]);
    expect(update({ 'spec.csi.controllerExpandSecretRef': { name: 's' } })).toEqual([]);
    expect(update({ 'spec.csi.volumeHandle': 'other' })[0]).toMatch(
      /^spec\.persistentvolumesource: Forbidden: spec\.persistentvolumesource is immutable after creation\n/,
    );
    expect(update({ 'spec.volumeMode': 'Block', 'spec.nodeAffinity': undefined })).toEqual([
      'volumeMode: Invalid value: "Block": field is immutable',
      'nodeAffinity: Invalid value: null: field is immutable, except for updating from beta label to GA',
    ]);
  });

  it('shows its claim', () => {
    const bound = changed(volume({ claimRef: { namespace: 'n', name: 'c' }, storageClassName: 'fast' }), {
      'status.phase': 'Bound',
    });
    expect(cells(persistentVolumeDefinition, bound, 0)).toEqual([
      'a',
      '1Gi',
      'RWO',
      'Retain',
      'Bound',
      'n/c',
      'fast',
      '<unset>',
      '',
      '<unknown>',
      'Filesystem',
    ]);
  });
});
