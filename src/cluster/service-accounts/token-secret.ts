import type { Secret, ServiceAccount } from './objects.ts';

/** Secrets that hold a token of a service account for as long as both exist. */

export const TOKEN_TYPE = 'kubernetes.io/service-account-token';
const ACCOUNT_NAME = 'kubernetes.io/service-account.name';
const ACCOUNT_UID = 'kubernetes.io/service-account.uid';

/** The key of the account that a secret is for. */
export function accountKeyOf({ metadata }: Secret): string {
  return `${metadata.namespace ?? ''}/${metadata.annotations?.[ACCOUNT_NAME] ?? ''}`;
}

/** Whether a secret is for this very account: one that has not been told yet may be any of the name. */
export function isFor(secret: Secret, account: ServiceAccount): boolean {
  const uid = secret.metadata.annotations?.[ACCOUNT_UID] ?? '';
  return uid === '' || uid === account.metadata.uid;
}

/** What a secret still lacks. */
export interface Lack {
  readonly certificate: boolean;
  readonly namespace: boolean;
  readonly token: boolean;
}

/** What a secret lacks, undefined where nothing; the certificate counts only where it is known. */
export function lackOf({ data = {} }: Secret, certificate: string | undefined): Lack | undefined {
  const lack = {
    certificate: certificate !== undefined && data['ca.crt'] !== encoded(certificate),
    namespace: !data['namespace'],
    token: !data['token'],
  };
  return lack.certificate || lack.namespace || lack.token ? lack : undefined;
}

/** The secret with what it lacked; `token` is there where that was lacking. */
export function completed(
  secret: Secret,
  account: ServiceAccount,
  lack: Lack,
  given: { readonly certificate: string | undefined; readonly token: string | undefined },
): Secret {
  const { metadata, data } = secret;
  const { name = '', uid = '' } = account.metadata;
  return {
    ...secret,
    metadata: { ...metadata, annotations: { ...metadata.annotations, [ACCOUNT_NAME]: name, [ACCOUNT_UID]: uid } },
    data: {
      ...data,
      ...(lack.certificate ? { 'ca.crt': encoded(given.certificate ?? '') } : {}),
      ...(lack.namespace ? { namespace: encoded(metadata.namespace ?? '') } : {}),
      ...(lack.token ? { token: encoded(given.token ?? '') } : {}),
    },
  };
}

function encoded(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64');
}
