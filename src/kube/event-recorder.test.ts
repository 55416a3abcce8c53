import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ManualClock, seededRandom, silentLogger } from '../env/test.ts';
import { InProcessApi } from '../../test/support/in-process.ts';
import { Client } from './client.ts';
import type { CoreEvent } from './event-correlator.ts';
import { EventRecorder, type EventTarget } from './event-recorder.ts';
import { InProcessTransport } from './in-process-transport.ts';
import type { Resource } from './resource.ts';
import { type Transport, TransportError, type TransportRequest, type TransportResponse } from './transport.ts';

const never = new AbortController().signal;
const events: Resource<CoreEvent> = { group: '', version: 'v1', plural: 'events', kind: 'Event', namespaced: true };
let server: InProcessApi;
let admin: Client;

beforeAll(async () => {
  server = await InProcessApi.start();
  admin = new Client(
    new InProcessTransport((request) => server.core.handle(request), { user: 'a', groups: ['system:masters'] }),
    'test',
  );
});
afterAll(() => server.stop());

async function settle(): Promise<void> {
  for (let turn = 0; turn < 12; turn++) await new Promise((resolve) => setImmediate(resolve));
}

type Handler = (request: TransportRequest) => Promise<TransportResponse>;

let nameCount = 0;

/** A recorder at work, whose requests can be tampered with. */
function recording() {
  const inner = new InProcessTransport((request) => server.core.handle(request), {
    user: 'r',
    groups: ['system:masters'],
  });
  const world = {
    handle: ((request) => inner.send(request)) as Handler,
    requests: [] as string[],
    lines: [] as string[],
  };
  const transport: Transport = {
    send: (request) => {
      world.requests.push(`${request.method} ${request.path.split('?')[0]?.split('/').slice(-1)[0]?.split('.')[0]}`);
      return world.handle(request);
    },
    close: () => undefined,
  };
  const write = (message: string): void => void world.lines.push(message);
  const log = { ...silentLogger, warn: write, error: write, child: () => log };
  const clock = new ManualClock();
  const client = new Client(transport, 'test');
  const recorder = new EventRecorder<string>({
    client,
    env: { clock, random: seededRandom(1), log },
    component: 'godwit',
    host: 'node-1',
  });
  const name = `vm-${nameCount++}`;
  const object: EventTarget = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { namespace: 'default', name, uid: `uid-${name}` },
  };
  const stop = new AbortController();
  const start = (): Promise<void> => recorder.run(stop.signal);
  const written = async (): Promise<CoreEvent[]> => {
    const { items } = await admin.list(
      events,
      { namespace: 'default', fieldSelector: `involvedObject.name=${name}` },
      never,
    );
    return items;
  };
  return Object.assign(world, { recorder, object, clock, stop, start, written, inner });
}

