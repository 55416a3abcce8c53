import { afterAll, beforeAll, expect, it } from 'vitest';
import type { KubeObject } from '../api/meta.ts';
import { ManualClock, seededRandom, silentLogger } from '../env/test.ts';
import { InProcessApi } from '../../test/support/in-process.ts';
import { Client } from './client.ts';
import { Controller } from './controller.ts';
import { EventRecorder } from './event-recorder.ts';
import { InProcessTransport } from './in-process-transport.ts';
import { Informer } from './informer.ts';
import { LeaderElector } from './leader-election.ts';
import { Manager } from './manager.ts';
import { keyOf, type Resource, splitKey } from './resource.ts';

/** All of it together: two replicas of a program whose controller labels every ConfigMap with the name of who did it. */

const never = new AbortController().signal;
const namespaces: Resource = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', namespaced: false };
const configMaps: Resource = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', namespaced: true };
const clock = new ManualClock();
let server: InProcessApi;

beforeAll(async () => {
  server = await InProcessApi.start({ env: { clock } });
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'replicas' } };
  await clientOf('user').create(namespaces, namespace, never);
});
afterAll(() => server.stop());

function clientOf(user: string): Client {
  const identity = { user, groups: ['system:masters'] };
  return new Client(new InProcessTransport((request) => server.core.handle(request), identity), user);
}

/** Lets virtual time pass until something is so. How many turns of the event loop that takes is nobody's business. */
async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 1000; tries++) {
    if (await isSo()) return;
    clock.advance(250);
    for (let turn = 0; turn < 12; turn++) await new Promise((resolve) => setImmediate(resolve));
  }
  throw new Error(`it never came to be that ${what}`);
}

/** Lets virtual time pass until a promise has settled. */
async function settled(promise: Promise<void>): Promise<void> {
  let isSettled = false;
  const mark = (): void => void (isSettled = true);
  promise.then(mark, mark);
  await until('it ended', () => isSettled);
  await promise;
}

class Replica {
  readonly stop = new AbortController();
  readonly ended: Promise<void>;
  readonly informer: Informer<KubeObject>;

  constructor(name: string) {
    const client = clientOf(name);
    const env = { clock, random: seededRandom(name.charCodeAt(0)), log: silentLogger };
    this.informer = new Informer({ client, resource: configMaps, env, namespace: 'replicas' });
    const events = new EventRecorder<string>({ client, env, component: name });
    const controller = new Controller({
      name: 'labels',
      env,
      workers: 2,
      reconcile: async (key, signal) => {
        const object = this.informer.get(key);
        if (!object || object.metadata.labels?.by !== undefined) return;
        const { namespace, name: objectName } = splitKey(key);
        const body = { metadata: { labels: { by: name } } };
        await client.patch(configMaps, namespace, objectName, { type: 'merge', body }, signal);
        events.event(object, 'Normal', 'Labelled', `labelled by ${name}`);
      },
    });
    this.informer.onChange(({ object }) => controller.enqueue(keyOf(object)));
    const elector = new LeaderElector({
      client,
      env,
      namespace: 'replicas',
      name: 'labels',
      identity: name,
      events,
    });
    this.ended = new Manager({ env, elector }).add(this.informer, events, controller).run(this.stop.signal);
  }
}

async function create(name: string): Promise<void> {
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'replicas', name } };
  await clientOf('user').create(configMaps, object, never);
}

async function doneBy(name: string): Promise<string | undefined> {
  return (await clientOf('user').get(configMaps, 'replicas', name, never)).metadata.labels?.by;
}

async function messages(): Promise<string[]> {
  const events: Resource = { group: '', version: 'v1', plural: 'events', kind: 'Event', namespaced: true };
  const { items } = await clientOf('user').list(events, { namespace: 'replicas' }, never);
  return items.map(({ message }) => message as string).toSorted((x, y) => (x < y ? -1 : 1));
}

it('one replica works, and the other takes over all there is when it stops', async () => {
  await create('first');
  const a = new Replica('a');
  await until('the first is labelled', async () => (await doneBy('first')) !== undefined);
  const b = new Replica('b');
  await until('the other replica knows the first', () => b.informer.size > 0);
  await create('second');
  await until('the second is labelled', async () => (await doneBy('second')) !== undefined);
  expect([await doneBy('first'), await doneBy('second')]).toEqual(['a', 'a']);
  a.stop.abort();
  await settled(a.ended);
  await create('third');
  await until('the third is labelled', async () => (await doneBy('third')) !== undefined);
  expect(await doneBy('third')).toBe('b');
  b.stop.abort();
  await settled(b.ended);
  expect(await messages()).toEqual([
    'a became leader',
    'a stopped leading',
    'b became leader',
    'b stopped leading',
    'labelled by a',
    'labelled by a',
    'labelled by b',
  ]);
});
