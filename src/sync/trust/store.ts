import { SYSTEM_NAMESPACE } from '../../api/kubevirt/well-known.ts';
import type { KubeObject } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import type { Client } from '../../kube/client.ts';
import { deepEqual } from '../../machinery/equal.ts';
import type { AuthorityEnv } from '../../machinery/x509/authority.ts';
import {
  AUTHORITY_SECRET,
  BUNDLE_CONFIG_MAP,
  configMaps,
  ownBundleData,
  secrets,
  TRUST_CONFIG_MAP,
} from './objects.ts';
import { bundleOf, fromSecretData, kept, type OwnAuthorities, secretData } from './own-authorities.ts';

/** Reads and writes what trust is made of. Whoever writes at the same time is never overwritten. */

/** Somebody imports while a peer renews; more often than this nobody is that unlucky. */
const ATTEMPTS_MAX = 5;

/** What to write in the place of what is there; undefined where that can stay. */
type Change = (data: Readonly<Record<string, string>>) => Record<string, string> | undefined;

/** Changes the clusters that are trusted. */
export function changeTrust(client: Client, change: Change, signal: AbortSignal): Promise<void> {
  return changeConfigMap(client, TRUST_CONFIG_MAP, change, signal);
}

/** This cluster's authorities as they should be now, on the server as well, for peers and for whoever exports them. */
export async function keepAuthorities(
  { client, env, clusterId }: { readonly client: Client; readonly env: AuthorityEnv; readonly clusterId: string },
  signal: AbortSignal,
): Promise<OwnAuthorities> {
  const own = await unlessOvertaken(async () => {
    const secret = await client.find(secrets, SYSTEM_NAMESPACE, AUTHORITY_SECRET, signal);
    const known = fromSecretData(secret?.data ?? {});
    const wanted = await kept(known, env, clusterId);
    if (wanted === known) return known;
    const data = secretData(wanted);
    if (secret) await client.update(secrets, { ...secret, data }, signal);
    else await client.create(secrets, { ...named('Secret', AUTHORITY_SECRET), type: 'Opaque', data }, signal);
    return wanted;
  });
  const published = ownBundleData(clusterId, bundleOf(own));
  await changeConfigMap(
    client,
    BUNDLE_CONFIG_MAP,
    (data) => (deepEqual(data, published) ? undefined : published),
    signal,
  );
  return own;
}

function changeConfigMap(client: Client, name: string, change: Change, signal: AbortSignal): Promise<void> {
  return unlessOvertaken(async () => {
    const object = await client.find(configMaps, SYSTEM_NAMESPACE, name, signal);
    const data = change(object?.data ?? {});
    if (!data) return;
    if (object) await client.update(configMaps, { ...object, data }, signal);
    else await client.create(configMaps, { ...named('ConfigMap', name), data }, signal);
  });
}

function named(kind: string, name: string): KubeObject {
  return { apiVersion: 'v1', kind, metadata: { namespace: SYSTEM_NAMESPACE, name } };
}

async function unlessOvertaken<T>(write: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await write();
    } catch (error) {
      // Somebody else was faster: what they wrote is the starting point now.
      if (!(error instanceof ApiError && error.code === 409) || attempt === ATTEMPTS_MAX) throw error;
    }
  }
}
