import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HEARTBEAT_ANNOTATION, SCHEDULABLE_LABEL } from '../../api/kubevirt/well-known.ts';
import { formatTime } from '../../api/meta.ts';
import { ControlScene } from '../control.fixture.ts';
import { nodes } from '../resources.ts';
import { NodeHeartbeats } from './node-heartbeats.ts';

let scene: ControlScene;

beforeEach(async () => {
  scene = new ControlScene((context) => new NodeHeartbeats(context));
  await scene.start();
  for (const name of ['spoke', 'spoke-once', 'never-spoke'])
    await scene.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name, labels: labels('true') } });
  for (const name of ['spoke', 'spoke-once']) await speak(name);
});
afterEach(() => scene.stop());

const labels = (isSchedulable: string): Record<string, string> => ({ [SCHEDULABLE_LABEL]: isSchedulable });

/** What agents do, whose clocks may be wrong. */
async function speak(name: string): Promise<void> {
  const annotations = { [HEARTBEAT_ANNOTATION]: formatTime(scene.clock.now() - 3600_000) };
  const body = { metadata: { labels: labels('true'), annotations } };
  await scene.client.patch(nodes, '', name, { type: 'merge', body }, scene.signal);
  await scene.settle();
}

async function closed(): Promise<readonly (string | undefined)[]> {
  const { items } = await scene.client.list(nodes, {}, scene.signal);
  return items.flatMap(({ metadata }) => (metadata.labels?.[SCHEDULABLE_LABEL] === 'false' ? [metadata.name] : []));
}

describe('a node whose agent is not heard of any more', () => {
  it('takes no guests until it is', async () => {
    await scene.pass(240_000, 10_000);
    await speak('spoke');
    await scene.pass(50_000, 10_000);
    expect(await closed()).toEqual([]);
    await scene.pass(20_000, 10_000);
    expect(await closed()).toEqual(['spoke-once']);
    await speak('spoke-once');
    await scene.pass(240_000, 10_000);
    expect(await closed()).toEqual(['spoke']);
    expect(scene.writes.filter((write) => write.startsWith('PATCH'))).toHaveLength(2);
  });

  it('has its time anew where the controller is another', async () => {
    await scene.pass(240_000, 10_000);
    await scene.stopControllers();
    await scene.startControllers();
    await scene.pass(240_000, 10_000);
    expect(await closed()).toEqual([]);
    await scene.pass(70_000, 10_000);
    expect(await closed()).toEqual(['spoke', 'spoke-once']);
  });
});
