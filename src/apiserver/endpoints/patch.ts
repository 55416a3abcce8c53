import { apiVersionOf, formatTime, type Json, type KubeObject } from '../../api/meta.ts';
import type { ResourceDefinition } from '../../api/resource.ts';
import { type FieldError, forbidden, required } from '../../api/field-error.ts';
import { type ApiError, invalidObject, unsupportedMediaType } from '../../api/status.ts';
import { applyObject } from '../../machinery/apply/apply.ts';
import { type Decoded, decodeJson, decodeYaml } from '../../machinery/decode.ts';
import { applyJsonPatch } from '../../machinery/patch/json-patch.ts';
import { applyMergePatch } from '../../machinery/patch/merge-patch.ts';
import { applyStrategicMergePatch } from '../../machinery/patch/strategic-merge-patch.ts';
import type { ApiRequest } from '../http/message.ts';
import type { Target } from '../registry/contract.ts';
import { expectKind, mediaTypeOf, pruneStrictly, refuseMistyped } from './body.ts';
import type { FieldValidation } from './write-options.ts';

/** PATCH bodies: four languages that all end as a function from the live object to the wanted one. */

export interface Patch {
  readonly isApply: boolean;
  /** Duplicates in the body, for strict validation. */
  readonly decoded: Decoded;
  readonly apply: (current: KubeObject) => KubeObject;
  /** What to create where there is nothing yet; only server-side apply can. */
  readonly create?: () => KubeObject;
}

const JSON_PATCH = 'application/json-patch+json';
const MERGE_PATCH = 'application/merge-patch+json';
const STRATEGIC_PATCH = 'application/strategic-merge-patch+json';
const APPLY_PATCH = 'application/apply-patch+yaml';

export interface PatchOptions {
  readonly target: Target;
  readonly fieldManager: string;
  readonly force: boolean;
  readonly nowMs: number;
  readonly level: FieldValidation;
  readonly warnings: string[];
}

/** Reads the body of a PATCH. Throws 415 for unknown types, 400 for malformed ones. */
export async function readPatch(request: ApiRequest, options: PatchOptions): Promise<Patch> {
  const type = mediaTypeOf(request);
  const bytes = await request.body();
  const { definition } = options.target;
  if (type === APPLY_PATCH) return applyPatch(decodeYaml(bytes), options);
  if (request.query.has('force')) throw invalidOptions(forbidden('force', 'may not be specified for non-apply patch'));
  const patchWith = (merge: (current: Json, patch: Json) => Json): Patch => {
    const decoded = decodeJson(bytes);
    return {
      isApply: false,
      decoded,
      apply: (current) => asObject(merge(current as unknown as Json, decoded.value), definition),
    };
  };
  switch (type) {
    case JSON_PATCH:
      return patchWith(applyJsonPatch);
    case MERGE_PATCH:
      return patchWith(applyMergePatch);
    case STRATEGIC_PATCH:
      // Custom resources have no merge keys, so the server refuses rather than guesses.
      if (!definition.custom)
        return patchWith((current, patch) => applyStrategicMergePatch(current, patch, definition.schema));
      break;
    default:
  }
  const accepted = [JSON_PATCH, MERGE_PATCH, ...(definition.custom ? [] : [STRATEGIC_PATCH]), APPLY_PATCH];
  throw unsupportedMediaType(
    `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`,
  );
}

function asObject(value: Json, definition: ResourceDefinition): KubeObject {
  return expectKind(value, apiVersionOf(definition.group, definition.version), definition.kind);
}

function invalidOptions(error: FieldError): ApiError {
  return invalidObject('meta.k8s.io', 'PatchOptions', '', [error]);
}

function applyPatch(decoded: Decoded, options: PatchOptions): Patch {
  const { target, fieldManager, force, nowMs, level, warnings } = options;
  const { definition } = target;
  if (fieldManager === '') throw invalidOptions(required('fieldManager', 'is required for apply patch'));
  const applied = asObject(decoded.value, definition);
  pruneStrictly(definition, applied, decoded.duplicates, level, warnings);
  refuseMistyped(definition, applied);
  if (applied.metadata.name === undefined) applied.metadata.name = target.name;
  const apply = (current: KubeObject | undefined): KubeObject =>
    applyObject({
      live: current,
      applied,
      schema: definition.schema,
      manager: fieldManager,
      force,
      apiVersion: applied.apiVersion,
      subresource: target.subresource ?? '',
      time: formatTime(nowMs),
      resetFields: resetFieldsOf(target),
    });
  return { isApply: true, decoded, apply, create: () => apply(undefined) };
}

/** What cannot be owned through this endpoint, because it cannot be written through it. */
function resetFieldsOf(target: Target): readonly string[][] {
  if (!target.definition.hasStatus) return [];
  return target.subresource === 'status' ? [['spec'], ['metadata', 'labels']] : [['status']];
}
