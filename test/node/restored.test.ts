import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HEARD_ANNOTATION, SYSTEM_NAMESPACE } from '../../src/api/kubevirt/well-known.ts';
import { pods } from '../../src/control/resources.ts';
import { kubeVirts, virtualMachineInstances } from '../../src/kube/kubevirt-resources.ts';
import { AgentScene, NODE, nodes } from './agent-scene.ts';

/** An agent whose API server says that its data was restored from a backup; the test says which nodes were heard. */

let scene: AgentScene;
beforeEach(async () => {
  scene = new AgentScene();
  await scene.start();
});
afterEach(async () => {
  expect(scene.host.violations).toEqual([]);
  await scene.stop();
});

async function isRestored(id: string, ...unheard: readonly string[]): Promise<void> {
  const body = { status: { restoration: { id, unheard: [...unheard] } } };
  const options = { subresource: 'status' };
  await scene.client.patch(kubeVirts, SYSTEM_NAMESPACE, 'kubevirt', { type: 'merge', body }, scene.signal, options);
}

const heard = async (): Promise<string | undefined> =>
  (await scene.client.get(nodes, '', NODE, scene.signal)).metadata.annotations?.[HEARD_ANNOTATION];

describe('after a restore', () => {
  it('an agent says that it was heard, and starts nothing before all were', async () => {
    await isRestored('first', NODE, 'node-b');
    await scene.makeGuest();
    await scene.bind();
    await scene.until(async () => expect(await heard()).toBe('first'));
    await isRestored('first', 'node-b');
    await scene.pass(60_000);
    expect(scene.host.machines).toEqual([]);
    expect((await scene.events()).at(-1)).toBe(
      "web Warning Quarantined: the API's data was restored, and not all nodes were heard: node-b",
    );
    await isRestored('first');
    await scene.phaseBecomes('Running');
    expect(scene.host.executing()).toHaveLength(1);
  });

  it('a guest that runs goes on, and its node is heard', async () => {
    await scene.makeGuest();
    await scene.bind();
    await scene.phaseBecomes('Running');
    await isRestored('first', NODE);
    await scene.until(async () => expect(await heard()).toBe('first'));
    await scene.stopAgent();
    await isRestored('second', NODE);
    await scene.startAgent();
    await scene.until(async () => expect(await heard()).toBe('second'));
    expect(scene.host.executing()).toHaveLength(1);
  });

  it('a node is not heard while a guest runs there that the API does not know any more, which is ended', async () => {
    await scene.makeGuest();
    const pod = await scene.bind();
    await scene.phaseBecomes('Running');
    await scene.stopAgent();
    await scene.stopControllers();
    await isRestored('first', NODE);
    // As if the backup had been made before there was such a guest.
    await scene.patch(virtualMachineInstances, 'web', { metadata: { finalizers: null } });
    await scene.client.delete(virtualMachineInstances, pod.metadata.namespace ?? '', 'web', scene.signal);
    await scene.client.delete(pods, pod.metadata.namespace ?? '', pod.metadata.name ?? '', scene.signal, {
      gracePeriodSeconds: 0,
    });
    expect(await heard()).toBeUndefined();
    await scene.startAgent();
    await scene.until(async () => expect(await heard()).toBe('first'));
    expect(scene.host.executing()).toEqual([]);
  });
});
