import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NAMESPACE } from '../../src/control/control.fixture.ts';
import { virtualMachineInstances } from '../../src/kube/kubevirt-resources.ts';
import { AgentScene } from './agent-scene.ts';

/** What machines leave behind. */

const scene = new AgentScene();
beforeAll(() => scene.start());
afterAll(() => scene.stop());

async function runOnce(): Promise<string> {
  await scene.makeGuest();
  const { metadata } = await scene.bind();
  await scene.phaseBecomes('Running');
  await scene.delete(virtualMachineInstances, 'web');
  await scene.until(async () => expect(await scene.list(virtualMachineInstances)).toEqual([]));
  return metadata.uid ?? '';
}

const logs = async (): Promise<readonly string[]> =>
  ((await scene.agent?.access.serialLogs(NAMESPACE, 'web')) ?? []).map(({ podUID }) => podUID);

describe('what machines leave behind', () => {
  it('is kept for the last few runs of a guest, and then removed', async () => {
    const uids: string[] = [];
    for (let count = 0; count < 7; count++) uids.push(await runOnce());
    await scene.pass(20_000, 5000);
    expect(await logs()).toEqual(uids.slice(-5));
    expect([...scene.files.files.keys()].filter((path) => path.startsWith('/data/notes/'))).toHaveLength(5);
  });
  it('is removed when there is too much of it', async () => {
    const [oldest = '', ...others] = await logs();
    const path = (uid: string): string => `/data/runs/${uid}/serial.log`;
    scene.files.sizes.set(path(oldest), 1).set(path(others[1] ?? ''), 1024 * 1024 * 1024);
    await scene.pass(20_000, 5000);
    expect(await logs()).toEqual(others);
  });
  it('is to be forgotten by the journal once the virtual machine is gone, which is said once', async () => {
    const forgotten = (): number =>
      Buffer.from(scene.journal.contents ?? [])
        .toString()
        .split('forgotten').length - 1;
    await scene.pass(3_700_000, 100_000);
    await scene.stopAgent();
    expect(forgotten()).toBe(4);
    await scene.startAgent();
    await scene.pass(3_700_000, 100_000);
    expect(forgotten()).toBe(4);
    expect(await logs()).toHaveLength(4);
  });
  it('a log that has become long begins anew, and its end is kept', async () => {
    await scene.makeGuest();
    const { metadata } = await scene.bind();
    await scene.phaseBecomes('Running');
    const { uid = '' } = metadata;
    const path = `/data/runs/${uid}/serial.log`;
    const long = Buffer.alloc(17 * 1024 * 1024, 'x');
    long.write('the end', long.length - 7);
    scene.files.files.set(path, long);
    await scene.pass(20_000, 5000);
    expect(scene.files.files.get(path)).toHaveLength(0);
    const kept = Buffer.from(scene.files.files.get(`/data/notes/${uid}.log`) ?? []);
    expect([kept.length, kept.subarray(-7).toString()]).toEqual([1024 * 1024, 'the end']);
    const all = (await scene.agent?.access.serialLogs(NAMESPACE, 'web')) ?? [];
    expect(all.slice(-2)).toEqual([
      { podUID: uid, path: `/data/notes/${uid}.log`, isLive: false },
      { podUID: uid, path, isLive: true },
    ]);
    await scene.stopAgent();
    await scene.startAgent();
    expect(await scene.agent?.access.serialLogs(NAMESPACE, 'web')).toHaveLength(all.length);
  });
});
