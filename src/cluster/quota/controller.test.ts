import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JsonObject, KubeObject } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import type { Resource } from '../../kube/resource.ts';
import type { Pod } from '../../migration/fit/objects.ts';
import { LoopScene } from '../loops.fixture.ts';
import { configMaps, customResourceDefinitions, pods, resourceQuotas } from '../resources.ts';
import { SETTLED_AFTER_MS } from './charges.ts';
import { quotaLoop } from './loop.ts';

const scene = new LoopScene(quotaLoop);
let rooms = 0;
beforeAll(() => scene.start());
afterAll(() => scene.stop());

async function makeRoom(): Promise<string> {
  const name = `room-${++rooms}`;
  await scene.namespace(name);
  return name;
}

async function limit(namespace: string, hard: Record<string, string>): Promise<void> {
  await scene.create(resourceQuotas, { metadata: { name: 'q', namespace }, spec: { hard } });
}

async function pod(namespace: string, name: string, cpu = '1'): Promise<void> {
  const resources = { requests: { cpu } };
  const spec = { containers: [{ name: 'c', image: 'i', resources }], nodeName: 'n', terminationGracePeriodSeconds: 30 };
  await scene.create(pods, { metadata: { name, namespace }, spec: spec as Pod['spec'] });
}

async function configMap(namespace: string, name: string): Promise<number> {
  try {
    await scene.create(configMaps, { metadata: { name, namespace } });
    return 201;
  } catch (error) {
    if (error instanceof ApiError) return error.code;
    throw error;
  }
}

const remove = (resource: Resource, namespace: string, name: string, gracePeriodSeconds = 0) =>
  scene.client.delete(resource, namespace, name, scene.signal, { gracePeriodSeconds });
const used = async (namespace: string) => (await scene.get(resourceQuotas, namespace, 'q')).status?.used;
const says = (namespace: string, expected: JsonObject) =>
  scene.until(async () => expect(await used(namespace)).toEqual(expected));

describe('what is used', () => {
  it('is counted when a quota comes, and when its limits change', async () => {
    const namespace = await makeRoom();
    await pod(namespace, 'a');
    await limit(namespace, { pods: '5', 'requests.cpu': '5' });
    await says(namespace, { pods: '1', 'requests.cpu': '1' });
    expect((await scene.get(resourceQuotas, namespace, 'q')).status?.hard).toEqual({ pods: '5', 'requests.cpu': '5' });
    const body = { spec: { hard: { 'requests.cpu': null, pods: '1', configmaps: '3' } } };
    await scene.client.patch(resourceQuotas, namespace, 'q', { type: 'merge', body }, scene.signal);
    await says(namespace, { pods: '1', configmaps: '0' });
    expect((await scene.get(resourceQuotas, namespace, 'q')).status?.hard).toEqual({ pods: '1', configmaps: '3' });
  });

  it('is given back when pods go, finish, or are overdue', async () => {
    const namespace = await makeRoom();
    await limit(namespace, { pods: '5', 'count/pods': '9' });
    await says(namespace, { pods: '0', 'count/pods': '0' });
    for (const name of ['a', 'b', 'c']) await pod(namespace, name);
    await says(namespace, { pods: '3', 'count/pods': '3' });
    await scene.pass(SETTLED_AFTER_MS);
    await remove(pods, namespace, 'a');
    await says(namespace, { pods: '2', 'count/pods': '2' });
    await scene.patchStatus(pods, namespace, 'b', { phase: 'Failed' });
    await says(namespace, { pods: '1', 'count/pods': '2' });
    await remove(pods, namespace, 'c', 30);
    await scene.pass(55_000, 5000);
    expect(await used(namespace)).toEqual({ pods: '1', 'count/pods': '2' });
    await scene.pass(10_000);
    await says(namespace, { pods: '0', 'count/pods': '2' });
  });

  it('is not given back before the last charge has settled', async () => {
    const namespace = await makeRoom();
    await limit(namespace, { configmaps: '2' });
    await says(namespace, { configmaps: '0' });
    await configMap(namespace, 'a');
    await says(namespace, { configmaps: '1' });
    await remove(configMaps, namespace, 'a');
    await scene.settle();
    expect(await used(namespace)).toEqual({ configmaps: '1' });
    await scene.pass(SETTLED_AFTER_MS);
    await says(namespace, { configmaps: '0' });
  });

  it('is not given back for what the cache has not seen yet', async () => {
    const namespace = await makeRoom();
    await limit(namespace, { configmaps: '2' });
    await says(namespace, { configmaps: '0' });
    await scene.pass(SETTLED_AFTER_MS);
    scene.hold('configmaps');
    await configMap(namespace, 'a');
    await configMap(namespace, 'b');
    await scene.pass(2 * SETTLED_AFTER_MS);
    // Makes it count again.
    await scene.pass(6 * 60_000, 30_000);
    expect(await used(namespace)).toEqual({ configmaps: '2' });
    expect(await configMap(namespace, 'c')).toBe(403);
    await scene.release('configmaps');
    await scene.settle();
    expect(await used(namespace)).toEqual({ configmaps: '2' });
  });

  it('is mended where somebody has written nonsense, at the latest after five minutes', async () => {
    const namespace = await makeRoom();
    await limit(namespace, { configmaps: '2' });
    await says(namespace, { configmaps: '0' });
    await configMap(namespace, 'a');
    await scene.patchStatus(resourceQuotas, namespace, 'q', { used: { configmaps: '7' } });
    await scene.pass(5 * 60_000 + 10_000, 10_000);
    await says(namespace, { configmaps: '1' });
    scene.writes.length = 0;
    await scene.pass(5 * 60_000 + 10_000, 10_000);
    expect(scene.writes).toEqual([]);
  });

  it('is counted of kinds that come later, too', async () => {
    const namespace = await makeRoom();
    await limit(namespace, { 'count/geese.birds.example.com': '2' });
    await scene.pass(SETTLED_AFTER_MS);
    expect(await used(namespace)).toBeUndefined();
    const names = { plural: 'geese', singular: 'goose', kind: 'Goose', listKind: 'GooseList' };
    const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
    const versions = [{ name: 'v1', served: true, storage: true, schema }];
    const spec = { group: 'birds.example.com', scope: 'Namespaced', names, versions };
    await scene.create<KubeObject>(customResourceDefinitions, { metadata: { name: 'geese.birds.example.com' }, spec });
    const geese = { group: 'birds.example.com', version: 'v1', plural: 'geese', kind: 'Goose', namespaced: true };
    await scene.until(() => scene.create<KubeObject>(geese, { metadata: { name: 'g', namespace } }));
    await says(namespace, { 'count/geese.birds.example.com': '1' });
    await remove(geese, namespace, 'g');
    await scene.pass(SETTLED_AFTER_MS);
    await says(namespace, { 'count/geese.birds.example.com': '0' });
  });

  it('is counted after a restart', async () => {
    const namespace = await makeRoom();
    await limit(namespace, { pods: '5' });
    await says(namespace, { pods: '0' });
    await pod(namespace, 'a');
    await scene.stopLoops();
    await remove(pods, namespace, 'a');
    expect(await used(namespace)).toEqual({ pods: '1' });
    await scene.startLoops();
    await scene.pass(SETTLED_AFTER_MS);
    await says(namespace, { pods: '0' });
  });
});
