import { Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { ManualClock, seededRandom } from '../../env/test.ts';
import { FixtureCluster, pass } from './clusters.fixture.ts';
import { encodeFrame } from './codec.ts';
import type { Frame } from './frame.ts';
import type { LinkHandlers } from './link.ts';
import { FixtureNetwork } from './network.fixture.ts';
import { StreamMetrics } from './stream-metrics.ts';

async function valueOf(registry: Registry, series: string): Promise<number> {
  const line = (await registry.metrics()).split('\n').find((each) => each.startsWith(`${series} `));
  return Number(line?.slice(series.length + 1));
}

it('has every series from the beginning', async () => {
  const registry = new Registry();
  expect(new StreamMetrics(registry)).toBeDefined();
  for (const series of [
    'godwit_synchronization_messages_total{direction="sent",kind="update"}',
    'godwit_synchronization_message_bytes_total{direction="received",kind="ack"}',
    'godwit_synchronization_streams{end="dialed"}',
    'godwit_synchronization_streams_opened_total{end="accepted"}',
  ])
    expect(await valueOf(registry, series)).toBe(0);
});

it('counts what goes over a link, in both directions, and hands it on', async () => {
  const registry = new Registry();
  const [sent, heard]: [Frame[], Frame[]] = [[], []];
  const far: { handlers?: LinkHandlers } = {};
  const link = new StreamMetrics(registry).metered({
    peer: 'b',
    validUntilMs: 7,
    check: () => undefined,
    listen: (handlers) => void (far.handlers = handlers),
    send: (frame) => void sent.push(frame),
    close: () => undefined,
  });
  expect(link).toMatchObject({ peer: 'b', validUntilMs: 7 });
  link.listen({ frame: (frame) => void heard.push(frame), ended: () => undefined });
  const frame: Frame = { kind: 'gone', seq: 1, key: 'k', role: 'source' };
  link.send(frame);
  far.handlers?.frame({ kind: 'ack', seqs: [1] });
  far.handlers?.frame({ kind: 'ack', seqs: [2] });
  expect([sent, heard]).toEqual([
    [frame],
    [
      { kind: 'ack', seqs: [1] },
      { kind: 'ack', seqs: [2] },
    ],
  ]);
  const messages = 'godwit_synchronization_messages_total';
  expect(await valueOf(registry, `${messages}{direction="sent",kind="gone"}`)).toBe(1);
  expect(await valueOf(registry, `${messages}{direction="received",kind="ack"}`)).toBe(2);
  const bytes = 'godwit_synchronization_message_bytes_total';
  expect(await valueOf(registry, `${bytes}{direction="sent",kind="gone"}`)).toBe(encodeFrame(frame).length);
});

it('tells streams that stand from those that have stood, and why dials came to nothing', async () => {
  const clock = new ManualClock();
  const network = new FixtureNetwork({ clock, random: seededRandom(7), delayMsMax: 20 });
  const registries = [new Registry(), new Registry()] as const;
  const [a] = (['a', 'b'] as const).map(
    (id, index) =>
      new FixtureCluster(id, {
        clock,
        network,
        seed: index,
        metrics: new StreamMetrics(registries[index] ?? new Registry()),
      }),
  );
  a?.dial('b');
  a?.dial('nowhere');
  await pass(clock, 1000);
  const [ofA, ofB] = registries;
  expect(await valueOf(ofA, 'godwit_synchronization_streams{end="dialed"}')).toBe(1);
  expect(await valueOf(ofB, 'godwit_synchronization_streams{end="accepted"}')).toBe(1);
  network.cut('b', false);
  await pass(clock, 5000);
  a?.hangUp('b');
  await pass(clock, 5000);
  expect(await valueOf(ofA, 'godwit_synchronization_streams{end="dialed"}')).toBe(0);
  expect(await valueOf(ofB, 'godwit_synchronization_streams{end="accepted"}')).toBe(0);
  expect(await valueOf(ofA, 'godwit_synchronization_streams_opened_total{end="dialed"}')).toBe(2);
  expect(await valueOf(ofB, 'godwit_synchronization_streams_opened_total{end="accepted"}')).toBe(2);
  expect(await valueOf(ofA, 'godwit_synchronization_dial_failures_total{code="Unreachable"}')).toBeGreaterThan(1);
});
