import { errorMessage } from '../../api/error-message.ts';
import { numberAt, objectAt, objectsAt, textAt, textsAt } from '../../api/kinds/core/fields.ts';
import { formatTime, type Json, type KubeObject } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import type { Env } from '../../env/ports.ts';
import type { Authorizer } from '../auth/rbac.ts';
import { Wakeup } from '../auth/wakeup.ts';
import { type Authority, DAY_MS } from '../../machinery/x509/authority.ts';
import { type CertificateRequest, parseCertificateRequest } from '../../machinery/x509/certificate-request.ts';
import { signRequest } from '../pki/sign-request.ts';
import type { Registry, WriteContext } from '../registry/contract.ts';
import { serverContext } from '../registry/server-context.ts';
import {
  automaticApproval,
  CERTIFICATES_GROUP,
  hasCondition,
  REQUESTS_BUCKET,
  requestPemOf,
  signerPolicies,
} from './certificate-policy.ts';

/** The longest validity, and that of requests which do not say; nodes renew theirs long before. */
const VALIDITY_MS_MAX = 365 * DAY_MS;
const VALIDITY_MS_MIN = 10 * 60_000;

/** A write that failed is tried again after this; the cause is a full disk or a storm of changes. */
const RETRY_AFTER_MS = 1_000;

/** What to do next about a request. */
type Step =
  | { readonly kind: 'wait' }
  | { readonly kind: 'approve'; readonly message: string }
  | { readonly kind: 'sign'; readonly certificatePem: string }
  | { readonly kind: 'fail'; readonly message: string };

/**
 * Approves the requests of nodes that may join, and signs what is approved for Kubernetes' own signers. A request that
 * is approved but breaks its signer's rules is marked Failed; one that nobody has decided about waits.
 */
export class CertificateSigner {
  readonly #env: Env;
  readonly #registry: Pick<Registry, 'view' | 'definition' | 'update'>;
  readonly #authorizer: Authorizer;
  readonly #authority: Authority;
  readonly #pending = new Set<string>();

  constructor(options: {
    readonly env: Env;
    readonly registry: Pick<Registry, 'view' | 'definition' | 'update'>;
    readonly authorizer: Authorizer;
    readonly authority: Authority;
  }) {
    this.#env = options.env;
    this.#registry = options.registry;
    this.#authorizer = options.authorizer;
    this.#authority = options.authority;
  }

  /** Works until the signal aborts: first through all that is there, then through each change. */
  async run(signal: AbortSignal): Promise<void> {
    const wake = new Wakeup(signal);
    const view = this.#registry.view(REQUESTS_BUCKET);
    const add = (object: KubeObject | undefined): void => {
      if (!object || !isOpen(object)) return;
      this.#pending.add(object.metadata.name ?? '');
      wake.ring();
    };
    view.onChange(add);
    for (const object of view.list()) add(object);
    while (await wake.wait()) {
      for (const name of this.#pending) {
        if (signal.aborted) return;
        this.#pending.delete(name);
        try {
          await this.#handle(name, serverContext(signal));
        } catch (error) {
          this.#env.log.warn('could not handle a certificate request', { name, error: ApiError.from(error).message });
          this.#env.clock.setTimer(() => add(view.get('', name)), RETRY_AFTER_MS);
        }
      }
    }
  }

  async #handle(name: string, context: WriteContext): Promise<void> {
    const object = this.#registry.view(REQUESTS_BUCKET).get('', name);
    if (!object || !isOpen(object)) return;
    const step = await this.#decide(object);
    switch (step.kind) {
      case 'wait':
        return;
      case 'approve':
        return this.#write(context, object, 'approval', (current) =>
          this.#withCondition(current, 'Approved', 'AutoApproved', step.message),
        );
      case 'fail':
        return this.#write(context, object, 'status', (current) =>
          this.#withCondition(current, 'Failed', 'SignerValidationFailure', step.message),
        );
      case 'sign':
        return this.#write(context, object, 'status', (current) => withCertificate(current, step.certificatePem));
    }
  }

  async #decide(object: KubeObject): Promise<Step> {
    const spec = objectAt(object, 'spec');
    const policy = signerPolicies.get(textAt(spec, 'signerName'));
    if (!policy) return { kind: 'wait' };
    let request: CertificateRequest;
    try {
      request = await parseCertificateRequest(requestPemOf(object));
    } catch (error) {
      // Admission lets no such request in; one that got in another way must not be tried for ever.
      return { kind: 'fail', message: errorMessage(error) };
    }
    if (!hasCondition(object, 'Approved')) {
      const message = automaticApproval(this.#authorizer, object, request);
      return message === undefined ? { kind: 'wait' } : { kind: 'approve', message };
    }
    const refusal = policy.refusal(request, textsAt(spec, 'usages'));
    if (refusal !== undefined) return { kind: 'fail', message: refusal };
    const validityMs = validityOf(numberAt(spec, 'expirationSeconds'));
    const certificatePem = await signRequest(this.#authority, request, { usages: policy.usages, validityMs });
    return { kind: 'sign', certificatePem };
  }

  /** Writes the outcome, unless the request was decided otherwise, deleted or replaced meanwhile. */
  async #write(
    context: WriteContext,
    object: KubeObject,
    subresource: string,
    change: (current: KubeObject) => KubeObject,
  ): Promise<void> {
    const definition = this.#registry.definition(CERTIFICATES_GROUP, 'v1', 'certificatesigningrequests');
    if (!definition) return;
    const target = { definition, namespace: '', name: object.metadata.name ?? '', subresource };
    try {
      await this.#registry.update(context, target, (current) =>
        isOpen(current) && current.metadata.uid === object.metadata.uid ? change(current) : current,
      );
    } catch (error) {
      if (!(error instanceof ApiError && error.reason === 'NotFound')) throw error;
    }
  }

  #withCondition(object: KubeObject, type: string, reason: string, message: string): KubeObject {
    const now = formatTime(this.#env.clock.now());
    const condition = { type, status: 'True', reason, message, lastUpdateTime: now, lastTransitionTime: now };
    const status = objectAt(object, 'status') ?? {};
    return { ...object, status: { ...status, conditions: [...objectsAt(status, 'conditions'), condition as Json] } };
  }
}

/** Whether there is anything left to decide or to sign. */
function isOpen(object: KubeObject): boolean {
  if (textAt(objectAt(object, 'status'), 'certificate') !== '') return false;
  return !hasCondition(object, 'Denied') && !hasCondition(object, 'Failed');
}

function withCertificate(object: KubeObject, pem: string): KubeObject {
  const certificate = Buffer.from(pem, 'utf8').toString('base64');
  return { ...object, status: { ...objectAt(object, 'status'), certificate } };
}

function validityOf(expirationSeconds: number | undefined): number {
  if (expirationSeconds === undefined) return VALIDITY_MS_MAX;
  return Math.min(VALIDITY_MS_MAX, Math.max(VALIDITY_MS_MIN, expirationSeconds * 1000));
}
