import type { Clock } from '../../env/ports.ts';
import type { Registry } from '../registry/contract.ts';
import { BootstrapTokens } from './bootstrap-tokens.ts';
import type { ServiceAccountTokens, TokenVerdict, TokenVerifier } from './tokens.ts';

/** Every kind of bearer token that the server knows. */
export class BearerTokens implements TokenVerifier {
  readonly #serviceAccounts: ServiceAccountTokens;
  readonly #bootstrap: BootstrapTokens;

  constructor(options: {
    readonly clock: Clock;
    readonly registry: Pick<Registry, 'view'>;
    readonly serviceAccounts: ServiceAccountTokens;
  }) {
    this.#serviceAccounts = options.serviceAccounts;
    this.#bootstrap = new BootstrapTokens(options.clock, options.registry);
  }

  async verify(token: string, audiences?: readonly string[]): Promise<TokenVerdict> {
    const user = this.#bootstrap.verify(token);
    if (!user) return this.#serviceAccounts.verify(token, audiences);
    // A bootstrap token says nothing about its audience: it is meant for this server and nobody else.
    const own = this.#serviceAccounts.audiences;
    const shared = audiences ? own.filter((audience) => audiences.includes(audience)) : own;
    if (shared.length === 0) return { valid: false, error: 'the token is not meant for the requested audiences' };
    return { valid: true, user, audiences: shared };
  }
}
