import { beforeEach, describe, expect, it } from 'vitest';
import { testEnv } from '../../env/test.ts';
import { Client } from '../../kube/client.ts';
import type { Resource } from '../../kube/resource.ts';
import { failure, ScriptedTransport, ScriptedWatch, settle, thing } from '../../kube/scripted-transport.fixture.ts';
import { Departures, type Leaving } from './departures.ts';

const resource = (plural: string): Resource => ({ group: '', version: 'v1', plural, kind: plural, namespaced: true });
const leaving = (plural: string, count: number, version = '5'): Leaving => ({
  resource: resource(plural),
  count,
  version,
});
const deleted = { type: 'DELETED', object: thing('a', 6) };

let watches: Map<string, ScriptedWatch>;
let transport: ScriptedTransport;
let departures: Departures;
let empty: string[];

beforeEach(() => {
  watches = new Map();
  empty = [];
  transport = new ScriptedTransport(({ path }) => {
    const body = new ScriptedWatch();
    watches.set(/\/([a-z]+)\?/.exec(path)?.[1] ?? '', body);
    return { body };
  });
  departures = new Departures({
    env: testEnv(),
    client: new Client(transport, 'test'),
    onEmpty: (namespace) => empty.push(namespace),
  });
});

async function depart(plural: string, count: number): Promise<void> {
  for (let index = 0; index < count; index++) watches.get(plural)?.send(deleted);
  await settle();
}

describe('departures', () => {
  it('are watched from where they were counted, and told of once, when all have gone', async () => {
    departures.expect('room', [leaving('pods', 2), leaving('secrets', 1, '7')]);
    await settle();
    expect(transport.paths).toEqual([
      '/api/v1/namespaces/room/pods?resourceVersion=5&watch=true',
      '/api/v1/namespaces/room/secrets?resourceVersion=7&watch=true',
    ]);
    watches.get('pods')?.send({ type: 'MODIFIED', object: thing('a', 6) });
    await depart('pods', 1);
    await depart('secrets', 1);
    expect(empty).toEqual([]);
    await depart('pods', 1);
    expect(empty).toEqual(['room']);
    expect([...watches.values()].map(({ isClosed }) => isClosed)).toEqual([true, true]);
    await depart('pods', 1);
    expect(empty).toEqual(['room']);
  });

  it('are not watched where nothing is left, or too much', async () => {
    departures.expect('room', []);
    departures.expect(
      'hall',
      Array.from({ length: 21 }, (_, index) => leaving(`kind${index}`, 1)),
    );
    await settle();
    expect(transport.requests).toEqual([]);
  });

  it('that were expected before are forgotten', async () => {
    departures.expect('room', [leaving('pods', 1)]);
    await settle();
    const before = watches.get('pods');
    departures.expect('room', [leaving('pods', 2, '9')]);
    await settle();
    expect(before?.isClosed).toBe(true);
    await depart('pods', 1);
    expect(empty).toEqual([]);
    await depart('pods', 1);
    expect(empty).toEqual(['room']);
  });

  it('may go unnoticed: nobody relies on them', async () => {
    departures.expect('room', [leaving('pods', 1)]);
    await settle();
    watches.get('pods')?.end('broken');
    await settle();
    transport.script = () => failure(410, 'Expired');
    departures.expect('hall', [leaving('pods', 1)]);
    await settle();
    expect(empty).toEqual([]);
  });

  it('are not watched any more in the end', async () => {
    departures.expect('room', [leaving('pods', 1)]);
    departures.expect('hall', [leaving('secrets', 1)]);
    await settle();
    await departures.stop();
    expect([...watches.values()].map(({ isClosed }) => isClosed)).toEqual([true, true]);
    expect(empty).toEqual([]);
  });
});
