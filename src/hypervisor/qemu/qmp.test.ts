import { assert, asyncProperty, uint8Array } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../env/test.ts';
import { FakeMonitor } from './fake-monitor.fixture.ts';
import { QmpClient, type QmpOptions } from './qmp.ts';
import type { QmpEvent } from './qmp-message.ts';
import { QmpError } from './qmp-error.ts';

interface Scene {
  readonly monitor: FakeMonitor;
  readonly clock: ManualClock;
  readonly client: QmpClient;
  readonly events: QmpEvent[];
}

async function connect(monitor = new FakeMonitor(), options: Partial<QmpOptions> = {}): Promise<Scene> {
  const clock = new ManualClock();
  const events: QmpEvent[] = [];
  const onEvent = (event: QmpEvent): void => void events.push(event);
  const client = await QmpClient.connect({ clock, connector: monitor, path: '/monitor', onEvent, ...options });
  return { monitor, clock, client, events };
}

/** What a command that must fail fails with. */
async function failure(command: Promise<unknown>): Promise<QmpError> {
  try {
    await command;
  } catch (error) {
    if (error instanceof QmpError) return error;
    throw error;
  }
  throw new Error('the command was expected to fail');
}

describe('connecting to a monitor', () => {
  it('takes part in out-of-band commands where they are offered', async () => {
    const { monitor, client } = await connect();
    expect(monitor.commands[0]).toMatchObject({ execute: 'qmp_capabilities', arguments: { enable: ['oob'] } });
    expect(client.hasOutOfBand).toBe(true);
    expect(client.version).toEqual({ major: 7, minor: 2, micro: 22 });
  });

  it('does without them where they are not', async () => {
    const { monitor, client } = await connect(new FakeMonitor([]));
    expect(monitor.commands[0]).toMatchObject({ arguments: { enable: [] } });
    expect(await failure(client.execute('migrate-pause', {}, { isOutOfBand: true }))).toMatchObject({
      code: 'CommandFailed',
      mayTakeEffect: false,
    });
  });

  it('says where nobody listens', async () => {
    const error = await failure(connect(undefined, { path: '/elsewhere' }));
    expect(error).toMatchObject({ code: 'Disconnected' });
    expect(error.message).toContain('/elsewhere');
  });

  it('gives up on one that does not greet', async () => {
    const monitor = new FakeMonitor();
    monitor.greet = () => undefined;
    const clock = new ManualClock();
    const connecting = failure(QmpClient.connect({ clock, connector: monitor, path: '/monitor' }));
    await Promise.resolve();
    clock.advance(30_000);
    expect(await connecting).toMatchObject({ code: 'TimedOut' });
    expect(monitor.isOpen).toBe(false);
  });
});

describe('commands', () => {
  it('gives each caller its own answer, in whatever order answers come', async () => {
    const { monitor, client } = await connect();
    const [first, second] = [client.execute('query-status'), client.execute('query-name', { verbose: true })];
    monitor.answer(monitor.idOf('query-name'), { name: 'b' });
    monitor.answer(monitor.idOf('query-status'), { status: 'running' });
    expect([await first, await second]).toEqual([{ status: 'running' }, { name: 'b' }]);
    expect(monitor.commands.at(-1)).toMatchObject({ arguments: { verbose: true } });
  });

  it('passes on the class and the words of a refusal', async () => {
    const { monitor, client } = await connect();
    const refused = failure(client.execute('device_del', { id: 'x' }));
    const error = { class: 'DeviceNotFound', desc: "Device 'x' not found" };
    monitor.say(`${JSON.stringify({ error, id: monitor.idOf('device_del') })}\n`);
    expect(await refused).toMatchObject({
      code: 'CommandFailed',
      errorClass: 'DeviceNotFound',
      description: "Device 'x' not found",
      message: "device_del: Device 'x' not found",
    });
  });

  it('stays in step after a timeout: the late answer is dropped', async () => {
    const { monitor, clock, client } = await connect();
    const slow = failure(client.execute('query-migrate', undefined, { timeoutMs: 100 }));
    clock.advance(100);
    expect(await slow).toMatchObject({ code: 'TimedOut', mayTakeEffect: true });
    const next = client.execute('query-status');
    monitor.answer(monitor.idOf('query-migrate'), { status: 'late' });
    monitor.answer(monitor.idOf('query-status'), { status: 'running' });
    expect(await next).toEqual({ status: 'running' });
  });

  it('keeps QEMU reading: no more are under way than it takes, and what waits can be taken back', async () => {
    const { monitor, clock, client } = await connect();
    const all = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) =>
      client.execute(name, undefined, { timeoutMs: name === 'e' ? 50 : 1000 }),
    );
    expect(monitor.names()).toEqual(['a', 'b', 'c', 'd']);
    const urgent = client.execute('urgent', undefined, { isOutOfBand: true });
    expect(monitor.names().at(-1)).toBe('oob urgent');
    monitor.answer(monitor.idOf('urgent'));
    await urgent;
    const never = failure(all[4] ?? Promise.resolve());
    clock.advance(50);
    expect(await never).toMatchObject({ code: 'TimedOut', mayTakeEffect: false });
    monitor.answer(monitor.idOf('b'));
    expect(monitor.names().at(-1)).toBe('f');
    for (const name of ['a', 'c', 'd', 'f']) monitor.answer(monitor.idOf(name));
    await Promise.all(all.filter((_, index) => index !== 4));
  });

  it('counts what has timed out as under way until it is answered', async () => {
    const { monitor, clock, client } = await connect();
    const lost = ['a', 'b', 'c', 'd'].map((name) => failure(client.execute(name, undefined, { timeoutMs: 10 })));
    clock.advance(10);
    await Promise.all(lost);
    const next = client.execute('next');
    expect(monitor.names()).not.toContain('next');
    monitor.answer(monitor.idOf('c'));
    monitor.answer(monitor.idOf('next'), 1);
    expect(await next).toBe(1);
  });

  it('refuses more than anybody can mean', async () => {
    const { client } = await connect();
    const all = Array.from({ length: 261 }, (_, index) => failure(client.execute(`c${index}`)));
    expect(await all[260]).toMatchObject({ code: 'Overloaded', mayTakeEffect: false });
    client.close();
    await Promise.all(all);
  });
});

