import type { Json, KubeObject } from '../../../api/meta.ts';
import { ApiError, type StatusCause, type StatusDetails, type StatusReason } from '../../../api/status.ts';
import { decodeJson } from '../../../machinery/decode.ts';
import type { AdmissionAttributes } from '../../registry/contract.ts';
import { nameOf, namespaceOf, subresourceOf } from '../attributes.ts';
import type { Invocation } from './source.ts';
import { kindOf } from './versions.ts';

/** AdmissionReview, there and back. */

const VERSIONS = ['v1', 'v1beta1'] as const;

export type ReviewVersion = (typeof VERSIONS)[number];

/** A webhook's answer, checked. */
export interface ReviewResponse {
  readonly allowed: boolean;
  /** The status of a denial. */
  readonly result: ReviewResult | undefined;
  /** The bytes of a JSON patch; undefined for none. */
  readonly patch: Uint8Array | undefined;
  readonly warnings: readonly string[];
}

export interface ReviewResult {
  readonly code: number;
  readonly message: string;
  readonly reason: string;
  readonly details: StatusDetails | undefined;
}

/** The first version in the webhook's list that we speak. */
export function chooseVersion(accepted: readonly string[] | undefined): ReviewVersion | undefined {
  for (const each of accepted ?? []) {
    const known = VERSIONS.find((version) => version === each);
    if (known) return known;
  }
  return undefined;
}

/** The `request` of a review without the objects: what match conditions may look at. */
export function reviewRequest(invocation: Invocation, attributes: AdmissionAttributes): Record<string, unknown> {
  const { definition: asked } = attributes.target;
  const { definition: shown } = invocation;
  const subresource = subresourceOf(attributes);
  const { username, uid, groups, extra } = attributes.context.user;
  const name = nameOf(attributes);
  const namespace = namespaceOf(attributes);
  return {
    kind: kindOf(shown, subresource),
    resource: { group: shown.group, version: shown.version, resource: shown.plural },
    ...(subresource === '' ? {} : { subResource: subresource }),
    requestKind: kindOf(asked, subresource),
    requestResource: { group: asked.group, version: asked.version, resource: asked.plural },
    ...(subresource === '' ? {} : { requestSubResource: subresource }),
    ...(name === '' ? {} : { name }),
    ...(namespace === '' ? {} : { namespace }),
    operation: attributes.operation,
    userInfo: { username, ...(uid === undefined ? {} : { uid }), groups, ...(extra === undefined ? {} : { extra }) },
    dryRun: attributes.context.dryRun,
    options: attributes.options ?? null,
  };
}

/** The body of a review. */
export function reviewBody(
  version: ReviewVersion,
  uid: string,
  request: Record<string, unknown>,
  objects: { readonly object: KubeObject | undefined; readonly oldObject: KubeObject | undefined },
): string {
  return JSON.stringify({
    kind: 'AdmissionReview',
    apiVersion: `admission.k8s.io/${version}`,
    request: { uid, ...request, object: objects.object ?? null, oldObject: objects.oldObject ?? null },
  });
}

/** Reads a webhook's answer. Throws an Error that says what is wrong with it. */
export function readReview(
  body: Uint8Array,
  expected: { readonly version: ReviewVersion; readonly uid: string; readonly isMutating: boolean },
): ReviewResponse {
  const review = decodeJson(body).value;
  const response = fieldOf(review, 'response');
  if (response === undefined || response === null) throw new Error('webhook response was absent');
  if (expected.version === 'v1') checkIdentity(review, response, expected.uid);
  const patch = patchOf(response, expected);
  const result = resultOf(fieldOf(response, 'status'));
  return { allowed: fieldOf(response, 'allowed') === true, result, patch, warnings: warningsOf(response) };
}

