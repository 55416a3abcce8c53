import { afterAll, beforeAll, it, vi } from 'vitest';
import { sample } from '../support/sample.ts';
import { IN_SCENES, ON_ONE_CLUSTER, ON_TWO_CLUSTERS } from './played.ts';
import { Reader } from './reader.ts';

/** Somebody who does what tutorials and other pages say, with real guests, and sees what they show: all of them in a full run. */

vi.setConfig({ testTimeout: 900_000, hookTimeout: 300_000 });

const drawn = sample([...ON_ONE_CLUSTER, ON_TWO_CLUSTERS, ...IN_SCENES.keys()], 1);
const reader = new Reader();
beforeAll(() => reader.start());
afterAll(() => reader.leave());

it.each(drawn.filter((page) => page !== ON_TWO_CLUSTERS))('%s', async (page) => {
  const scene = IN_SCENES.get(page);
  await (scene ? reader.followIn(scene, page) : reader.follow(page));
  await reader.findsNothingLeft();
});

it.each(drawn.filter((page) => page === ON_TWO_CLUSTERS))('%s', (page) => reader.follow(page));
