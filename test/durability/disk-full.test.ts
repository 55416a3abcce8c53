import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { Answer, Anything } from '../support/api.ts';
import { type Running, startCli } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { HttpClient } from '../support/http-client.ts';
import { configMap } from '../support/objects.ts';
import { SmallDisk } from '../support/small-disk.ts';

/** A disk that is really full: writes are refused and nothing is lost, and when there is room again they go on. */

const PATH = '/api/v1/namespaces/default/configmaps';
const DISK_MIB = 32;
const PAYLOAD = 'x'.repeat(60_000);

let disk: SmallDisk | undefined;
let server: Running | undefined;
let client: HttpClient | undefined;

beforeAll(async () => {
  disk = await SmallDisk.make(DISK_MIB);
});
afterEach(async () => {
  client?.close();
  server?.child.kill('SIGKILL');
  await server?.finished;
});
afterAll(() => disk?.remove());

function start(on: SmallDisk): Running {
  const options = ['--nodes', '0', '--data-dir', `${on.directory}/data`, '--listen', '127.0.0.1:0'];
  server = startCli(['up', ...options], {}, (command, args) => on.wrap(command, args));
  return server;
}

async function serve(on: SmallDisk): Promise<HttpClient> {
  await start(on).printed('kubectl get namespaces');
  const { clusters, users } = parse(readFileSync(on.path('data/kubeconfig'), 'utf8'));
  const decode = (text: string): string => Buffer.from(text, 'base64').toString('utf8');
  client?.close();
  client = new HttpClient({
    url: clusters[0].cluster.server,
    ca: decode(clusters[0].cluster['certificate-authority-data']),
    certificate: decode(users[0].user['client-certificate-data']),
    key: decode(users[0].user['client-key-data']),
  });
  return client;
}

describe('on a full disk', () => {
  it('writes are refused, reads go on, and all that was acknowledged stays', async () => {
    if (!disk) return;
    let api = await serve(disk);
    const acknowledged = new Map<string, Anything>();
    const { metadata } = (await api.request('GET', PATH)).json;
    let stream = await api.watch(`${PATH}?watch=1&resourceVersion=${metadata.resourceVersion}`);
    const seen: Anything[] = [];
    const drain = async (): Promise<void> => {
      await eventually(() =>
        expect(stream.events.filter(({ type }) => type === 'ADDED').length + seen.length).toBeGreaterThanOrEqual(
          acknowledged.size,
        ),
      );
    };
    const create = async (name: string): Promise<Answer> => {
      const answer = await api.request('POST', PATH, { body: configMap(name, { data: { payload: PAYLOAD } }) });
      if (answer.status === 201) acknowledged.set(name, answer.json);
      return answer;
    };
    const check = async (): Promise<void> => {
      const { items } = (await api.request('GET', PATH)).expect(200).json;
      const stored = new Map(
        items.map((item: Anything) => [item.metadata.name, { apiVersion: 'v1', kind: 'ConfigMap', ...item }]),
      );
      for (const [name, object] of acknowledged) expect(stored.get(name)).toEqual(object);
      expect(items.filter((item: Anything) => item.data?.payload !== undefined)).toHaveLength(acknowledged.size);
    };

    for (let round = 0; round < 3; round++) {
      disk.fill(1_000_000);
      let refused = 0;
      for (let index = 0; refused < 20; index++) {
        const answers = await Promise.all([0, 1, 2].map((lane) => create(`round-${round}-${index}-${lane}`)));
        for (const answer of answers.filter(({ status }) => status !== 201)) {
          refused++;
          expect([answer.status, answer.json.reason]).toEqual([500, 'InternalError']);
          expect(answer.json.message).toContain('no space left');
        }
      }
      await check();
      expect((await api.request('GET', '/readyz')).status).toBe(200);
      if (round === 1) {
        // Killed while there is no room; it cannot start either, and says why.
        seen.push(...stream.events);
        server?.child.kill('SIGKILL');
        await server?.finished;
        disk.fill(0);
        const full = await start(disk).finished;
        expect([full.code, full.stderr]).toEqual([1, expect.stringMatching(/^godwit: .*no space left.*\n$/i)]);
        // With so little the storage itself would begin to write.
        disk.fill(300_000);
        const narrow = await start(disk).finished;
        expect([narrow.code, narrow.stderr]).toEqual([
          1,
          expect.stringMatching(/^godwit: .*: no space left in .*data\n$/),
        ]);
        disk.free();
        api = await serve(disk);
        const last = seen.at(-1)?.object.metadata.resourceVersion ?? metadata.resourceVersion;
        stream = await api.watch(`${PATH}?watch=1&resourceVersion=${last}`);
      }
      disk.free();
      expect((await create(`room-again-${round}`)).status).toBe(201);
      await check();
      await drain();
    }
    // Every acknowledged write was told once, in order, and nothing else was.
    const told = [...seen, ...stream.events].map(
      ({ type, object }) => `${type} ${object.metadata.name} ${object.metadata.resourceVersion}`,
    );
    const expected = [...acknowledged.values()]
      .sort((a, b) => Number(a.metadata.resourceVersion) - Number(b.metadata.resourceVersion))
      .map((object) => `ADDED ${object.metadata.name} ${object.metadata.resourceVersion}`);
    expect(told).toEqual(expected);
  }, 120_000);
});
