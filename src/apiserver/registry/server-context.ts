import type { UserInfo } from '../http/message.ts';
import type { WriteContext } from './contract.ts';

const SERVER: UserInfo = { username: 'system:apiserver', groups: ['system:masters', 'system:authenticated'] };

/**
 * The context of a write that the server makes on its own account: statuses, budgets, quotas, clean-ups. It passes no
 * admission, since bookkeeping must not wait for a webhook, least of all inside another admission; without a signal
 * it outlives the request that led to it.
 */
export function serverContext(signal: AbortSignal = new AbortController().signal): WriteContext {
  return { user: SERVER, dryRun: false, fieldManager: 'kube-apiserver', warnings: [], signal, isAdmitted: true };
}