describe('an event recorder', () => {
  it('writes an event as client-go does', async () => {
    const { recorder, object, start, stop, written, clock } = recording();
    const ended = start();
    recorder.event(object, 'Normal', 'Migrating', 'on its way to node-2');
    await settle();
    // The time, and less than a millisecond that is this recorder's own.
    const nanos = BigInt(clock.now()) * 1_000_000n + BigInt(Math.floor(seededRandom(1).number() * 1_000_000));
    expect(await written()).toEqual([
      {
        apiVersion: 'v1',
        kind: 'Event',
        metadata: expect.objectContaining({
          name: `${object.metadata.name}.${nanos.toString(16)}`,
          namespace: 'default',
        }) as object,
        involvedObject: {
          apiVersion: 'kubevirt.io/v1',
          kind: 'VirtualMachine',
          namespace: 'default',
          name: object.metadata.name,
          uid: object.metadata.uid,
        },
        type: 'Normal',
        reason: 'Migrating',
        message: 'on its way to node-2',
        source: { component: 'godwit', host: 'node-1' },
        reportingComponent: 'godwit',
        reportingInstance: 'node-1',
        firstTimestamp: '2026-01-01T00:00:00Z',
        lastTimestamp: '2026-01-01T00:00:00Z',
        count: 1,
      },
    ]);
    stop.abort();
    await ended;
  });

  it('raises the count of one that repeats, in one write for all that come before it', async () => {
    const { recorder, object, start, stop, written, clock, requests } = recording();
    const ended = start();
    for (let time = 0; time < 5; time++) recorder.event(object, 'Normal', 'Migrating', 'on its way');
    await settle();
    clock.advance(60_000);
    for (let time = 0; time < 5; time++) recorder.event(object, 'Normal', 'Migrating', 'on its way');
    await settle();
    const all = await written();
    expect(all).toHaveLength(1);
    expect(all[0]).toMatchObject({
      count: 10,
      firstTimestamp: '2026-01-01T00:00:00Z',
      lastTimestamp: '2026-01-01T00:01:00Z',
    });
    expect(requests).toEqual(['POST events', `PATCH ${object.metadata.name}`]);
    stop.abort();
    await ended;
  });

  it('gives every event a name of its own, and a valid one', async () => {
    const { recorder, object, start, stop, written } = recording();
    const ended = start();
    for (const reason of ['A', 'B', 'C']) recorder.event(object, 'Warning', reason, 'same moment');
    recorder.event(
      { ...object, metadata: { ...object.metadata, name: 'system:node:N_1' } },
      'Warning',
      'D',
      'odd name',
    );
    await settle();
    expect(new Set((await written()).map((event) => event.metadata.name)).size).toBe(3);
    const odd = await admin.list(
      events,
      { namespace: 'default', fieldSelector: 'involvedObject.name=system:node:N_1' },
      never,
    );
    expect(odd.items[0]?.metadata.name).toMatch(/^[0-9a-f-]{36}$/);
    stop.abort();
    await ended;
  });

  it('writes an event again that the server has forgotten', async () => {
    const { recorder, object, start, stop, written } = recording();
    const ended = start();
    recorder.event(object, 'Normal', 'Migrating', 'on its way');
    await settle();
    const [event] = await written();
    await admin.delete(events, 'default', event?.metadata.name ?? '', never);
    recorder.event(object, 'Normal', 'Migrating', 'on its way');
    await settle();
    expect((await written())[0]).toMatchObject({ metadata: { name: event?.metadata.name }, count: 2 });
    stop.abort();
    await ended;
  });

  it('tries again when nobody answers, and recognizes what was done without its knowing', async () => {
    const world = recording();
    const { recorder, object, start, stop, written, clock } = world;
    let failures = 2;
    world.handle = async (request) => {
      const response = await world.inner.send(request);
      if (failures-- > 0) throw new TransportError('the answer was lost');
      return response;
    };
    const ended = start();
    recorder.event(object, 'Normal', 'Migrating', 'on its way');
    await settle();
    for (let time = 0; time < 4; time++) {
      clock.advance(10_000);
      await settle();
    }
    const all = await written();
    expect(all).toHaveLength(1);
    expect(all[0]).toMatchObject({ count: 1 });
    expect(world.requests.map((request) => request.split(' ')[0])).toEqual(['POST', 'POST', 'POST', 'PATCH']);
    stop.abort();
    await ended;
  });

  it.each([
    [403, 1],
    [422, 1],
    [429, 12],
    [503, 12],
  ])('tries what is answered %i at most %i times', async (status, tries) => {
    const world = recording();
    world.handle = async () => ({ status, headers: {}, body: bodyOf('{}') });
    const ended = world.start();
    world.recorder.event(world.object, 'Normal', 'Migrating', 'on its way');
    for (let time = 0; time < 20; time++) {
      await settle();
      world.clock.advance(10_000);
    }
    expect(world.requests).toHaveLength(tries);
    expect(world.lines.at(-1)).toBe('event not written');
    world.stop.abort();
    await ended;
  });

  it('writes what is left before it ends', async () => {
    const { recorder, object, start, stop, written } = recording();
    for (const reason of ['A', 'B', 'C']) recorder.event(object, 'Normal', reason, 'early');
    stop.abort();
    await start();
    expect((await written()).map((event) => event.reason).sort()).toEqual(['A', 'B', 'C']);
  });

  it('writes many at once of what is left: there is not much time', async () => {
    const world = recording();
    const answers: (() => void)[] = [];
    world.handle = async (request) => {
      await new Promise<void>((resolve) => answers.push(resolve));
      return world.inner.send(request);
    };
    for (let index = 0; index < 20; index++) world.recorder.event(world.object, 'Normal', `A${index}`, 'late');
    world.stop.abort();
    const ended = world.start();
    await settle();
    expect(answers).toHaveLength(8);
    for (let next = answers.shift(); next; next = answers.shift()) {
      next();
      await settle();
    }
    await ended;
    expect(await world.written()).toHaveLength(20);
  });

  it('writes the one again that was under way when it was stopped', async () => {
    const world = recording();
    const { recorder, object, start, stop, written } = world;
    world.handle = () => new Promise(() => undefined);
    const ended = start();
    recorder.event(object, 'Normal', 'A', 'stuck');
    recorder.event(object, 'Normal', 'B', 'waits');
    await settle();
    world.handle = (request) => world.inner.send(request);
    stop.abort();
    await ended;
    expect((await written()).map((event) => event.reason).sort()).toEqual(['A', 'B']);
  });

  it.each(['cuts', 'hangs'])('does not hold up the end where the server %s', async (how) => {
    const world = recording();
    world.handle = () => (how === 'cuts' ? Promise.reject(new TransportError('gone')) : new Promise(() => undefined));
    for (let index = 0; index < 20; index++) world.recorder.event(world.object, 'Normal', `A${index}`, 'late');
    world.stop.abort();
    const ended = world.start();
    await settle();
    world.clock.advance(5000);
    await ended;
    expect(world.requests).toHaveLength(8);
  });

  it('holds a limited number, and says that it drops the rest', async () => {
    const world = recording();
    const { recorder, object, lines, start, stop } = world;
    world.handle = () => Promise.reject(new TransportError('gone'));
    for (let index = 0; index < 10_001; index++) {
      recorder.event({ ...object, metadata: { ...object.metadata, name: `many-${index}` } }, 'Normal', 'A', 'x');
    }
    expect(lines).toEqual(['too many events, some are dropped']);
    stop.abort();
    await start();
    const said = ['event not written', 'events not written before the end', 'events were dropped'];
    expect([...new Set(lines.slice(1))]).toEqual(said);
  });

  it('writes events about many at the same time, but one after the other what is said of one again', async () => {
    const world = recording();
    const { recorder, object, start, stop, inner } = world;
    const held: (() => void)[] = [];
    world.handle = async (request) => {
      await new Promise<void>((resolve) => held.push(resolve));
      return inner.send(request);
    };
    const ended = start();
    const about = (index: number): EventTarget => ({
      ...object,
      metadata: { ...object.metadata, name: `some-${index}` },
    });
    for (let index = 0; index < 20; index++) recorder.event(about(index), 'Normal', 'A', 'x');
    await settle();
    expect(world.requests).toHaveLength(8);
    recorder.event(about(0), 'Normal', 'A', 'x');
    for (let index = 1; index < 8; index++) held[index]?.();
    await settle();
    // Fifteen of the twenty: the first is still under way, and so nobody says it again.
    expect(world.requests).toEqual(Array.from({ length: 15 }, () => 'POST events'));
    world.handle = (request) => inner.send(request);
    for (const release of held) release();
    await settle();
    expect(world.requests.filter((request) => request === 'POST events')).toHaveLength(20);
    expect(world.requests.filter((request) => request.startsWith('PATCH'))).toHaveLength(1);
    stop.abort();
    await ended;
  });

  it('never throws', () => {
    const { recorder, lines } = recording();
    recorder.event({ metadata: { name: 'x' } } as EventTarget, 'Normal', 'A', 'no kind');
    recorder.event({ apiVersion: 'v1', kind: 'Pod', metadata: {} }, 'Normal', 'A', 'no name');
    recorder.event(undefined as unknown as EventTarget, 'Normal', 'A', 'nothing');
    recorder.event(
      { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'x' } },
      'Normal',
      'A',
      undefined as unknown as string,
    );
    expect(lines).toEqual(Array.from({ length: 4 }, () => 'event not recorded'));
  });

  it('shortens what is too long', async () => {
    const { recorder, object, start, stop, written } = recording();
    recorder.event(object, 'Normal', 'A', 'x'.repeat(5000));
    stop.abort();
    await start();
    expect((await written())[0]?.message).toBe(`${'x'.repeat(1021)}...`);
  });
});

async function* bodyOf(text: string): AsyncGenerator<string> {
  yield text;
}
