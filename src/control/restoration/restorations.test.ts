import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HEARD_ANNOTATION, SYSTEM_NAMESPACE } from '../../api/kubevirt/well-known.ts';
import { kubeVirts } from '../../kube/kubevirt-resources.ts';
import { ControlScene } from '../control.fixture.ts';
import { nodes } from '../resources.ts';
import { Restorations } from './restorations.ts';

let scene: ControlScene;

beforeEach(async () => {
  scene = new ControlScene((context) => new Restorations(context));
  await scene.start();
  for (const name of ['node-a', 'node-b', 'node-c'])
    await scene.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name } });
  const body = { status: { restoration: { id: 'second', unheard: ['node-a', 'node-b', 'node-c', 'node-d'] } } };
  const options = { subresource: 'status' };
  await scene.client.patch(kubeVirts, SYSTEM_NAMESPACE, 'kubevirt', { type: 'merge', body }, scene.signal, options);
});
afterEach(() => scene.stop());

async function unheard(): Promise<readonly string[] | undefined> {
  const { status } = await scene.client.get(kubeVirts, SYSTEM_NAMESPACE, 'kubevirt', scene.signal);
  return status?.restoration?.unheard;
}

async function says(name: string, restoration: string): Promise<void> {
  const body = { metadata: { annotations: { [HEARD_ANNOTATION]: restoration } } };
  await scene.client.patch(nodes, '', name, { type: 'merge', body }, scene.signal);
}

describe('after a restore', () => {
  it('waits for each node until it was heard, or given up; one that is gone is neither', async () => {
    await says('node-a', 'first');
    await scene.pass(5000);
    expect(await unheard()).toEqual(['node-a', 'node-b', 'node-c', 'node-d']);
    await says('node-b', 'second');
    await scene.until(async () => expect(await unheard()).toEqual(['node-a', 'node-c', 'node-d']));
    const taint = { key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoExecute' };
    const body = { spec: { taints: [taint] } };
    await scene.client.patch(nodes, '', 'node-c', { type: 'merge', body }, scene.signal);
    await scene.until(async () => expect(await unheard()).toEqual(['node-a', 'node-d']));
    await scene.client.delete(nodes, '', 'node-a', scene.signal);
    await scene.pass(5000);
    expect(await unheard()).toEqual(['node-a', 'node-d']);
  });
});
