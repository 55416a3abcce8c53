import { expect, it } from 'vitest';
import { ControlScene } from '../control/control.fixture.ts';
import { seededRandom, silentLogger } from '../env/test.ts';
import { kubeVirts } from '../kube/kubevirt-resources.ts';
import { configuredPort, followPort } from './configured-port.ts';

it.each([
  ['9186', 9186],
  ['65535', 65_535],
  ['0', undefined],
  ['65536', undefined],
  ['-1', undefined],
  ['1e3', undefined],
  ['https', undefined],
  ['', undefined],
  [undefined, undefined],
])('takes %s for %s', (synchronizationPort, port) => {
  expect(configuredPort(synchronizationPort === undefined ? {} : { synchronizationPort })).toBe(port);
});

it('knows none before there is a configuration', () => {
  expect(configuredPort(undefined)).toBeUndefined();
});

it('is followed no more once the work has failed', async () => {
  const scene = new ControlScene();
  await scene.start();
  const env = { clock: scene.clock, random: seededRandom(1), log: silentLogger };
  const changed: number[] = [];
  const failed = followPort(scene.client, env, new AbortController().signal, async (port, until) => {
    until.addEventListener('abort', () => changed.push(port));
    throw new Error('leadership lost');
  });
  await expect(failed).rejects.toThrow('leadership lost');
  const body = { spec: { synchronizationPort: '9300' } };
  await scene.client.patch(kubeVirts, 'kubevirt', 'kubevirt', { type: 'merge', body }, scene.signal);
  await scene.pass(1000);
  expect(changed).toEqual([]);
  await scene.stop();
});

it('is followed while it changes, and let go of when nobody wants it any more', async () => {
  const scene = new ControlScene();
  await scene.start();
  const stopping = new AbortController();
  const log: string[] = [];
  const env = { clock: scene.clock, random: seededRandom(1), log: silentLogger };
  const following = followPort(scene.client, env, stopping.signal, async (port, until) => {
    log.push(`on ${port}`);
    await new Promise((resolve) => until.addEventListener('abort', resolve, { once: true }));
    log.push(`off ${port}`);
  });
  const configure = (synchronizationPort: string | null): Promise<unknown> => {
    const body = { spec: { synchronizationPort } };
    return scene.client.patch(kubeVirts, 'kubevirt', 'kubevirt', { type: 'merge', body }, scene.signal);
  };
  await scene.until(() => expect(log).toEqual(['on 9185']));
  await configure('9300');
  await scene.until(() => expect(log).toEqual(['on 9185', 'off 9185', 'on 9300']));
  await configure('no port');
  await scene.until(() => expect(log.at(-1)).toBe('on 9185'));
  // What does not change where it works does not disturb it.
  await configure(null);
  await scene.pass(1000);
  expect(log).toHaveLength(5);
  stopping.abort();
  await following;
  expect(log.slice(5)).toEqual(['off 9185']);
  await scene.stop();
});
