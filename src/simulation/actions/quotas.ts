import type { KubeObject } from '../../api/meta.ts';
import { resourceQuotas } from '../../cluster/resources.ts';
import type { Resource } from '../../kube/resource.ts';
import { oneOf } from '../streams.ts';
import type { UserContext } from './context.ts';

/** Quotas, and things that are counted. */

const configMaps: Resource = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', namespaced: true };
const NAMESPACE = 'default';
const QUOTAS = ['small', 'large'];
const THING = 'thing-';

/** Sets how many things and pods there may be. */
export async function setQuota({ client, state, random, signal }: UserContext): Promise<void> {
  const name = oneOf(random, QUOTAS) ?? '';
  const count = (max: number): string => String(2 + Math.floor(random.number() * max));
  const hard = { 'count/configmaps': count(12), pods: count(8) };
  if (state.get('resourcequotas', `${NAMESPACE}/${name}`)) {
    await client.patch(resourceQuotas, NAMESPACE, name, { type: 'merge', body: { spec: { hard } } }, signal);
    return;
  }
  const metadata = { name, namespace: NAMESPACE };
  const quota = { apiVersion: 'v1', kind: 'ResourceQuota', metadata, spec: { hard } };
  await client.create(resourceQuotas, quota, signal);
}

export async function deleteQuota({ client, random, signal }: UserContext): Promise<void> {
  await client.delete(resourceQuotas, NAMESPACE, oneOf(random, QUOTAS) ?? '', signal);
}

/** Creates several things at once, of which not all may be let in. */
export async function createThings({ client, random, signal }: UserContext): Promise<void> {
  const things = Array.from({ length: 1 + Math.floor(random.number() * 4) }, (): KubeObject => {
    const name = `${THING}${Math.floor(random.number() * 1e6)}`;
    return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: NAMESPACE } };
  });
  await Promise.allSettled(things.map((thing) => client.create(configMaps, thing, signal)));
}

export async function deleteThings({ client, state, random, signal }: UserContext): Promise<void> {
  const things = [...state.list('configmaps')].filter(({ metadata }) => metadata.name?.startsWith(THING));
  const chosen = things.filter(() => random.number() < 0.5);
  await Promise.allSettled(
    chosen.map(({ metadata }) => client.delete(configMaps, NAMESPACE, metadata.name ?? '', signal)),
  );
}
