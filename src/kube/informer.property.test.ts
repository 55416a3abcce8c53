import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { IS_FULL } from '../../test/support/sample.ts';
import { InProcessApi } from '../../test/support/in-process.ts';
import { configMap, makeRoom } from '../../test/support/objects.ts';
import type { KubeObject } from '../api/meta.ts';
import type { Random } from '../env/ports.ts';
import { ManualClock, seededRandom, silentLogger } from '../env/test.ts';
import { Client } from './client.ts';
import type { FaultPlan } from './faults.ts';
import { FaultyTransport } from './faulty-transport.ts';
import { InProcessTransport } from './in-process-transport.ts';
import { Informer, type InformerChange } from './informer.ts';
import { compareVersions } from './resource-version.ts';
import { keyOf, type Resource } from './resource.ts';
import { settle } from './scripted-transport.fixture.ts';
import type { Transport, TransportRequest, TransportResponse } from './transport.ts';

/** Informers against the real API server, through a network that does everything networks do. */

const CONFIG_MAPS: Resource = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', namespaced: true };
const ADMIN = { user: 'kubernetes-admin', groups: ['system:masters'] };
const COLORS = ['red', 'blue', 'green'] as const;

const clock = new ManualClock();
let api: InProcessApi;

beforeAll(async () => {
  // A short memory, so that watches which were cut do find their past gone.
  api = await InProcessApi.start({ env: { clock }, historyChangesMax: 40 });
});
afterAll(() => api.stop());

/** A server from before initial events. */
class OldServer implements Transport {
  readonly #inner: Transport;

  constructor(inner: Transport) {
    this.#inner = inner;
  }

  async send(request: TransportRequest): Promise<TransportResponse> {
    const path = request.path.includes('sendInitialEvents')
      ? `${request.path}&resourceVersionMatch=none`
      : request.path;
    return this.#inner.send({ ...request, path: path.replace('sendInitialEvents=true&', '') });
  }

  close(): void {
    this.#inner.close();
  }
}

/** What a handler believes to be there, and whether it was ever told nonsense. */
class Believer {
  readonly state = new Map<string, KubeObject>();
  /** The newest version ever seen of each object, by its UID. */
  readonly #versions = new Map<string, string>();

