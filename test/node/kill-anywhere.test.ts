import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pods } from '../../src/control/resources.ts';
import { virtualMachineInstances, virtualMachines } from '../../src/kube/kubevirt-resources.ts';
import { IS_FULL, SEED } from '../support/sample.ts';
import { AgentScene } from './agent-scene.ts';
import { Life } from './life.ts';

/**
 * An agent that is killed between any two things that it does: asking the API server, writing its journal, telling the
 * machine. Whatever it was about to do has been done or not; its successor has only the disk, the API and the machine.
 */

const scene = new AgentScene();
beforeAll(() => scene.start());
afterAll(() => scene.stop());

async function make(): Promise<void> {
  // Whoever was killed before it stamped the disk of a guest must not keep the next one from it.
  scene.claim = { name: 'data', uid: 'uid-of-data' };
  const template = { spec: { domain: { devices: {}, memory: { guest: '64Mi' } } } };
  await scene.create(virtualMachines, { metadata: { name: 'web' }, spec: { runStrategy: 'Always', template } });
}

async function bindAll(): Promise<void> {
  const fresh = (await scene.list(pods)).filter(({ spec }) => !spec?.nodeName);
  for (const _ of fresh) await scene.bind();
}

/** Lets time pass, with pods being bound, until the check does not throw. */
async function comesTo(check: () => Promise<void>): Promise<void> {
  for (let seconds = 0; ; seconds++) {
    await bindAll();
    await scene.settle();
    try {
      return await check();
    } catch (error) {
      if (seconds === 120) throw error;
    }
    await scene.pass(1000);
  }
}

const isRunning = async (): Promise<void> => {
  expect((await scene.guest()).status?.phase).toBe('Running');
  expect(scene.host.executing()).toHaveLength(1);
};
const isGone = async (): Promise<void> => {
  expect(await scene.list(virtualMachines)).toEqual([]);
  expect(await scene.list(virtualMachineInstances)).toEqual([]);
  expect(await scene.list(pods)).toEqual([]);
};

/** Kills an agent at its n-th boundary after `begin`; false where it has fewer until the check holds. */
async function killedAt(n: number, begin: () => Promise<void>, check: () => Promise<void>): Promise<boolean> {
  scene.killAgent();
  const life = new Life();
  await scene.startAgent(life);
  life.endsAfter(n);
  await begin();
  for (let seconds = 0; !life.isOver && seconds < 40; seconds++) {
    await bindAll();
    await scene.pass(seconds === 0 ? 100 : 1000, 100);
    const isDone = await check().then(
      () => true,
      () => false,
    );
    if (isDone) break;
  }
  const { isOver } = life;
  scene.killAgent();
  await scene.startAgent();
  await comesTo(check);
  expect(scene.host.violations).toEqual([]);
  return isOver;
}

/** How many boundaries there are at least: fewer would mean that something is not being looked at. */
const BOUNDARIES_MIN = 20;
/** In a short run every third boundary, from one that the seed draws. */
const [FIRST, STEP] = IS_FULL ? [1, 1] : [1 + (SEED % 3), 3];

describe('an agent that is killed', () => {
  it('anywhere while a guest starts and ends: the guest runs once, and is gone in the end', async () => {
    let count = FIRST;
    for (let isStarting = true, isEnding = true; isStarting || isEnding; count += STEP) {
      isStarting = await killedAt(count, make, isRunning);
      isEnding = await killedAt(count, () => scene.delete(virtualMachines, 'web'), isGone);
      expect(scene.host.alive()).toEqual([]);
    }
    expect(count).toBeGreaterThan(BOUNDARIES_MIN);
  }, 300_000);
});
