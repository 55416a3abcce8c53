import { expect, it } from 'vitest';
import type { KubeObject, OwnerReference } from '../../api/meta.ts';
import type { Random } from '../../env/ports.ts';
import { seededRandom } from '../../env/test.ts';
import { FaultyWorld, KINDS } from './faulty-world.fixture.ts';
import { referencesOf } from './graph.ts';

/** A garbage collector among people who make and delete things, while everything goes wrong that can. */

const PLAN = {
  requestLost: 0.03,
  answerLost: 0.03,
  timeoutMs: 3000,
  conflict: 0.05,
  unavailable: 0.03,
  slow: 0.1,
  slowMsMax: 2000,
  crash: 0.1,
  stale: 0.03,
  staleMsMax: 20_000,
  watchCut: 0.02,
  watchExpired: 0.02,
  watchDelay: 0.3,
  watchDelayMsMax: 8000,
  watchDuplicate: 0.05,
};
const ACTIONS = 80;
const POLICIES = ['Background', 'Foreground', 'Orphan'] as const;

/** Those who were promised to be spared: their only owner was deleted so, and nobody else has anything against them. */
class Promises {
  readonly #spared = new Set<string>();

  made(all: Awaited<ReturnType<FaultyWorld['all']>>, owner: KubeObject): void {
    for (const { object } of all) {
      const [only, ...others] = referencesOf(object.metadata);
      if (only?.uid === owner.metadata.uid && others.length === 0 && !object.metadata.deletionTimestamp)
        this.#spared.add(object.metadata.uid ?? '');
    }
  }

  ended({ metadata }: KubeObject): void {
    this.#spared.delete(metadata.uid ?? '');
  }

  broken(all: Awaited<ReturnType<FaultyWorld['all']>>): string[] {
    const there = new Set(all.map(({ object }) => object.metadata.uid ?? ''));
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
    const all = await this.#world.all();
    const count = this.#made < 3 ? 0 : 1 + Math.floor(this.#random.number() * 2);
    const owners = new Set(Array.from({ length: count }, () => this.#pick(all)?.object));
    const references = [...owners].filter((each) => each !== undefined).map((each) => this.#referenceTo(each));
    await this.#world.make(this.#pick(KINDS)!, `n${this.#made++}`, references);
  }

  async #delete(): Promise<void> {
    const all = await this.#world.all();
    const chosen = this.#pick(all);
    if (!chosen) return;
    const { kind, object } = chosen;
    const propagationPolicy = this.#pick(POLICIES)!;
    const { namespace = '', name = '', deletionTimestamp } = object.metadata;
    if (deletionTimestamp !== undefined) return;
    this.promises.ended(object);
    await this.#world.client.delete(kind, namespace, name, this.#world.signal, { propagationPolicy });
    if (propagationPolicy === 'Orphan') this.promises.made(await this.#world.all(), object);
  }

  /** Gives something another owner. */
  async #adopt(): Promise<void> {
    const all = await this.#world.all();
    const [dependent, owner] = [this.#pick(all), this.#pick(all)];
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
  return (await world.all())
    .filter(({ object: { metadata } }) => {
      const references = referencesOf(metadata);
      const isUnowned = references.length > 0 && references.every((each) => world.ownerOf(each) === undefined);
      return isUnowned || metadata.deletionTimestamp !== undefined;
    })
    .map(({ object }) => JSON.stringify(object.metadata));
}

it.each([101, 102, 104, 105])('spares who has an owner, and no one else (seed %i)', async (seed) => {
  const world = new FaultyWorld(seed, PLAN);
  await world.start();
  const random = seededRandom(1000 + seed);
  const user = new User(world, random);
  await world.pass(2000);
  for (let count = 0; count < ACTIONS; count++) {
    await user.act();
    await world.pass(random.number() < 0.5 ? 200 : 6000, 1000);
  }
  await world.calm();
  for (let minutes = 0; minutes < 30 && (await garbage(world)).length > 0; minutes++) await world.pass(60_000, 5000);
  expect(world.wrongs).toEqual([]);
  expect(await garbage(world)).toEqual([]);
  expect(user.promises.broken(await world.all())).toEqual([]);
  expect(world.deletions).toBeGreaterThan(0);
  await world.stop();
});
