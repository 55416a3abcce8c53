import { expect, it } from 'vitest';
import type { KubeObject, OwnerReference } from '../../api/meta.ts';
import type { Random } from '../../env/ports.ts';
import { seededRandom } from '../../env/test.ts';
import type { Resource } from '../../kube/resource.ts';
import type { TransportRequest } from '../../kube/transport.ts';
import { FaultyWorld } from '../faulty-world.fixture.ts';
import { namespaces } from '../resources.ts';
import { isDeletingDependents, referencesOf } from './graph.ts';
import { garbageCollectionLoop } from './loop.ts';

/** A garbage collector among people who make and delete things, while everything goes wrong that can. */

const ACTIONS = 80;
const POLICIES = ['Background', 'Foreground', 'Orphan'] as const;
const core = (plural: string, kind: string): Resource => ({ group: '', version: 'v1', plural, kind, namespaced: true });
/** Kinds that own each other here. */
const KINDS: readonly Resource[] = [core('configmaps', 'ConfigMap'), core('secrets', 'Secret')];

interface Found {
  readonly kind: Resource;
  readonly object: KubeObject;
}

async function all({ client, signal }: FaultyWorld): Promise<readonly Found[]> {
  const lists = await Promise.all(KINDS.map((kind) => client.list(kind, { namespace: 'room' }, signal)));
  return lists.flatMap(({ items }, index) => items.map((object) => ({ kind: KINDS[index] as Resource, object })));
}

/** The owner that a reference leads to, if it exists. */
function ownerOf(world: FaultyWorld, { kind, name, uid }: OwnerReference): KubeObject | undefined {
  const owner = world.stored(KINDS.find((each) => each.kind === kind)?.plural ?? '', `room/${name}`);
  return owner?.metadata.uid === uid ? owner : undefined;
}

/** Nothing may be deleted that nobody ever owned, or that somebody still does. */
function judge({ method, path }: TransportRequest, world: FaultyWorld): string | undefined {
  if (method !== 'DELETE') return undefined;
  const [, plural = '', name = ''] = /\/namespaces\/room\/([a-z]+)\/([^?]+)/.exec(path) ?? [];
  const stored = world.stored(plural, `room/${name}`);
  if (!stored) return undefined;
  const references = referencesOf(stored.metadata);
  const living = references
    .map((reference) => ownerOf(world, reference))
    .find((owner) => owner !== undefined && !isDeletingDependents(owner.metadata));
  if (references.length > 0 && living === undefined) return undefined;
  return `${name} was deleted though ${living?.metadata.name ?? 'nobody ever'} owned it`;
}

/** Those who were promised to be spared: their only owner was deleted so, and nobody else has anything against them. */
class Promises {
  readonly #spared = new Set<string>();

  made(found: readonly Found[], owner: KubeObject): void {
    for (const { object } of found) {
      const [only, ...others] = referencesOf(object.metadata);
      if (only?.uid === owner.metadata.uid && others.length === 0 && !object.metadata.deletionTimestamp)
        this.#spared.add(object.metadata.uid ?? '');
    }
  }

  ended({ metadata }: KubeObject): void {
    this.#spared.delete(metadata.uid ?? '');
  }

  broken(found: readonly Found[]): string[] {
    const there = new Set(found.map(({ object }) => object.metadata.uid ?? ''));
    return [...this.#spared].filter((uid) => !there.has(uid));
  }
}

class User {
  readonly promises = new Promises();
  readonly #world: FaultyWorld;
  readonly #random: Random;
  #made = 0;

  constructor(world: FaultyWorld, random: Random) {
    this.#world = world;
    this.#random = random;
  }

  async act(): Promise<void> {
    const draw = this.#random.number();
    try {
      if (draw < 0.55) await this.#make();
      else if (draw < 0.85) await this.#delete();
      else await this.#adopt();
    } catch (error) {
      // The collector was faster.
      expect(error).toMatchObject({ code: expect.toSatisfy((code: number) => [404, 409, 422].includes(code)) });
    }
  }

  #pick<T>(from: readonly T[]): T | undefined {
    return from[Math.floor(this.#random.number() * from.length)];
  }

  async #make(): Promise<void> {
    const found = await all(this.#world);
    const count = this.#made < 3 ? 0 : 1 + Math.floor(this.#random.number() * 2);
    const owners = new Set(Array.from({ length: count }, () => this.#pick(found)?.object));
    const references = [...owners].filter((each) => each !== undefined).map((each) => this.#referenceTo(each));
    const kind = this.#pick(KINDS)!;
    const metadata = { name: `n${this.#made++}`, namespace: 'room', ownerReferences: references };
    await this.#world.client.create(kind, { apiVersion: 'v1', kind: kind.kind, metadata }, this.#world.signal);
  }

  async #delete(): Promise<void> {
    const found = await all(this.#world);
    const chosen = this.#pick(found);
    if (!chosen) return;
    const { kind, object } = chosen;
    const propagationPolicy = this.#pick(POLICIES)!;
    const { namespace = '', name = '', deletionTimestamp } = object.metadata;
    if (deletionTimestamp !== undefined) return;
    this.promises.ended(object);
    await this.#world.client.delete(kind, namespace, name, this.#world.signal, { propagationPolicy });
    if (propagationPolicy === 'Orphan') this.promises.made(await all(this.#world), object);
  }

  /** Gives something another owner. */
  async #adopt(): Promise<void> {
    const found = await all(this.#world);
    const [dependent, owner] = [this.#pick(found), this.#pick(found)];
    if (!dependent || !owner || dependent === owner) return;
    const { namespace = '', name = '', resourceVersion = '' } = dependent.object.metadata;
    const ownerReferences = [{ ...this.#referenceTo(owner.object) }];
    this.promises.ended(dependent.object);
    const body = { metadata: { resourceVersion, ownerReferences } };
    await this.#world.client.patch(dependent.kind, namespace, name, { type: 'merge', body }, this.#world.signal);
  }

  #referenceTo({ apiVersion, kind, metadata }: KubeObject): OwnerReference {
    const { name = '', uid = '' } = metadata;
    return { apiVersion, kind, name, uid, blockOwnerDeletion: this.#random.number() < 0.5 };
  }
}

/** What should not be there any more when all has come to rest. */
async function garbage(world: FaultyWorld): Promise<string[]> {
  return (await all(world))
    .filter(({ object: { metadata } }) => {
      const references = referencesOf(metadata);
      const isUnowned = references.length > 0 && references.every((each) => ownerOf(world, each) === undefined);
      return isUnowned || metadata.deletionTimestamp !== undefined;
    })
    .map(({ object }) => JSON.stringify(object.metadata));
}

it.each([101, 102, 104, 105])('spares who has an owner, and no one else (seed %i)', async (seed) => {
  const world = new FaultyWorld({ seed, loop: garbageCollectionLoop, judge });
  await world.start();
  const room = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'room' } };
  await world.client.create(namespaces, room, world.signal);
  const random = seededRandom(1000 + seed);
  const user = new User(world, random);
  await world.pass(2000);
  for (let count = 0; count < ACTIONS; count++) {
    await user.act();
    await world.pass(random.number() < 0.5 ? 200 : 6000);
  }
  await world.calm();
  for (let minutes = 0; minutes < 30 && (await garbage(world)).length > 0; minutes++) await world.pass(60_000, 5000);
  expect(world.wrongs).toEqual([]);
  expect(await garbage(world)).toEqual([]);
  expect(user.promises.broken(await all(world))).toEqual([]);
  expect(world.writes).toBeGreaterThan(0);
  await world.stop();
});