/** The v1beta1 review was never this strict. */
function checkIdentity(review: Json, response: Json, wanted: string): void {
  const uid = fieldOf(response, 'uid');
  if (uid !== wanted) {
    throw new Error(`expected response.uid=${JSON.stringify(wanted)}, got ${JSON.stringify(uid ?? '')}`);
  }
  const [apiVersion, kind] = [fieldOf(review, 'apiVersion'), fieldOf(review, 'kind')];
  if (apiVersion !== 'admission.k8s.io/v1' || kind !== 'AdmissionReview') {
    const got = `${text(apiVersion)}, Kind=${text(kind)}`;
    throw new Error(`expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got ${got}`);
  }
}

function patchOf(
  response: Json,
  { version, isMutating }: { readonly version: ReviewVersion; readonly isMutating: boolean },
): Uint8Array | undefined {
  const patch = text(fieldOf(response, 'patch'));
  const type = fieldOf(response, 'patchType') ?? undefined;
  if (!isMutating) {
    if (version === 'v1' && patch !== '') throw new Error('validating webhook may not return response.patch');
    if (version === 'v1' && type !== undefined) throw new Error('validating webhook may not return response.patchType');
    return undefined;
  }
  if (version === 'v1') {
    if (patch !== '' && type === undefined)
      throw new Error('webhook returned response.patch but not response.patchType');
    if (patch === '' && type !== undefined)
      throw new Error('webhook returned response.patchType but not response.patch');
    if (type !== undefined && type !== 'JSONPatch') throw new Error(`unsupported patch type ${JSON.stringify(type)}`);
  }
  if (patch === '') return undefined;
  if (!/^[A-Za-z0-9+/\r\n]*={0,2}[\r\n]*$/.test(patch)) throw new Error('response.patch is not base64');
  return Buffer.from(patch, 'base64');
}

function warningsOf(response: Json): string[] {
  const warnings = fieldOf(response, 'warnings');
  return Array.isArray(warnings) ? warnings.filter((each) => typeof each === 'string') : [];
}

function resultOf(status: Json | undefined): ReviewResult | undefined {
  if (status === undefined || status === null) return undefined;
  const code = fieldOf(status, 'code');
  return {
    code: typeof code === 'number' ? code : 0,
    message: text(fieldOf(status, 'message')),
    reason: text(fieldOf(status, 'reason')),
    details: detailsOf(fieldOf(status, 'details')),
  };
}

/** The details of a Status, field by field: what a webhook sends reaches our clients only in the shape they know. */
function detailsOf(details: Json | undefined): StatusDetails | undefined {
  if (typeof details !== 'object' || details === null || Array.isArray(details)) return undefined;
  const causes = fieldOf(details, 'causes');
  const retry = fieldOf(details, 'retryAfterSeconds');
  const known: StatusDetails = {};
  for (const field of ['name', 'group', 'kind', 'uid'] as const) {
    const value = text(fieldOf(details, field));
    if (value !== '') known[field] = value;
  }
  if (Array.isArray(causes)) known.causes = causes.map(causeOf);
  if (typeof retry === 'number' && retry > 0) known.retryAfterSeconds = Math.floor(retry);
  return known;
}

function causeOf(cause: Json): StatusCause {
  const known: StatusCause = {};
  for (const field of ['reason', 'message', 'field'] as const) {
    const value = text(fieldOf(cause, field));
    if (value !== '') known[field] = value;
  }
  return known;
}

/** A denial as the client sees it: the webhook's own code, never below 400. */
export function denial(webhookName: string, result: ReviewResult | undefined): ApiError {
  const deniedBy = `admission webhook ${JSON.stringify(webhookName)} denied the request`;
  const { code = 0, message = '', reason = '', details } = result ?? {};
  const explanation = message || reason;
  const isStatus = Number.isInteger(code) && code >= 400 && code <= 599;
  return new ApiError(
    isStatus ? code : 400,
    reason as StatusReason,
    explanation === '' ? `${deniedBy} without explanation` : `${deniedBy}: ${explanation}`,
    details,
  );
}

function fieldOf(value: Json, field: string): Json | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  return Object.hasOwn(value, field) ? value[field] : undefined;
}

function text(value: Json | undefined): string {
  return typeof value === 'string' ? value : '';
}
