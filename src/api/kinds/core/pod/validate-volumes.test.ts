import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../meta.ts';
import { defaultedPod, lines } from '../kinds.fixture.ts';
import { podDefinition } from './definition.ts';

function errorsOf(spec: JsonObject): string[] {
  return lines(podDefinition.strategy?.validate?.(defaultedPod(podDefinition, spec)) ?? []);
}

/** The errors of a pod whose one container has these fields. */
function errorsOfContainer(container: JsonObject, spec: JsonObject): string[] {
  return errorsOf({ ...spec, containers: [{ name: 'app', image: 'app:1', ...container }] });
}

const C = 'spec.containers[0]';

describe('mounts', () => {
  const volumes: JsonObject[] = [{ name: 'v' }, { name: 'c', persistentVolumeClaim: { claimName: 'c' } }];
  it.each<[JsonObject, string]>([
    [
      {
        volumeMounts: [
          { name: 'v', mountPath: '/a' },
          { name: 'v', mountPath: '/a' },
        ],
      },
      `${C}.volumeMounts[1].mountPath: Invalid value: "/a": must be unique`,
    ],
    [
      { volumeMounts: [{ name: 'v', mountPath: '/a', subPath: '../b' }] },
      `${C}.volumeMounts.subPath: Invalid value: "../b": must not contain '..'`,
    ],
    [
      { volumeMounts: [{ name: 'v', mountPath: '/a', mountPropagation: 'Bidirectional' }] },
      `${C}.volumeMounts.mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers`,
    ],
    [
      { volumeDevices: [{ name: 'v', devicePath: '/a' }] },
      `${C}.volumeDevices[0].name: Invalid value: "v": can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode`,
    ],
    [
      { volumeDevices: [{ name: 'c', devicePath: '/a' }], volumeMounts: [{ name: 'v', mountPath: '/a' }] },
      `${C}.volumeMounts[0].mountPath: Invalid value: "/a": must not already exist as a path in volumeDevices`,
    ],
  ])('refuses %j', (container, message) => {
    expect(errorsOfContainer(container, { volumes })).toContain(message);
  });
});

describe('volumes', () => {
  it.each<[JsonObject, string | RegExp]>([
    [{ name: '' }, 'spec.volumes[0].name: Required value'],
    [{ name: 'A' }, /^spec\.volumes\[0\]\.name: Invalid value: "A": a lowercase RFC 1123 label/],
    [
      { name: 'v', emptyDir: {}, hostPath: { path: '/' } },
      /^spec\.volumes\[0\]\.(emptyDir|hostPath): Forbidden: may not specify more than 1 volume type$/,
    ],
    [{ name: 'v', hostPath: { path: '' } }, 'spec.volumes[0].hostPath.path: Required value'],
    [
      { name: 'v', hostPath: { path: '/a/../b' } },
      `spec.volumes[0].hostPath.path: Invalid value: "/a/../b": must not contain '..'`,
    ],
    [
      { name: 'v', hostPath: { path: '/a', type: 'Dir' } },
      /^spec\.volumes\[0\]\.hostPath\.type: Unsupported value: "Dir"/,
    ],
    [{ name: 'v', secret: {} }, 'spec.volumes[0].secret.secretName: Required value'],
    [
      { name: 'v', configMap: { name: 'c', defaultMode: 4096 } },
      'spec.volumes[0].configMap.defaultMode: Invalid value: 4096: must be a number between 0 and 0777 (octal), both inclusive',
    ],
    [
      { name: 'v', configMap: { name: 'c', items: [{ key: 'k', path: '/abs' }] } },
      'spec.volumes[0].configMap.items[0].path: Invalid value: "/abs": must be a relative path',
    ],
    [
      { name: 'v', configMap: { name: 'c', items: [{ key: 'k', path: '..data' }] } },
      `spec.volumes[0].configMap.items[0].path: Invalid value: "..data": must not start with '..'`,
    ],
    [
      { name: 'v', persistentVolumeClaim: { claimName: '' } },
      'spec.volumes[0].persistentVolumeClaim.claimName: Required value',
    ],
    [
      { name: 'v', nfs: { server: 's', path: 'p' } },
      'spec.volumes[0].nfs.path: Invalid value: "p": must be an absolute path',
    ],
    [
      { name: 'v', emptyDir: { sizeLimit: '-1' } },
      'spec.volumes[0].emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity',
    ],
    [
      { name: 'v', projected: { sources: [{ serviceAccountToken: { path: 't', expirationSeconds: 1 } }] } },
      'spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 1: may not specify a duration less than 10 minutes',
    ],
    [
      {
        name: 'v',
        projected: {
          sources: [
            { secret: { name: 's', items: [{ key: 'a', path: 'p' }] } },
            { configMap: { name: 'c', items: [{ key: 'a', path: 'p' }] } },
          ],
        },
      },
      'spec.volumes[0].projected: Invalid value: "c": conflicting duplicate paths',
    ],
    [
      { name: 'v', downwardAPI: { items: [{ path: 'a' }] } },
      'spec.volumes[0].downwardAPI: Required value: one of fieldRef and resourceFieldRef is required',
    ],
    [{ name: 'v', ephemeral: {} }, 'spec.volumes[0].ephemeral.volumeClaimTemplate: Required value'],
    [
      { name: 'v', ephemeral: { volumeClaimTemplate: { spec: { accessModes: ['ReadWriteOnce'] } } } },
      'spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources[storage]: Required value',
    ],
    [
      { name: 'v', iscsi: { targetPortal: 'p', iqn: 'x', lun: 0 } },
      'spec.volumes[0].iscsi.iqn: Invalid value: "x": must be valid format starting with iqn, eui, or naa',
    ],
    [{ name: 'v', csi: { driver: 'a_b' } }, /^spec\.volumes\[0\]\.csi\.driver: Invalid value: "a_b": a lowercase/],
  ])('refuses %j', (volume, message) => {
    const errors = errorsOf({ serviceAccountName: 'x', volumes: [volume] });
    if (typeof message === 'string') expect(errors).toContain(message);
    else expect(errors.join('\n')).toMatch(message);
  });

  it('have names of their own', () => {
    expect(errorsOf({ volumes: [{ name: 'v' }, { name: 'v' }] })).toEqual([
      'spec.volumes[1].name: Duplicate value: "v"',
    ]);
  });

  it('cannot have a token of no account', () => {
    const volumes = [{ name: 'v', projected: { sources: [{ serviceAccountToken: { path: 't' } }] } }];
    expect(errorsOf({ volumes })).toEqual([
      'spec.volumes[0].projected.sources[0].serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not set',
    ]);
  });
});
