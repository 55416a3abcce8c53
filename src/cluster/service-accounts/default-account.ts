import type { Client } from '../../kube/client.ts';
import type { Informer } from '../../kube/informer.ts';
import { serviceAccounts } from '../resources.ts';
import type { ServiceAccount } from './objects.ts';

/** What pods run as that name no account. */
export const DEFAULT_ACCOUNT = 'default';

/** Makes the default account of a namespace that has none. */
export async function ensureDefaultAccount(
  client: Client,
  accounts: Pick<Informer<ServiceAccount>, 'get'>,
  namespace: string,
  signal: AbortSignal,
): Promise<void> {
  if (accounts.get(`${namespace}/${DEFAULT_ACCOUNT}`)) return;
  const metadata = { name: DEFAULT_ACCOUNT, namespace };
  await client.create(serviceAccounts, { apiVersion: 'v1', kind: 'ServiceAccount', metadata }, signal);
}
