import { beforeEach, describe, expect, it } from 'vitest';
import { testEnv } from '../../env/test.ts';
import type { Client } from '../../kube/client.ts';
import { KubeletPods } from './kubelet-pods.ts';
import type { LauncherPod } from './launcher-pod.ts';

/** Pods of a kubelet that the test plays, with one of them as the server has it. */

const { clock, log } = testEnv();
const { signal } = new AbortController();
const POD: LauncherPod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { namespace: 'shop', name: 'launcher', uid: 'a' },
  status: { phase: 'Running' },
};
const DELETED: LauncherPod = { ...POD, metadata: { ...POD.metadata, deletionTimestamp: '2026-01-01T00:00:30Z' } };

let server: LauncherPod;
let asked: number;
let patches: object[];
let ending: string[];
let ends: string[];
let news: string[];
let pods: KubeletPods;

beforeEach(() => {
  [server, asked, patches, ending, ends, news] = [POD, 0, [], [], [], []];
  const client = {
    find: async () => (asked++, server),
    patch: async (...[, , , { body }]: Parameters<Client['patch']>) => void patches.push(body as object),
  } as unknown as Client;
  const launchers = {
    ending: async () => ending,
    end: async (podUID: string, { exitCode, message }: { exitCode: number; message: string }) =>
      void ends.push(`${podUID} ${exitCode} ${message}`),
    forget: async (podUID: string) => void (ending = ending.filter((each) => each !== podUID)),
  };
  pods = new KubeletPods({ clock, log, client, launchers, onNews: (podUID) => void news.push(podUID) });
});

/** Looks at the launchers so many times. */
async function look(times: number): Promise<void> {
  const stopping = new AbortController();
  const running = pods.run(stopping.signal);
  for (let time = 0; time < times; time++) {
    await new Promise((resolve) => setImmediate(resolve));
    clock.advance(1000);
  }
  stopping.abort();
  await running;
}

describe('the pods of a kubelet', () => {
  it('are ended by it where it has told their launchers so, and nobody has deleted them', async () => {
    expect(await pods.endingMs(POD, signal)).toBeUndefined();
    ending = ['a'];
    await look(3);
    expect(news).toEqual(['a']);
    const nowMs = clock.now();
    expect(await pods.endingMs(POD, signal)).toBe(nowMs);
    clock.advance(5000);
    // What was begun goes on.
    expect(await pods.endingMs(DELETED, signal)).toBe(nowMs);
    expect(asked).toBe(1);
    await pods.forget('a');
    expect(await pods.endingMs(POD, signal)).toBeUndefined();
  });

  it('are not where they are deleted, though only their kubelet has heard of that', async () => {
    ending = ['a'];
    await look(1);
    server = DELETED;
    expect(await pods.endingMs(POD, signal)).toBeUndefined();
    expect(await pods.endingMs(DELETED, signal)).toBeUndefined();
    expect(asked).toBe(1);
  });

  it('are told once whether their guests answer, and to end', async () => {
    await pods.tellRunning(POD, true, signal);
    const { status } = patches[0] as { status: { conditions: { status: string; reason: string }[] } };
    expect(status.conditions).toMatchObject([{ status: 'False', reason: 'Paused' }]);
    await pods.tellRunning({ ...POD, status: { ...POD.status, ...(status as object) } }, true, signal);
    expect(patches).toHaveLength(1);
    const end = { hasSucceeded: false, cause: { reason: 'Killed', message: 'by SIGKILL' } };
    for (let time = 0; time < 2; time++) await pods.tellEnded(POD, end);
    await pods.letGo({ ...POD, metadata: { ...POD.metadata, uid: 'b' }, status: { phase: 'Pending' } });
    expect(ends).toEqual(['a 1 Killed: by SIGKILL']);
  });
});
