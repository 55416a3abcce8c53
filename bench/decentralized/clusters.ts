import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ownBundleOf, withPeer } from '../../src/sync/trust/objects.ts';
import type { LoadConnection } from '../load-connection.ts';
import { until } from '../migration/until.ts';
import type { LocalCluster } from '../vm/local-cluster.ts';

/** Clusters whose guests may go from one to the other. */

const KUBEVIRT = '/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt';
const CONFIG_MAPS = '/api/v1/namespaces/kubevirt/configmaps';

/** A cluster whose synchronization controller is there. */
export interface Joined {
  readonly cluster: LocalCluster;
  readonly connection: LoadConnection;
  /** Where its synchronization controller is reached. */
  readonly address: string;
}

interface KubeVirt {
  readonly metadata: object;
  readonly spec: {
    readonly configuration?: {
      readonly migrations?: object;
    };
  };
  readonly status?: { readonly synchronizationAddresses?: readonly string[] };
}

interface ConfigMap {
  readonly metadata: object;
  readonly data?: Record<string, string>;
}

/** Sets these limits of migrations, and lets both clusters trust each other: their synchronization controllers start. */
export async function joinClusters(
  east: LocalCluster,
  west: LocalCluster,
  limits: object = {},
): Promise<readonly [Joined, Joined]> {
  const [one, other] = await Promise.all([limited(east, limits), limited(west, limits)]);
  await trust(one, other, 'west');
  await trust(other, one, 'east');
  return Promise.all([joined(east, one), joined(west, other)]);
}

async function limited(cluster: LocalCluster, limits: object): Promise<LoadConnection> {
  const connection = await cluster.connect();
  await change(connection, KUBEVIRT, (found) => {
    const { spec } = found as unknown as KubeVirt;
    const { configuration } = spec;
    const migrations = { ...configuration?.migrations, ...limits };
    return { spec: { ...spec, configuration: { ...configuration, migrations } } };
  });
  return connection;
}

async function joined(cluster: LocalCluster, connection: LoadConnection): Promise<Joined> {
  const address = await until(async () => {
    const { status } = JSON.parse(await connection.text('GET', KUBEVIRT)) as KubeVirt;
    return status?.synchronizationAddresses?.[0];
  }, 'there is no synchronization controller');
  return { cluster, connection, address };
}

/** What `godwit trust` does with what it exports there and imports here. */
async function trust(here: LoadConnection, there: LoadConnection, name: string): Promise<void> {
  const bundle = await until(async () => {
    const path = `${CONFIG_MAPS}/godwit-synchronization-bundle`;
    return ownBundleOf((JSON.parse(await there.text('GET', path)) as ConfigMap).data);
  }, `${name} has no authorities`);
  await change(here, `${CONFIG_MAPS}/godwit-trust`, (found) => ({
    data: withPeer((found as ConfigMap).data ?? {}, { ...bundle, name }),
  }));
}

/** Replaces an object by itself with other fields. Others write to it, too: one of the two may have to look again. */
export async function change(
  connection: LoadConnection,
  path: string,
  fields: (found: { readonly metadata: object }) => object,
): Promise<void> {
  await until(async () => {
    const found = JSON.parse(await connection.text('GET', path)) as { metadata: object };
    // Small, as bodies of a load connection have to be.
    const metadata = { ...found.metadata, managedFields: undefined };
    const body = JSON.stringify({ ...found, ...fields(found), metadata, status: undefined });
    return connection.request('PUT', path, body).catch(() => undefined);
  }, `${path} cannot be written`);
}

/** The process of the synchronization controller. */
export function synchronizationPid({ cluster }: Joined): number {
  const lock = readFileSync(join(cluster.dataDirectory, 'synchronization', 'lock'), 'utf8');
  return (JSON.parse(lock) as { pid: number }).pid;
}
