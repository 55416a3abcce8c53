import { expect, it } from 'vitest';
import { formatTime, type JsonObject } from '../../api/meta.ts';
import type { Random } from '../../env/ports.ts';
import { seededRandom } from '../../env/test.ts';
import type { TransportRequest } from '../../kube/transport.ts';
import type { Pod } from '../../migration/fit/objects.ts';
import { FaultyWorld } from '../faulty-world.fixture.ts';
import { nodes, pods } from '../resources.ts';
import { taintEvictionLoop } from './loop.ts';

/** Taints that come and go, while everything goes wrong that can. */

const ACTIONS = 100;
const NODES = ['a', 'b', 'c'];
const KEY = 'k';
/** How long a decision may be on its way: what it was taken on may have changed meanwhile. */
const ON_THE_WAY_MS = 5000;
/** How long nobody may have noticed that a taint without a time went and came back. */
const UNNOTICED_MS = 10_000;
/** How long pods tolerate the taint; null for ever. */
const TOLERATIONS = [0, 5, 30, null];

interface Period {
  readonly sinceMs: number;
  readonly untilMs: number;
}

/** When nodes have had the taint, the last time first. */
const tainted = new Map<string, readonly Period[]>();

function toleratedMs({ spec }: Pod): number {
  const toleration = spec?.tolerations?.find(({ key }) => key === KEY);
  if (!toleration) return 0;
  return (toleration.tolerationSeconds ?? Number.POSITIVE_INFINITY) * 1000;
}

/** No pod may be deleted from a node that has no taint, nor before its time. */
function judge({ method, path }: TransportRequest, world: FaultyWorld): string | undefined {
  if (method !== 'DELETE') return undefined;
  const pod = world.stored('pods', path.replace(/.*\/namespaces\/([^/]+)\/pods\/([^?]+).*/, '$1/$2')) as
    | Pod
    | undefined;
  if (!pod) return undefined;
  const periods = tainted.get(pod.spec?.nodeName ?? '') ?? [];
  const nowMs = world.clock.now();
  if (!periods.some(({ untilMs }) => untilMs >= nowMs - ON_THE_WAY_MS))
    return `${pod.metadata.name} had to leave for no taint`;
  const bornMs = Date.parse(pod.metadata.creationTimestamp ?? '');
  const isDue = periods.some(
    ({ sinceMs, untilMs }) => untilMs >= nowMs - UNNOTICED_MS && Math.max(sinceMs, bornMs) + toleratedMs(pod) <= nowMs,
  );
  return isDue ? undefined : `${pod.metadata.name} had to leave too early`;
}

function hasTaint(node: string): boolean {
  return tainted.get(node)?.[0]?.untilMs === Number.POSITIVE_INFINITY;
}

async function setTaint(world: FaultyWorld, random: Random, node: string): Promise<void> {
  const nowMs = world.clock.now();
  const hasIt = hasTaint(node);
  const [last, ...earlier] = tainted.get(node) ?? [];
  if (hasIt && last) tainted.set(node, [{ ...last, untilMs: nowMs }, ...earlier]);
  else tainted.set(node, [{ sinceMs: nowMs, untilMs: Number.POSITIVE_INFINITY }, ...(last ? [last, ...earlier] : [])]);
  const taint: JsonObject = { key: KEY, effect: 'NoExecute' };
  if (random.number() < 0.5) taint['timeAdded'] = formatTime(nowMs);
  const body = { spec: { taints: hasIt ? [] : [taint] } };
  await world.client.patch(nodes, '', node, { type: 'merge', body }, world.signal);
}

async function makePod(world: FaultyWorld, random: Random, name: string): Promise<void> {
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random.number() * from.length)] as T;
  const seconds = pick(TOLERATIONS);
  const toleration = { key: KEY, operator: 'Exists', effect: 'NoExecute' };
  const spec = {
    nodeName: pick(NODES),
    containers: [{ name: 'main', image: 'none' } as object],
    tolerations: seconds === 0 ? [] : [{ ...toleration, ...(seconds === null ? {} : { tolerationSeconds: seconds }) }],
  };
  const metadata = { name, namespace: 'default' };
  await world.client.create(pods, { apiVersion: 'v1', kind: 'Pod', metadata, spec }, world.signal);
}

/** Pods that are not where they should be by now. */
async function misplaced(world: FaultyWorld): Promise<string[]> {
  const { items } = await world.client.list(pods, {}, world.signal);
  return items
    .filter((pod) => {
      const isLeaving = pod.metadata.deletionTimestamp !== undefined;
      const isTold = pod.status?.conditions?.some(({ reason }) => reason === 'DeletionByTaintManager') ?? false;
      return (
        (isLeaving && !isTold) ||
        (!isLeaving && hasTaint(pod.spec?.nodeName ?? '') && toleratedMs(pod) < Number.POSITIVE_INFINITY)
      );
    })
    .map(({ metadata }) => JSON.stringify(metadata));
}

it.each([201, 202, 203, 204])('pods leave when they have to, and not before (seed %i)', async (seed) => {
  tainted.clear();
  const world = new FaultyWorld({ seed, loop: taintEvictionLoop, judge });
  await world.start();
  for (const name of NODES)
    await world.client.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name } }, world.signal);
  const random = seededRandom(1000 + seed);
  for (let count = 0; count < ACTIONS; count++) {
    if (random.number() < 0.5) await makePod(world, random, `p${count}`);
    else await setTaint(world, random, NODES[Math.floor(random.number() * NODES.length)] ?? '');
    await world.pass(random.number() < 0.6 ? 300 : 5000);
  }
  await world.calm();
  for (let minutes = 0; minutes < 10 && (await misplaced(world)).length > 0; minutes++) await world.pass(60_000, 5000);
  expect(world.wrongs).toEqual([]);
  expect(await misplaced(world)).toEqual([]);
  expect(world.writes).toBeGreaterThan(10);
  await world.stop();
});
