import { describe, expect, it } from 'vitest';
import type { JsonObject, KubeObject } from '../../api/meta.ts';
import { configMaps, secrets } from '../../cluster/resources.ts';
import { persistentVolumeClaims } from '../../control/resources.ts';
import type { Resource } from '../../kube/resource.ts';
import type { ResourceQuota } from '../../machinery/quota.ts';
import { type Made, quotaObstacles } from './quotas.ts';

const made = (resource: unknown, name: string, more: JsonObject = {}): Made => ({
  resource: resource as Resource,
  object: { apiVersion: 'v1', kind: 'X', metadata: { name, namespace: 'west' }, ...more } as KubeObject,
});
const claim = (name: string): Made =>
  made(persistentVolumeClaims, name, { spec: { resources: { requests: { storage: '2Gi' } } } });
const ALL = [made(secrets, 'one'), made(secrets, 'two'), made(configMaps, 'settings'), claim('root'), claim('data')];

const quota = (hard: JsonObject, used: JsonObject): ResourceQuota => ({
  apiVersion: 'v1',
  kind: 'ResourceQuota',
  metadata: { name: 'tight', namespace: 'west' },
  spec: { hard },
  status: { hard, used },
});

describe('quotas', () => {
  it.each<[string, ResourceQuota, RegExp | undefined]>([
    ['that count nothing of it', quota({ services: '0' }, {}), undefined],
    ['with room for all of it', quota({ secrets: '3', 'requests.storage': '4Gi' }, { secrets: '1' }), undefined],
    [
      'with room for each, and not for all',
      quota({ secrets: '2' }, { secrets: '1' }),
      /secrets \(2, with 1 of 2 used\)/,
    ],
    [
      'that count what claims ask for',
      quota({ 'requests.storage': '10Gi' }, { 'requests.storage': '7Gi' }),
      /the quota tight .* requests\.storage \(4Gi, with 7Gi of 10Gi used\)/,
    ],
    ['that count objects', quota({ 'count/configmaps': '1' }, { 'count/configmaps': '1' }), /count\/configmaps/],
  ])('%s', (_, tight, what) => {
    const obstacles = quotaObstacles([tight], ALL, 0);
    if (what) expect(obstacles).toEqual([{ what: expect.stringMatching(what), fix: expect.any(String) }]);
    else expect(obstacles).toEqual([]);
  });
});