describe('events', () => {
  const event = {
    event: 'STOP',
    timestamp: { seconds: 1_700_000_000, microseconds: 250_500 },
  };

  it("come with QEMU's own time, to the microsecond", async () => {
    const { monitor, events } = await connect();
    monitor.say(`${JSON.stringify(event)}\r\n${JSON.stringify({ ...event, event: 'RESUME', data: { a: 1 } })}\n`);
    expect(events).toEqual([
      { name: 'STOP', data: {}, atMs: 1_700_000_000_250.5 },
      { name: 'RESUME', data: { a: 1 }, atMs: 1_700_000_000_250.5 },
    ]);
  });

  it('may come in pieces, and without a time', async () => {
    const { monitor, events } = await connect();
    for (const byte of Buffer.from(
      `${JSON.stringify({ ...event, data: { name: 'ü' }, timestamp: { seconds: -1, microseconds: -1 } })}\n`,
    ))
      monitor.say(Uint8Array.of(byte));
    expect(events).toEqual([{ name: 'STOP', data: { name: 'ü' }, atMs: undefined }]);
  });

  it('are not heard once the connection is closed', async () => {
    const { monitor, client, events } = await connect(undefined, {
      onEvent: (heard) => {
        events.push(heard);
        client.close();
      },
    });
    monitor.say(`${JSON.stringify(event)}\n${JSON.stringify(event)}\n`);
    expect(events).toHaveLength(1);
  });
});

describe('the end of a connection', () => {
  it('rejects what waits, and says what may have happened', async () => {
    const { monitor, client } = await connect();
    const all = ['a', 'b', 'c', 'd', 'e'].map((name) => failure(client.execute(name)));
    monitor.hangUp(new Error('ECONNRESET'));
    const errors = await Promise.all(all);
    expect(errors.map(({ code, mayTakeEffect }) => [code, mayTakeEffect])).toEqual([
      ...Array.from({ length: 4 }, () => ['Disconnected', true]),
      ['Disconnected', false],
    ]);
    expect((await client.closed).message).toContain('ECONNRESET');
    expect(await failure(client.execute('f'))).toMatchObject({ code: 'Disconnected' });
  });

  it.each([
    ['what is no JSON', 'hello\n', 'no JSON'],
    ['what is no object', '[1]\n', 'no object'],
    ['what is no message', '{"hello": 1}\n', 'no message'],
    ['an answer to nothing', '{"return": {}, "id": 9007199254740991}\n', 'nobody asked'],
    ['an answer by an id that was never a number', '{"return": {}, "id": "__proto__"}\n', 'no message'],
    ['an error without an id', '{"error": {"class": "GenericError", "desc": "Invalid JSON"}}\n', 'Invalid JSON'],
    ['an event of another shape', '{"event": "STOP", "data": 3}\n', 'no message'],
    ['bytes that are no text', Uint8Array.of(0x22, 0xff, 0x22, 0x0a), 'cannot be read'],
    ['a line without an end', new Uint8Array(16 * 1024 * 1024 + 1).fill(0x20), 'longer than'],
  ])('follows from %s', async (_, text, complaint) => {
    const { monitor, client } = await connect();
    const waiting = failure(client.execute('query-status'));
    monitor.say(text);
    const error = await waiting;
    expect(error).toMatchObject({ code: 'Protocol' });
    expect(error.message).toContain(complaint);
    expect(monitor.isOpen).toBe(false);
  });

  it('does not follow from an answer to whoever was connected before, and which is none to what is asked now', async () => {
    const clock = new ManualClock(5);
    const { monitor, client } = await connect(undefined, { clock });
    const answer = client.execute('query-status');
    monitor.say(
      '{"return": {"status": "stale"}, "id": 2}\n{"error": {"class": "GenericError", "desc": "no"}, "id": 3}\n',
    );
    monitor.answer(monitor.idOf('query-status'), { status: 'running' });
    expect(await answer).toEqual({ status: 'running' });
  });

  it('is all that any bytes can bring about', async () => {
    await assert(
      asyncProperty(uint8Array({ maxLength: 200 }), async (bytes) => {
        const { monitor, client } = await connect();
        monitor.say(bytes);
        client.close();
        expect(['Protocol', 'Disconnected']).toContain((await client.closed).code);
      }),
    );
  });
});

describe('the transcript', () => {
  it('keeps the last lines in both directions, short, and no secrets', async () => {
    const { monitor, client } = await connect(undefined, { transcriptLines: 3 });
    const command = client.execute('object-add', { data: 'pass' }, { isSecret: true });
    monitor.answer(monitor.idOf('object-add'), 'x'.repeat(5000));
    await command;
    const lines = client.transcript();
    expect(lines.map(({ direction }) => direction)).toEqual(['received', 'sent', 'received']);
    expect(lines[1]?.text).toContain('object-add');
    expect(JSON.stringify(lines)).not.toContain('pass');
    expect(lines[2]?.text.length).toBeLessThan(2200);
  });
});
