import type { KubeObject, OwnerReference } from '../../api/meta.ts';
import type { DeleteOptions } from '../../kube/client.ts';
import type { Resource } from '../../kube/resource.ts';
import { oneOf } from '../streams.ts';
import type { UserContext } from './context.ts';

/** Objects that own each other, and the three ways of deleting an owner. */

const configMaps: Resource = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', namespaced: true };
const secrets: Resource = { group: '', version: 'v1', plural: 'secrets', kind: 'Secret', namespaced: true };

/** By this label the objects of these actions are known. */
const MARK = 'owned-by-chance';
const LEVELS_MAX = 3;
const CHILDREN_MAX = 3;

/** Creates an object and, below it, others that it owns, some levels deep. */
export async function createFamily(context: UserContext): Promise<void> {
  const levels = 1 + Math.floor(context.random.number() * LEVELS_MAX);
  await createBelow(context, await create(context, []), levels);
}

async function createBelow(context: UserContext, owner: OwnerReference, levels: number): Promise<void> {
  if (levels === 0) return;
  const children = 1 + Math.floor(context.random.number() * CHILDREN_MAX);
  for (let index = 0; index < children; index++) await createBelow(context, await create(context, [owner]), levels - 1);
}

async function create({ client, random, signal }: UserContext, owners: OwnerReference[]): Promise<OwnerReference> {
  const resource = random.number() < 0.5 ? configMaps : secrets;
  const name = `member-${Math.floor(random.number() * 1e6)}`;
  const metadata = { name, namespace: 'default', labels: { [MARK]: 'true' }, ownerReferences: owners };
  const created = await client.create(resource, { apiVersion: 'v1', kind: resource.kind, metadata }, signal);
  const isBlocking = random.number() < 0.5;
  return { ...referenceTo(created), ...(isBlocking ? { blockOwnerDeletion: true } : {}) };
}

function referenceTo({ kind, metadata }: KubeObject): OwnerReference {
  return { apiVersion: 'v1', kind, name: metadata.name ?? '', uid: metadata.uid ?? '' };
}

function members({ state }: UserContext): KubeObject[] {
  return [...state.list('configmaps'), ...state.list('secrets')].filter(
    ({ metadata }) => metadata.labels?.[MARK] !== undefined && metadata.deletionTimestamp === undefined,
  );
}

/** Deletes one of them, in any way. */
export async function deleteMember(context: UserContext): Promise<void> {
  const { client, random, signal } = context;
  const member = oneOf(random, members(context));
  const propagationPolicy = oneOf<DeleteOptions['propagationPolicy']>(random, ['Background', 'Foreground', 'Orphan']);
  if (!member) return;
  const resource = member.kind === 'Secret' ? secrets : configMaps;
  const { name = '' } = member.metadata;
  await client.delete(resource, 'default', name, signal, propagationPolicy ? { propagationPolicy } : {});
}

/** Gives one of them another owner beside those that it has. */
export async function adoptMember(context: UserContext): Promise<void> {
  const { client, random, signal } = context;
  const [child, owner] = [oneOf(random, members(context)), oneOf(random, members(context))];
  if (!child || !owner || child.metadata.uid === owner.metadata.uid) return;
  const { name = '', uid = '', ownerReferences = [] } = child.metadata;
  if (ownerReferences.some((reference) => reference.uid === owner.metadata.uid)) return;
  const references = [...ownerReferences, referenceTo(owner)].map((reference) => ({ ...reference }));
  const { resourceVersion = '' } = child.metadata;
  const body = { metadata: { uid, resourceVersion, ownerReferences: references } };
  const resource = child.kind === 'Secret' ? secrets : configMaps;
  await client.patch(resource, 'default', name, { type: 'merge', body }, signal);
}
