import { cpSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openLmdbEngine } from '../apiserver/storage/lmdb-engine.ts';
import type { LogEntry } from '../apiserver/storage/port.ts';
import { seededRandom } from '../env/test.ts';
import { backup } from './backup.ts';
import { renewRestoredData } from './restored-data.ts';

const text = (object: object, revision: number): string =>
  JSON.stringify({ ...object, metadata: { resourceVersion: String(revision) } });
const entry = (revision: number, bucket: string, key: string): LogEntry => ({
  revision,
  type: 'put',
  bucket,
  key,
  text: text({ kind: bucket, spec: {} }, revision),
  previous: 0,
});

const random = seededRandom(1);
const clock = { now: () => Date.UTC(2026, 10, 1) };
let below = '';
let directory = '';
let printed: string[] = [];
const print = (line: string): void => void printed.push(line);

beforeEach(async () => {
  below = mkdtempSync(join(tmpdir(), 'godwit-test-'));
  directory = join(below, 'cluster');
  printed = [];
  await start(directory);
  const engine = await openLmdbEngine(join(directory, 'data'));
  await engine.commit(
    [entry(2, 'nodes', 'node-b'), entry(3, 'nodes', 'node-a'), entry(4, 'kubevirts.kubevirt.io', 'kubevirt/kubevirt')],
    [],
  );
  await engine.close();
});
afterEach(() => rmSync(below, { recursive: true, force: true }));

async function loaded(where: string): Promise<LogEntry[]> {
  const engine = await openLmdbEngine(join(where, 'data'));
  const entries: LogEntry[] = [];
  await engine.load((each) => entries.push(each));
  await engine.close();
  return entries;
}

async function start(where: string, isRestored = false): Promise<void> {
  printed.push(...(await renewRestoredData(where, { isRestored, random, clock })));
}

describe('data that a control plane starts from', () => {
  it('is left as it is where it was, also below another name', async () => {
    await start(directory);
    renameSync(directory, join(below, 'moved'));
    await start(join(below, 'moved'));
    expect(printed).toEqual([]);
    expect((await loaded(join(below, 'moved'))).map(({ revision }) => revision)).toEqual([2, 3, 4]);
  });

  it('is given new versions, and names who is to be heard, where it is a copy', async () => {
    cpSync(directory, join(below, 'copy'), { recursive: true });
    await start(join(below, 'copy'));
    expect(printed).toEqual([
      'The data was restored from a copy: everything that it holds has been given a new version.',
      'No virtual machine starts before these nodes were heard: node-a, node-b',
    ]);
    const entries = await loaded(join(below, 'copy'));
    expect(Math.min(...entries.map(({ revision }) => revision))).toBeGreaterThan(2 ** 40);
    expect(JSON.parse(entries.at(-1)?.text ?? '')).toEqual({
      kind: 'kubevirts.kubevirt.io',
      spec: {},
      metadata: { resourceVersion: String(entries.at(-1)?.revision) },
      status: { restoration: { id: expect.any(String), unheard: ['node-a', 'node-b'] } },
    });
    await start(join(below, 'copy'));
    expect(printed).toHaveLength(2);
  });

  it('is known for a copy also where it was put into the place of the other, byte by byte', async () => {
    cpSync(join(directory, 'served'), join(directory, 'pki', 'keys'));
    await backup(join(below, 'backup'), { dataDir: directory }, () => undefined);
    const put = (name: string, to: string): void =>
      writeFileSync(join(directory, 'data', to), readFileSync(join(below, 'backup', 'data', name)));
    put('data.mdb', 'data.mdb');
    await start(directory);
    expect(printed).toHaveLength(2);
    // Not one of `godwit backup`, but of before the last start.
    cpSync(join(directory, 'data', 'data.mdb'), join(below, 'backup', 'data', 'raw'));
    await start(directory);
    put('raw', 'data.mdb');
    await start(directory);
    expect(printed).toHaveLength(4);
    await start(directory);
    expect(printed).toHaveLength(4);
  });

  it('is taken as it is where it is of before anything was remembered', async () => {
    const old = await openLmdbEngine(join(below, 'old', 'data'));
    await old.commit([entry(2, 'nodes', 'node-b')], []);
    await old.close();
    await start(join(below, 'old'));
    expect(printed).toEqual([]);
  });

  it('waits also for whom a restore before still waits, and takes no word of before that a node is off', async () => {
    const engine = await openLmdbEngine(join(directory, 'data'));
    const taints = [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }, { key: 'other' }];
    const status = { restoration: { id: 'one', unheard: ['node-gone'] } };
    await engine.commit(
      [
        { ...entry(5, 'nodes', 'node-a'), previous: 3, text: text({ spec: { taints } }, 5) },
        { ...entry(6, 'kubevirts.kubevirt.io', 'kubevirt/kubevirt'), previous: 4, text: text({ status }, 6) },
      ],
      [],
    );
    await engine.close();
    await start(directory, true);
    expect(printed.slice(1)).toEqual([
      'These nodes were out of service when it was made, which nobody can say of today: node-a. Taint those again that are',
      'No virtual machine starts before these nodes were heard: node-a, node-b, node-gone',
    ]);
    const node = (await loaded(directory)).find(({ key }) => key === 'node-a');
    expect(JSON.parse(node?.text ?? '')).toMatchObject({ spec: { taints: [{ key: 'other' }] } });
  });

  it('is taken for restored where somebody says so', async () => {
    await start(directory, true);
    expect(printed).toHaveLength(2);
  });

  it('is restored from a backup of a log that is in use', async () => {
    cpSync(join(directory, 'served'), join(directory, 'pki', 'keys'));
    const engine = await openLmdbEngine(join(directory, 'data'));
    await engine.commit([entry(5, 'pods', 'default/late')], []);
    await backup(join(below, 'backup'), { dataDir: directory }, print);
    await engine.commit([entry(6, 'pods', 'default/later')], []);
    await engine.close();
    expect(readFileSync(join(below, 'backup', 'pki', 'keys'))).toEqual(readFileSync(join(directory, 'pki', 'keys')));
    await start(join(below, 'backup'));
    expect((await loaded(join(below, 'backup'))).map(({ key }) => key)).toEqual([
      'node-b',
      'node-a',
      'kubevirt/kubevirt',
      'default/late',
    ]);
    await expect(backup(join(below, 'backup'), { dataDir: directory }, print)).rejects.toThrow('is not empty');
    await expect(backup(join(below, 'x'), { dataDir: below }, print)).rejects.toThrow('there is no data in');
  });
});
