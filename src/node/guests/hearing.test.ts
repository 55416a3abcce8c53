import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AgentScene, NODE, nodes } from '../../../test/node/agent-scene.ts';
import { Life } from '../../../test/node/life.ts';
import { HEARD_ANNOTATION, SYSTEM_NAMESPACE } from '../../api/kubevirt/well-known.ts';
import { silentLogger } from '../../env/test.ts';
import { kubeVirts, virtualMachineInstances } from '../../kube/kubevirt-resources.ts';
import type { Transport } from '../../kube/transport.ts';
import { Hearing, type HearingOptions } from './hearing.ts';
import { launcherPods } from './launcher-pod.ts';

/** A life in which some watches tell nothing any more: they have not found back to a server that was restored. */
class DeafLife extends Life {
  deafTo: RegExp | undefined;

  override transport(inner: Transport, onWrite: (write: string) => void): Transport {
    const transport = super.transport(inner, onWrite);
    return {
      close: () => transport.close(),
      send: async (request) => {
        const response = await transport.send(request);
        if (!/[?&]watch=true/.test(request.path)) return response;
        return { ...response, body: this.#whileHeard(request.path, response.body) };
      },
    };
  }

  async *#whileHeard(path: string, body: AsyncIterable<string>): AsyncGenerator<string> {
    for await (const piece of body) if (this.deafTo?.test(path) !== true) yield piece;
  }
}

describe('an agent that outlived a restore', () => {
  let scene: AgentScene;
  let life: DeafLife;
  beforeEach(async () => {
    scene = new AgentScene();
    await scene.start();
    await scene.stopAgent();
    life = new DeafLife();
    await scene.startAgent(life);
  });
  afterEach(async () => {
    expect(scene.host.violations).toEqual([]);
    await scene.stop();
  });

  it('is not heard by what its watches knew of before: a guest that the API lost is ended first', async () => {
    await scene.makeGuest();
    const { metadata } = await scene.bind();
    await scene.phaseBecomes('Running');
    await scene.settle();
    await scene.stopControllers();
    life.deafTo = /\/(pods|virtualmachineinstances)\?/;
    await scene.patch(virtualMachineInstances, 'web', { metadata: { finalizers: null } });
    await scene.delete(virtualMachineInstances, 'web');
    await scene.delete(launcherPods, metadata.name ?? '', 0);
    await scene.pass(5000);
    expect(scene.host.executing()).toHaveLength(1);
    const body = { status: { restoration: { id: 'first', unheard: [NODE] } } };
    const options = { subresource: 'status' };
    await scene.client.patch(kubeVirts, SYSTEM_NAMESPACE, 'kubevirt', { type: 'merge', body }, scene.signal, options);
    await scene.until(async () => {
      const node = await scene.client.get(nodes, '', NODE, scene.signal);
      expect(node.metadata.annotations?.[HEARD_ANNOTATION]).toBe('first');
    });
    expect(scene.host.executing()).toEqual([]);
  });
});

describe('a look at a pod', () => {
  it('counts only where it began since the restore', () => {
    const surroundings = { dueRestoration: 'first' };
    const journal = { pods: () => [{ podUID: 'pod' }] };
    const options = { client: {}, surroundings, journal, log: silentLogger };
    const hearing = new Hearing(options as unknown as HearingOptions);
    expect(hearing.note('pod', true, undefined)).toBe(false);
    expect(hearing.note('pod', false, 'first')).toBe(false);
    expect(hearing.note('pod', true, 'first')).toBe(true);
    surroundings.dueRestoration = 'second';
    expect(hearing.note('pod', true, 'first')).toBe(false);
    expect(hearing.note('pod', true, 'second')).toBe(true);
  });
});
