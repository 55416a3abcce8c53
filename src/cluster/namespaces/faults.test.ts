import { expect, it } from 'vitest';
import type { KubeObject } from '../../api/meta.ts';
import type { Random } from '../../env/ports.ts';
import { seededRandom } from '../../env/test.ts';
import type { Resource } from '../../kube/resource.ts';
import type { TransportRequest } from '../../kube/transport.ts';
import { FaultyWorld } from '../faulty-world.fixture.ts';
import { namespaces } from '../resources.ts';
import type { Namespace } from './conditions.ts';
import { namespaceLoop } from './loop.ts';

/** Namespaces that come and go with what is in them, while everything goes wrong that can. */

const ACTIONS = 60;
const core = (plural: string, kind: string): Resource => ({ group: '', version: 'v1', plural, kind, namespaced: true });
const KINDS: readonly Resource[] = [core('configmaps', 'ConfigMap'), core('secrets', 'Secret'), core('pods', 'Pod')];
const NAMES = ['a', 'b', 'c'];
const CONTAINERS = { spec: { containers: [{ name: 'main', image: 'none' }] } };

const contentOf = (world: FaultyWorld, namespace: string): string[] =>
  KINDS.flatMap(({ plural }) => world.keys(plural, `${namespace}/`).map((key) => `${plural} ${key}`));

/** Nothing may go whose namespace stays, and no namespace may be let go that is not empty. */
function judge({ method, path }: TransportRequest, world: FaultyWorld): string | undefined {
  const name = /\/namespaces\/([^/?]+)/.exec(path)?.[1] ?? '';
  const isTerminating = world.stored('namespaces', name)?.metadata.deletionTimestamp !== undefined;
  if (method === 'DELETE') {
    if (isTerminating || (world.stored('namespaces', name) === undefined && contentOf(world, name).length === 0))
      return undefined;
    return `the content of ${name} was deleted`;
  }
  if (!path.includes('/finalize') || contentOf(world, name).length === 0) return undefined;
  return `${name} was let go with ${contentOf(world, name).join(', ')}`;
}

class User {
  readonly #world: FaultyWorld;
  readonly #random: Random;
  #made = 0;

  constructor(world: FaultyWorld, seed: number) {
    this.#world = world;
    this.#random = seededRandom(seed);
  }

  async act(): Promise<void> {
    const { client, signal } = this.#world;
    const name = this.#pick(NAMES);
    const draw = this.#random.number();
    try {
      if (draw < 0.2) await client.create(namespaces, namespace(name), signal);
      else if (draw < 0.7) await this.#fill(name);
      else if (draw < 0.85) await client.delete(namespaces, '', name, signal);
      else await this.letGo();
    } catch (error) {
      // It is there already, or not there, or on its way out.
      expect(error).toMatchObject({ code: expect.toSatisfy((code: number) => [403, 404, 409].includes(code)) });
    }
  }

  /** Takes away the finalizers of all that has one. */
  async letGo(): Promise<void> {
    const { client, signal } = this.#world;
    for (const kind of KINDS) {
      for (const { metadata } of (await client.list(kind, {}, signal)).items) {
        if (metadata.finalizers === undefined) continue;
        const patch = { type: 'merge', body: { metadata: { finalizers: null } } } as const;
        await client.patch(kind, metadata.namespace ?? '', metadata.name ?? '', patch, signal);
      }
    }
  }

  async #fill(name: string): Promise<void> {
    const { client, signal } = this.#world;
    const kind = this.#pick(KINDS);
    const finalizers = this.#random.number() < 0.2 ? ['example.com/hold'] : [];
    const metadata = { name: `n${this.#made++}`, namespace: name, finalizers };
    const rest = kind.kind === 'Pod' ? CONTAINERS : {};
    await client.create(kind, { apiVersion: 'v1', kind: kind.kind, metadata, ...rest } as KubeObject, signal);
  }

  #pick<T>(from: readonly T[]): T {
    return from[Math.floor(this.#random.number() * from.length)] as T;
  }
}

function namespace(name: string): Namespace {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
}

it.each([1, 2, 3, 4])('end with all that is in them, and with nothing else (seed %i)', async (seed) => {
  const world = new FaultyWorld({ seed, loop: namespaceLoop, judge });
  await world.start();
  const user = new User(world, 1000 + seed);
  const random = seededRandom(2000 + seed);
  await world.pass(2000);
  for (let count = 0; count < ACTIONS; count++) {
    await user.act();
    await world.pass(random.number() < 0.5 ? 200 : 6000);
  }
  await world.calm();
  await user.letGo();
  const ending = (): string[] =>
    NAMES.filter((name) => world.stored('namespaces', name)?.metadata.deletionTimestamp !== undefined);
  for (let minutes = 0; minutes < 10 && ending().length > 0; minutes++) await world.pass(60_000, 5000);
  expect(world.wrongs).toEqual([]);
  expect(ending()).toEqual([]);
  const lost = NAMES.filter((name) => world.stored('namespaces', name) === undefined);
  expect(lost.flatMap((name) => contentOf(world, name))).toEqual([]);
  expect(world.writes).toBeGreaterThan(0);
  await world.stop();
});
