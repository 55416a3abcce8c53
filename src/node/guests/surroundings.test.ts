import { beforeEach, describe, expect, it } from 'vitest';
import type { KubeObject } from '../../api/meta.ts';
import type { Client } from '../../kube/client.ts';
import type { Resource } from '../../kube/resource.ts';
import type { SharedInformers } from '../../kube/shared-informers.ts';
import type { GuestNote } from './guest-notes.ts';
import { Surroundings } from './surroundings.ts';

/** What is watched, and what the server says, by kind. */
type World = Record<string, KubeObject[]>;

const { signal } = new AbortController();
const note: GuestNote = {
  podUID: 'pod',
  podName: 'launcher',
  namespace: 'shop',
  name: 'web',
  guestUID: 'guest',
  atMs: 0,
};
const pod = object('Pod', 'launcher', 'pod', {
  ownerReferences: [
    { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', name: 'web', uid: 'guest', controller: true },
  ],
});

function object(kind: string, name: string, uid: string, metadata: object = {}, rest: object = {}): KubeObject {
  return { apiVersion: 'v1', kind, metadata: { namespace: 'shop', name, uid, ...metadata }, ...rest };
}

function guest(resourceVersion: string, uid = 'guest', status: object = {}): KubeObject {
  return object('VirtualMachineInstance', 'web', uid, { resourceVersion }, { status });
}

let watched: World;
let served: World;
let surroundings: Surroundings;
beforeEach(() => {
  watched = { Pod: [pod], VirtualMachineInstance: [guest('9')] };
  served = {};
  const informers = {
    of: ({ kind }: Resource, indexes: Record<string, (each: KubeObject) => readonly string[]>) => ({
      list: () => watched[kind] ?? [],
      byIndex: (index: string, value: string) =>
        (watched[kind] ?? []).filter((each) => indexes[index]?.(each).includes(value)),
    }),
  };
  const client = {
    find: async ({ kind }: Resource, _: string, name: string) =>
      served[kind]?.find(({ metadata }) => metadata.name === name),
    list: async ({ kind }: Resource) => ({ items: served[kind] ?? [] }),
  };
  surroundings = new Surroundings({
    node: 'node-a',
    client: client as unknown as Client,
    informers: informers as unknown as SharedInformers,
  });
});

function isToBeHeard(...unheard: readonly string[]): void {
  watched['KubeVirt'] = [
    object('KubeVirt', 'kubevirt', 'kv', {}, { status: { restoration: { id: 'first', unheard } } }),
  ];
}

describe('what is watched', () => {
  it.each([
    ['never restored', undefined],
    ['waiting for others only', ['node-b']],
  ])('is believed where data is %s', async (_, unheard) => {
    if (unheard) isToBeHeard(...unheard);
    expect(await surroundings.pod('pod', note, signal)).toBe(pod);
    expect(await surroundings.guest('pod', undefined, note, signal)).toBe(watched['VirtualMachineInstance']?.[0]);
  });

  it('is not believed while the node is to be heard since a restore, nor is what was written', async () => {
    surroundings.wrote(guest('10') as never);
    isToBeHeard('node-a');
    expect(await surroundings.pod('pod', undefined, signal)).toBeUndefined();
    expect(await surroundings.guest('pod', undefined, note, signal)).toBeUndefined();
    served = { Pod: [{ ...pod }], VirtualMachineInstance: [guest('3')] };
    expect(await surroundings.pod('pod', undefined, signal)).toBe(served['Pod']?.[0]);
    expect(await surroundings.guest('pod', undefined, undefined, signal)).toBe(served['VirtualMachineInstance']?.[0]);
    served = { VirtualMachineInstance: [guest('3', 'another')] };
    expect(await surroundings.guest('pod', undefined, note, signal)).toBeUndefined();
  });
});

it.each(['holder', 'successor'])(
  'a pod of which nothing is known is found as the %s in a restored record',
  async (part) => {
    watched = {};
    served = { VirtualMachineInstance: [guest('3', 'guest', { rightToRun: { [part]: { podUID: 'pod' } } })] };
    expect(await surroundings.guest('pod', undefined, undefined, signal)).toBeUndefined();
    isToBeHeard('node-a');
    expect(await surroundings.guest('pod', undefined, undefined, signal)).toBe(served['VirtualMachineInstance']?.[0]);
    expect(await surroundings.guest('other', undefined, undefined, signal)).toBeUndefined();
  },
);
