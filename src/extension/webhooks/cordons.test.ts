import { beforeEach, describe, expect, it } from 'vitest';
import type { KubeObject } from '../../api/meta.ts';
import type { Client } from '../../kube/client.ts';
import type { Resource } from '../../kube/resource.ts';
import type { SharedInformers } from '../../kube/shared-informers.ts';
import { WatchedCordons } from './cordons.ts';

const { signal } = new AbortController();

/** What the server has, what the watch has told of it, and what was asked about. */
let stored: Map<string, object>;
let told: Set<string>;
let reads: string[];
let scopes: unknown[];
let cordons: WatchedCordons;

beforeEach(() => {
  [stored, told, reads, scopes] = [new Map(), new Set(), [], []];
  const informers = {
    of: (_resource: Resource, _indexes: object, scope: unknown) => {
      scopes.push(scope);
      const get = (name: string): KubeObject | undefined =>
        told.has(name) ? { apiVersion: 'v1', kind: 'Node', metadata: { name } } : undefined;
      return { get, synced: Promise.resolve() };
    },
  } as unknown as SharedInformers;
  const client = {
    find: async (_resource: Resource, _namespace: string, name: string) => {
      reads.push(name);
      const spec = stored.get(name);
      return spec && { metadata: { name }, spec };
    },
  } as unknown as Client;
  cordons = new WatchedCordons(client, informers);
});

describe('which nodes are cordoned', () => {
  it('is watched of those alone', () => expect(scopes).toEqual([{ fieldSelector: 'spec.unschedulable=true' }]));

  it('is believed of the watch', async () => {
    told.add('a');
    expect(await cordons.isCordoned('a', signal)).toBe(true);
    expect(reads).toEqual([]);
  });

  it.each<[string, object | undefined, boolean]>([
    ['one that the watch has not told of yet', { unschedulable: true }, true],
    ['one that is not', {}, false],
    ['one that is not any more', { unschedulable: false }, false],
    ['one that is not there', undefined, false],
  ])('is asked of the server: %s', async (_, spec, isCordoned) => {
    if (spec) stored.set('a', spec);
    expect(await cordons.isCordoned('a', signal)).toBe(isCordoned);
    expect(reads).toEqual(['a']);
  });
});
