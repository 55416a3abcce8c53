import { createHash, timingSafeEqual } from 'node:crypto';
import {
  BOOTSTRAP_TOKEN,
  BOOTSTRAP_TOKEN_NAMESPACE,
  BOOTSTRAP_TOKEN_TYPE,
  bootstrapTokenEndMs,
  bootstrapTokenSecretName,
} from '../../api/bootstrap-token.ts';
import { objectAt, textAt } from '../../api/kinds/core/fields.ts';
import type { KubeObject } from '../../api/meta.ts';
import type { Clock } from '../../env/ports.ts';
import type { UserInfo } from '../http/message.ts';
import type { Registry } from '../registry/contract.ts';
import { AUTHENTICATED_GROUP } from './users.ts';

const EXTRA_GROUP = /^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$/;

/** Tokens with which a machine joins the cluster, each a Secret `bootstrap-token-<id>` in kube-system. */
export class BootstrapTokens {
  readonly #clock: Clock;
  readonly #registry: Pick<Registry, 'view'>;

  constructor(clock: Clock, registry: Pick<Registry, 'view'>) {
    this.#clock = clock;
    this.#registry = registry;
  }

  /** Whose token this is, or undefined if it is no valid bootstrap token, for whatever reason. */
  verify(token: string): UserInfo | undefined {
    const [, id = '', secret = ''] = BOOTSTRAP_TOKEN.exec(token) ?? [];
    if (id === '') return undefined;
    const object = this.#registry.view('secrets').get(BOOTSTRAP_TOKEN_NAMESPACE, bootstrapTokenSecretName(id));
    if (!object || object['type'] !== BOOTSTRAP_TOKEN_TYPE || object.metadata.deletionTimestamp !== undefined)
      return undefined;
    // The secret first, and always: how long the answer takes must not depend on anything but the id.
    const isRight = isSame(dataOf(object, 'token-secret'), secret);
    if (!isRight || dataOf(object, 'token-id') !== id) return undefined;
    if (dataOf(object, 'usage-bootstrap-authentication') !== 'true' || this.#hasExpired(object)) return undefined;
    const groups = groupsOf(object);
    return groups && { username: `system:bootstrap:${id}`, groups: [...groups, AUTHENTICATED_GROUP] };
  }

  #hasExpired(secret: KubeObject): boolean {
    return bootstrapTokenEndMs(dataOf(secret, 'expiration')) <= this.#clock.now();
  }
}

/** The default group and the secret's own; undefined if it names one that a bootstrap token cannot give. */
function groupsOf(secret: KubeObject): string[] | undefined {
  const groups = new Set(['system:bootstrappers']);
  const extra = dataOf(secret, 'auth-extra-groups');
  for (const group of extra === '' ? [] : extra.split(',')) {
    if (!EXTRA_GROUP.test(group)) return undefined;
    groups.add(group);
  }
  return [...groups].sort();
}

function dataOf(secret: KubeObject, key: string): string {
  return Buffer.from(textAt(objectAt(secret, 'data'), key), 'base64').toString('utf8');
}

/** Compares digests, so that neither the content nor the length shows in the time it takes. */
function isSame(a: string, b: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}
