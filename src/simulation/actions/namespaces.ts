import type { KubeObject } from '../../api/meta.ts';
import { namespaces } from '../../cluster/resources.ts';
import type { Resource } from '../../kube/resource.ts';
import { oneOf } from '../streams.ts';
import type { UserContext } from './context.ts';

/** Namespaces that come and go, with what is in them. */

const configMaps: Resource = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', namespaced: true };
const accounts: Resource = {
  group: '',
  version: 'v1',
  plural: 'serviceaccounts',
  kind: 'ServiceAccount',
  namespaced: true,
};
const PREFIX = 'team-';

function teams({ state }: UserContext): string[] {
  return [...state.list('namespaces')]
    .map(({ metadata }) => metadata.name ?? '')
    .filter((name) => name.startsWith(PREFIX));
}

export async function createNamespace({ client, random, signal }: UserContext): Promise<void> {
  const name = `${PREFIX}${Math.floor(random.number() * 20)}`;
  await client.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }, signal);
}

/** Puts something into a namespace, also into one that is just going. */
export async function fillNamespace(context: UserContext): Promise<void> {
  const { client, random, signal } = context;
  const namespace = oneOf(random, teams(context));
  if (namespace === undefined) return;
  for (let index = 0; index < 3; index++) {
    const resource = random.number() < 0.5 ? configMaps : accounts;
    const finalizers = random.number() < 0.1 ? ['simulation.godwit/keep'] : [];
    const metadata = { name: `thing-${Math.floor(random.number() * 1e6)}`, namespace, finalizers };
    await client.create(resource, { apiVersion: 'v1', kind: resource.kind, metadata }, signal);
  }
}

export async function deleteNamespace(context: UserContext): Promise<void> {
  const name = oneOf(context.random, teams(context));
  if (name !== undefined) await context.client.delete(namespaces, '', name, context.signal);
}

/** Lets go of what is held by the user's own finalizer. */
export async function releaseThings(context: UserContext): Promise<void> {
  const { client, state, signal } = context;
  const isHeld = ({ metadata }: KubeObject): boolean => (metadata.finalizers ?? []).includes('simulation.godwit/keep');
  for (const resource of [configMaps, accounts]) {
    for (const { metadata } of [...state.list(resource.plural)].filter(isHeld)) {
      const body = { metadata: { finalizers: null } };
      await client.patch(resource, metadata.namespace ?? '', metadata.name ?? '', { type: 'merge', body }, signal);
    }
  }
}
