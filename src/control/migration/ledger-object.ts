import { SYSTEM_NAMESPACE } from '../../api/kubevirt/well-known.ts';
import type { KubeObject } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import type { Client } from '../../kube/client.ts';
import type { Resource } from '../../kube/resource.ts';
import type { SlotLedger } from '../../migration/slots/ledger.ts';
import { formatLedger, parseLedger } from '../../migration/slots/ledger-text.ts';

/**
 * The object that the ledger is kept in: a ConfigMap, since that is there in every cluster before anything is installed,
 * can be read by whoever looks, and takes a megabyte; a Lease has no room for holders, and a kind of our own would
 * vanish with its definition, which is the worst time for limits to be forgotten.
 */

/** Name of the ConfigMap. */
export const LEDGER_NAME = 'godwit-migration-slots';

interface ConfigMap extends KubeObject {
  data?: { readonly limits?: string; readonly holders?: string };
}

/** As it is on the server. */
export interface StoredLedger {
  readonly ledger: SlotLedger;
  readonly object: ConfigMap;
}

export const configMaps: Resource<ConfigMap> = {
  group: '',
  version: 'v1',
  plural: 'configmaps',
  kind: 'ConfigMap',
  namespaced: true,
};

/** The newest ledger that there is; undefined where there is none. Rejects where nobody can read it. */
export async function readLedger(client: Client, signal: AbortSignal): Promise<StoredLedger | undefined> {
  const object = await client.find(configMaps, SYSTEM_NAMESPACE, LEDGER_NAME, signal);
  return object && { object, ledger: parseLedger(object.data ?? {}) };
}

/** Writes a ledger in the place of the one that was read, and of no other. Undefined where another one came first. */
export async function replaceLedger(
  client: Client,
  { object }: StoredLedger,
  ledger: SlotLedger,
  signal: AbortSignal,
): Promise<StoredLedger | undefined> {
  return unlessOvertaken(async () => {
    const written = await client.update(configMaps, { ...object, data: { ...formatLedger(ledger) } }, signal);
    return { object: written, ledger };
  });
}

/** Writes the first ledger. Undefined where there is one. */
export async function createLedger(
  client: Client,
  ledger: SlotLedger,
  signal: AbortSignal,
): Promise<StoredLedger | undefined> {
  const metadata = { namespace: SYSTEM_NAMESPACE, name: LEDGER_NAME };
  const object: ConfigMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { ...formatLedger(ledger) } };
  return unlessOvertaken(async () => ({ object: await client.create(configMaps, object, signal), ledger }));
}

async function unlessOvertaken<T>(write: () => Promise<T>): Promise<T | undefined> {
  try {
    return await write();
  } catch (error) {
    // Changed, made, or deleted by somebody else meanwhile: the ledger has to be read again.
    if (error instanceof ApiError && (error.code === 409 || error.code === 404)) return undefined;
    throw error;
  }
}
