import type { FieldError } from '../../api/field-error.ts';
import type { JsonObject, KubeObject } from '../../api/meta.ts';
import { badRequest, type Status, type StatusCause } from '../../api/status.ts';
import { decodeJson } from '../../machinery/decode.ts';

/** AdmissionReview as webhooks see it: the question, and what may be answered. */

export interface AdmissionRequest {
  readonly uid: string;
  readonly resource: { readonly group: string; readonly version: string; readonly resource: string };
  readonly subResource?: string;
  readonly name?: string;
  readonly namespace?: string;
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT';
  readonly userInfo: {
    readonly username?: string;
    readonly uid?: string;
    readonly groups?: readonly string[];
    readonly extra?: Readonly<Record<string, readonly string[]>>;
  };
  readonly dryRun?: boolean;
  /** Absent where something is deleted. */
  readonly object?: KubeObject | null;
  /** Absent where something is created. */
  readonly oldObject?: KubeObject | null;
}

/** What a webhook says. */
export type Verdict =
  | {
      readonly allowed: true;
      readonly warnings?: readonly string[];
      /** A JSON patch; from those who may change objects. */
      readonly patch?: readonly JsonObject[];
    }
  | { readonly allowed: false; readonly status: Pick<Status, 'code' | 'message' | 'reason' | 'details'> };

/** Answers a review. What it throws is a failure of the webhook, of which the registration says what it means. */
export type Webhook = (request: AdmissionRequest, signal: AbortSignal) => Promise<Verdict> | Verdict;

export const ALLOWED: Verdict = { allowed: true };

/** As many as KubeVirt lists in a message; details have all of them. */
const SHOWN_MAX = 10;

/** A denial for what is wrong with fields, in KubeVirt's form. */
export function invalidVerdict(errors: readonly FieldError[]): Verdict {
  const causes = errors.map(
    ({ type, field, message }): StatusCause => ({ reason: type, message, ...(field === '' ? {} : { field }) }),
  );
  const sentences = errors
    .slice(0, SHOWN_MAX)
    .map(({ field, message }) => (field === '' ? message : `${field}: ${message}`));
  const rest = errors.length > SHOWN_MAX ? [`and ${errors.length - SHOWN_MAX} more validation errors`] : [];
  return {
    allowed: false,
    status: { code: 422, reason: 'Invalid', message: [...sentences, ...rest].join(', '), details: { causes } },
  };
}

/** Allowed, or denied where something is wrong. */
export function verdictOf(errors: readonly FieldError[], warnings: readonly string[] = []): Verdict {
  return errors.length > 0 ? invalidVerdict(errors) : { allowed: true, ...(warnings.length > 0 ? { warnings } : {}) };
}

/** The question in a review. Throws 400 where there is none in a version that we speak. */
export function readReview(body: Uint8Array): AdmissionRequest {
  const review = decodeReview(body) as {
    readonly apiVersion?: unknown;
    readonly kind?: unknown;
    readonly request?: Partial<AdmissionRequest> | null;
  } | null;
  if (review?.apiVersion !== 'admission.k8s.io/v1' || review.kind !== 'AdmissionReview')
    throw badRequest('the body is no AdmissionReview of admission.k8s.io/v1');
  const { request } = review;
  if (typeof request?.uid !== 'string' || typeof request.resource !== 'object' || request.resource === null)
    throw badRequest('the AdmissionReview has no request');
  return { ...request, userInfo: request.userInfo ?? {} } as AdmissionRequest;
}

const PREFIX = 'no AdmissionReview: ';
/** A key that is no field, also where some of its letters are spelled out. */
const SUSPICIOUS = /__proto__|\\u00[5-7]/;

/** An API server has looked at what it sends; only what no server of ours would let in is looked at again. */
function decodeReview(body: Uint8Array): unknown {
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8');
  if (SUSPICIOUS.test(text)) return decodeJson(body, PREFIX).value;
  try {
    return JSON.parse(text);
  } catch {
    // It says better what is wrong.
    return decodeJson(body, PREFIX).value;
  }
}

/** The answer, as API servers want it. */
export function reviewOf(uid: string, verdict: Verdict): object {
  return {
    kind: 'AdmissionReview',
    apiVersion: 'admission.k8s.io/v1',
    response: verdict.allowed
      ? {
          uid,
          allowed: true,
          ...(verdict.warnings ? { warnings: verdict.warnings } : {}),
          ...(verdict.patch && verdict.patch.length > 0
            ? { patchType: 'JSONPatch', patch: Buffer.from(JSON.stringify(verdict.patch)).toString('base64') }
            : {}),
        }
      : { uid, allowed: false, status: verdict.status },
  };
}
