import { type GuestOptions, probe } from './guest-manifests.ts';
import type { MovingGuests } from './moving-guests.ts';
import type { TripScene } from './trip-moments.ts';
import { type Trip, TwoClusters } from './two-clusters.ts';

/** Guests that go from one cluster to another, slowly enough for something to happen on the way. */

const LABELS = { pace: 'slow' };

/** Two clusters that trust each other, where copies of such guests take about two seconds. */
export async function pacedClusters(): Promise<TwoClusters> {
  const clusters = await TwoClusters.start();
  await clusters.exchangeTrust();
  for (const each of clusters.both) await each.policy('paced', LABELS, { bandwidthPerMigration: '6Mi' });
  return clusters;
}

/** A guest is made in the east, and is about to go to the west, into a namespace of its own where one is given. */
export async function setOut(
  clusters: TwoClusters,
  name: string,
  { namespace, ...options }: GuestOptions & { readonly namespace?: string } = {},
): Promise<TripScene> {
  const trip = clusters.trip(name, clusters.east);
  if (namespace !== undefined) {
    const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } };
    (await trip.to.host.api.request('POST', '/api/v1/namespaces', { body })).expect(201);
    trip.to.host.isIn(name, namespace);
  }
  const work = `mib=12 hz=200 rate=4 ${options.arguments ?? ''}`;
  const spec = probe({ tickMs: 50, memory: '32Mi', ...options, arguments: work });
  await trip.from.create(name, spec, LABELS);
  await clusters.receiver(trip, spec, { labels: LABELS });
  return begin(clusters, trip);
}

/** It is about to go once more, from where it is by now. */
export async function setOutAgain(clusters: TwoClusters, name: string, from: MovingGuests): Promise<TripScene> {
  const trip = clusters.trip(name, from);
  await clusters.receiverAgain(trip);
  return begin(clusters, trip);
}

async function begin(clusters: TwoClusters, trip: Trip): Promise<TripScene> {
  return { ...trip, home: await trip.from.holder(trip.name), halves: await clusters.begin(trip) };
}
