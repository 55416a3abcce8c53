import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NAMESPACE } from '../../src/control/control.fixture.ts';
import { pods } from '../../src/control/resources.ts';
import type { GuestAccess } from '../../src/node/guests/guest-access.ts';
import { AgentScene } from './agent-scene.ts';

/** What others may ask of a guest that runs. */

const scene = new AgentScene();
beforeAll(async () => {
  await scene.start();
  await scene.makeGuest();
  await scene.bind();
  await scene.phaseBecomes('Running');
});
afterAll(() => scene.stop());

const access = (): GuestAccess => {
  if (!scene.agent) throw new Error('there is no agent');
  return scene.agent.access;
};
const paused = async (): Promise<string | undefined> =>
  (await scene.guest()).status?.conditions?.find(({ type }) => type === 'Paused')?.reason;

/** Pods behind a Service get traffic while they are ready. */
const readyPods = async (): Promise<number> =>
  (await scene.list(pods)).filter(({ status }) =>
    status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True'),
  ).length;

describe('a guest that runs', () => {
  it('is held and let go on, once or twice, and says so', async () => {
    await access().pause(NAMESPACE, 'web');
    await access().pause(NAMESPACE, 'web');
    expect(scene.host.machines[0]?.status).toBe('paused');
    await scene.until(async () => expect(await paused()).toBe('PausedByUser'));
    await scene.until(async () => expect(await readyPods()).toBe(0));
    await access().unpause(NAMESPACE, 'web');
    await access().unpause(NAMESPACE, 'web');
    expect(scene.host.machines[0]?.status).toBe('running');
    await scene.until(async () => expect(await paused()).toBeUndefined());
    await scene.until(async () => expect(await readyPods()).toBe(1));
    expect(scene.agentWrites).toHaveLength(7);
  });
  it('that stopped at an error of its disk says so, and can go on', async () => {
    scene.host.machines[0]?.becomes('disk-error', 'disk-error');
    await scene.until(async () => expect(await paused()).toBe('PausedIOError'));
    await expect(access().softReboot(NAMESPACE, 'web')).rejects.toMatchObject({ code: 409 });
    await access().unpause(NAMESPACE, 'web');
    await scene.until(async () => expect(await paused()).toBeUndefined());
  });
  it('says nothing of itself without an agent inside', async () => {
    await expect(access().guestInfo(NAMESPACE, 'web')).rejects.toMatchObject({ code: 409 });
  });
  it('can be reset', async () => {
    await access().reset(NAMESPACE, 'web');
    expect(scene.host.machines[0]?.commands).toContain('reset');
  });
  it('has one console, which the last who asks gets', async () => {
    const heard: string[] = [];
    const listener = (name: string) => ({
      data: (bytes: Uint8Array) => void heard.push(`${name}: ${Buffer.from(bytes).toString()}`),
      closed: () => void heard.push(`${name} closed`),
    });
    const [, , third] = await Promise.all(
      ['one', 'two', 'three'].map((name) => access().openConsole(NAMESPACE, 'web', listener(name))),
    );
    expect(heard).toEqual(['one closed', 'two closed']);
    scene.host.machines[0]?.consoles.at(-1)?.data(Buffer.from('login: '));
    third?.write('root');
    third?.close();
    expect(heard).toEqual(['one closed', 'two closed', 'three: login: ', 'three closed']);
    expect(scene.host.machines[0]?.commands).toContain('console root');
  });
  it('tells where its serial port was written to, also when it has ended', async () => {
    const [log] = await access().serialLogs(NAMESPACE, 'web');
    expect(log).toMatchObject({ path: `/data/runs/${log?.podUID ?? ''}/serial.log`, isLive: true });
    const [run] = await access().runs(NAMESPACE, 'web');
    const { metadata } = await scene.guest();
    expect(run).toEqual({
      podUID: log?.podUID,
      guestUID: metadata.uid,
      machineUID: expect.any(String),
      startedAtMs: expect.any(Number),
      epoch: 1,
      isLive: true,
    });
    await scene.stopAgent();
    await scene.startAgent();
    expect(await access().runs(NAMESPACE, 'web')).toEqual([run]);
    await access().softReboot(NAMESPACE, 'web');
    await scene.phaseBecomes('Succeeded');
    await scene.stopAgent();
    await scene.startAgent();
    expect(await access().serialLogs(NAMESPACE, 'web')).toEqual([{ ...log, isLive: false }]);
    expect(await access().runs(NAMESPACE, 'web')).toEqual([{ ...run, isLive: false }]);
    await expect(access().pause(NAMESPACE, 'web')).rejects.toMatchObject({ code: 404 });
    await expect(access().openConsole(NAMESPACE, 'other', { data: () => {}, closed: () => {} })).rejects.toMatchObject({
      code: 404,
    });
  });
});
