import { unauthorized } from '../../api/status.ts';
import type { Logger } from '../../env/ports.ts';
import type { ApiRequest, UserInfo } from '../http/message.ts';
import { impersonate } from './impersonation.ts';
import type { Authorizer } from './rbac.ts';
import type { TokenVerifier } from './tokens.ts';
import { ANONYMOUS, AUTHENTICATED_GROUP, CREDENTIAL_ID_KEY } from './users.ts';

const BEARER = /^bearer +(\S+)$/i;

type Credentials = Pick<ApiRequest, 'certificate' | 'isCertificateRefused' | 'headers' | 'remoteAddress'>;

/** Finds out who makes a request. */
export class Authenticator {
  readonly #log: Logger;
  readonly #tokens: TokenVerifier;
  readonly #authorizer: Authorizer;

  constructor(options: { readonly log: Logger; readonly tokens: TokenVerifier; readonly authorizer: Authorizer }) {
    this.#log = options.log;
    this.#tokens = options.tokens;
    this.#authorizer = options.authorizer;
  }

  /** Whom the request acts as. Throws 401 for credentials that do not hold, 403 for a refused impersonation. */
  async authenticate(request: Credentials): Promise<UserInfo> {
    return impersonate(this.#authorizer, await this.identify(request), request.headers);
  }

  /**
   * Who really makes the request, whomever it acts as. A client certificate counts before a token. Credentials that do
   * not hold are an error (401), never a reason to go on as nobody; only a request without any is anonymous.
   */
  async identify(request: Credentials): Promise<UserInfo> {
    const { certificate } = request;
    if (certificate) return certificateUser(certificate);
    const header = request.headers['authorization']?.trim() ?? '';
    if (header === '') {
      if (request.isCertificateRefused) throw unauthorized();
      return ANONYMOUS;
    }
    const token = BEARER.exec(header)?.[1];
    if (token === undefined) throw unauthorized();
    const verdict = await this.#tokens.verify(token);
    if (verdict.valid) return verdict.user;
    this.#log.debug('authentication failed', { error: verdict.error, remoteAddress: request.remoteAddress });
    throw unauthorized();
  }
}

type Certificate = NonNullable<ApiRequest['certificate']>;

/** By certificate, which a connection shows once and all its requests share. */
const certificateUsers = new WeakMap<Certificate, UserInfo>();

function certificateUser(certificate: Certificate): UserInfo {
  let user = certificateUsers.get(certificate);
  if (!user) certificateUsers.set(certificate, (user = readCertificateUser(certificate)));
  return user;
}

function readCertificateUser(certificate: Certificate): UserInfo {
  if (certificate.commonName === '') throw unauthorized();
  const fingerprint = certificate.fingerprint.replaceAll(':', '').toLowerCase();
  return {
    username: certificate.commonName,
    groups: [...certificate.organizations, AUTHENTICATED_GROUP],
    extra: { [CREDENTIAL_ID_KEY]: [`X509SHA256=${fingerprint}`] },
  };
}