  take({ type, object, old }: InformerChange<KubeObject>): void {
    const key = keyOf(object);
    const known = this.state.get(key);
    if (type === 'added') expect(known).toBeUndefined();
    else expect(old).toBe(known);
    if (type === 'deleted') {
      expect(known).toBeDefined();
      expect(object.metadata.uid).toBe(known?.metadata.uid);
      this.state.delete(key);
      return;
    }
    if (type === 'updated') expect(object.metadata.uid).toBe(known?.metadata.uid);
    const { uid = '', resourceVersion = '' } = object.metadata;
    expect(compareVersions(resourceVersion, this.#versions.get(uid) ?? '0')).toBeGreaterThan(0);
    this.#versions.set(uid, resourceVersion);
    this.state.set(key, object);
  }
}

/** Somebody who changes objects all the time. */
class Writer {
  readonly #path: string;
  readonly #random: Random;
  #count = 0;

  constructor(path: string, random: Random) {
    this.#path = path;
    this.#random = random;
  }

  async write(): Promise<void> {
    const name = `object-${Math.floor(this.#random.number() * 12)}`;
    const color = COLORS[Math.floor(this.#random.number() * COLORS.length)] ?? 'red';
    const labels = { color, count: String(this.#count++) };
    const draw = this.#random.number();
    if (draw < 0.3) await api.request('DELETE', `${this.#path}/${name}`);
    else if (draw < 0.6) await api.request('POST', this.#path, { body: configMap(name, { labels }) });
    else {
      const headers = { 'content-type': 'application/merge-patch+json' };
      await api.request('PATCH', `${this.#path}/${name}`, { headers, body: { metadata: { labels } } });
    }
  }
}

const FAULTS = [
  'requestLost',
  'answerLost',
  'unavailable',
  'slow',
  'stale',
  'watchCut',
  'watchExpired',
  'watchDelay',
  'watchDuplicate',
] as const satisfies readonly (keyof FaultPlan)[];

/** A few faults each time, and often: all at once would keep an informer from ever getting anywhere. */
const plans: fc.Arbitrary<Partial<FaultPlan>> = fc
  .record({ faults: fc.subarray([...FAULTS], { maxLength: 4 }), chance: fc.constantFrom(0.05, 0.3) })
  .map(({ faults, chance }) => Object.fromEntries(faults.map((fault) => [fault, chance])));

const stories = fc.record({
  seed: fc.nat(),
  plan: plans,
  isOld: fc.boolean(),
  labelSelector: fc.constantFrom('', 'color=red', 'color!=blue'),
  steps: fc.array(
    fc.oneof(
      { weight: 10, arbitrary: fc.constant('write') },
      { weight: 2, arbitrary: fc.constant('burst') },
      { weight: 6, arbitrary: fc.constantFrom('wait', 'wait longer') },
      { weight: 3, arbitrary: fc.constantFrom('partition', 'lag', 'gap') },
      { weight: 3, arbitrary: fc.constantFrom('heal', 'catch up') },
    ),
    { minLength: 5, maxLength: 80, size: 'max' },
  ),
});

async function pass(ms: number): Promise<void> {
  clock.advance(ms);
  await settle();
}

async function run(story: typeof stories extends fc.Arbitrary<infer S> ? S : never): Promise<void> {
  const random = seededRandom(story.seed);
  const path = await makeRoom(api);
  const namespace = path.split('/')[4] ?? '';
  const server = new InProcessTransport((request) => api.core.handle(request), ADMIN);
  const transport = new FaultyTransport(story.isOld ? new OldServer(server) : server, {
    clock,
    random: seededRandom(story.seed + 1),
    plan: story.plan,
  });
  const informer = new Informer({
    client: new Client(transport, 'test'),
    resource: CONFIG_MAPS,
    env: { clock, random, log: silentLogger },
    namespace,
    labelSelector: story.labelSelector,
    indexes: { color: ({ metadata }) => [metadata.labels?.['color'] ?? 'none', 'any'] },
  });
  const believer = new Believer();
  informer.onChange((change) => believer.take(change));
  const stop = new AbortController();
  const running = informer.run(stop.signal);
  running.catch(() => stop.abort());
  const writer = new Writer(path, random);
  for (const step of story.steps) {
    if (step === 'write') await writer.write().then(settle);
    else if (step === 'burst') for (let count = 0; count < 15; count++) await writer.write();
    else if (step === 'wait') await pass(random.number() * 2_000);
    else if (step === 'wait longer') await pass(random.number() * 60_000);
    else if (step === 'partition') transport.partition();
    else if (step === 'heal') transport.heal();
    else if (step === 'catch up') transport.thaw();
    else if (step === 'gap') {
      transport.plan = { ...story.plan, watchExpired: 1 };
      await writer.write().then(settle);
      transport.plan = story.plan;
    } else transport.freeze(String(api.store.revision - Math.floor(random.number() * 20)));
  }
  transport.calm();
  // Every selector sees this one; once it has come, so has everything before it.
  const last = configMap('the-end', { labels: { color: 'red' } });
  (await api.request('POST', path, { body: last })).expect(201);
  const query = new URLSearchParams({ labelSelector: story.labelSelector });
  const { json } = await api.request('GET', `${path}?${query.toString()}`);
  const expected = new Map<string, KubeObject>(json.items.map((item: KubeObject) => [keyOf(item), item]));
  const end = `${namespace}/the-end`;
  for (let turn = 0; turn < 30 && !informer.get(end) && !stop.signal.aborted; turn++) await pass(10_000);
  stop.abort();
  await running;
  const cached = new Map([...informer.list()].map((object) => [keyOf(object), object]));
  expect(cached).toEqual(expected);
  expect(believer.state).toEqual(cached);
  for (const color of [...COLORS, 'none', 'any']) {
    const found = informer.byIndex('color', color).map(keyOf).sort();
    const matching = [...cached.values()].filter(
      ({ metadata }) => color === 'any' || metadata.labels?.['color'] === color,
    );
    expect(found).toEqual(matching.map(keyOf).sort());
  }
}

describe('an informer behind a bad network', () => {
  it('ends up with what the server has, and has told its handlers the same', async () => {
    await fc.assert(fc.asyncProperty(stories, run), {
      numRuns: IS_FULL ? 1_000 : 60,
    });
  });
});
