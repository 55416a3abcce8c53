import { SYSTEM_NAMESPACE } from '../api/kubevirt/well-known.ts';

/** Who the extension is, and who else belongs to Godwit. */

export const SERVICE_ACCOUNT = 'godwit-extension';
/** How API servers find the extension where it is a Service; as KubeVirt names it. */
export const SERVICE_NAME = 'virt-api';

const ACCOUNTS_PREFIX = `system:serviceaccount:${SYSTEM_NAMESPACE}:`;

/** The extension's own identity. */
export const EXTENSION_IDENTITY = {
  user: `${ACCOUNTS_PREFIX}${SERVICE_ACCOUNT}`,
  groups: ['system:serviceaccounts', `system:serviceaccounts:${SYSTEM_NAMESPACE}`],
} as const;

/** Accounts of Godwit's own begin so; others in its namespace are nobody special. */
export const OWN_ACCOUNTS_PREFIX = `${ACCOUNTS_PREFIX}godwit-`;

/** Whether a request is that of one of Godwit's own components, which may do what users may not. */
export function isOwnComponent(username: string | undefined): boolean {
  return username?.startsWith(OWN_ACCOUNTS_PREFIX) ?? false;
}
