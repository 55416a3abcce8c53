import { apiVersionOf, formatTime, type Json, type KubeObject, parseApiVersion } from '../../api/meta.ts';
import type { ResourceDefinition } from '../../api/resource.ts';
import { FIELD_IMMUTABLE } from '../../api/validate-meta.ts';
import { type FieldError, forbidden, invalid, required } from '../../api/field-error.ts';
import { ApiError, badRequest, conflict, invalidObject, unsupportedMediaType } from '../../api/status.ts';
import { applyObject, checkApplied } from '../../machinery/apply/apply.ts';
import { type Decoded, decodeJson, decodeYaml } from '../../machinery/decode.ts';
import { goNameOf, goText } from '../../machinery/go-text.ts';
import { applyJsonPatch } from '../../machinery/patch/json-patch.ts';
import { applyMergePatch, mergeSharing } from '../../machinery/patch/merge-patch.ts';
import { applyStrategicMergePatch } from '../../machinery/patch/strategic-merge-patch.ts';
import type { ApiRequest } from '../http/message.ts';
import type { Target } from '../registry/contract.ts';
import { resetFieldsOf } from '../registry/preparation.ts';
import { complaintOf, expectKind, mediaTypeOf, pruneObject } from './body.ts';
import type { FieldValidation } from './write-options.ts';

/** PATCH bodies: four languages that all end as a function from the live object to the wanted one. */

export interface Patch {
  readonly isApply: boolean;
  /** Throws where the patch does not fit the object, or makes it something else than one of its kind. */
  readonly apply: (current: KubeObject, isAsWritten?: boolean) => KubeObject;
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
  if (type === APPLY_PATCH) return applyPatch(decodeApplied(bytes), options);
  if (request.query.has('force')) throw invalidOptions(forbidden('force', 'may not be specified for non-apply patch'));
  const patchWith = (
    merge: (current: Json, patch: Json) => Json,
    {
      prefix = 'error decoding patch: ',
      showPatch = JSON.stringify as (patch: Json) => string,
      share = undefined as typeof merge | undefined,
    } = {},
  ): Patch => {
    const { value, duplicates } = decodeJson(bytes, prefix);
    const apply = (current: KubeObject, isAsWritten = false): KubeObject => {
      // Of an object that has passed all this, only what is new is looked at.
      const known = isAsWritten && share ? current : undefined;
      const patched = asObject((known && share ? share : merge)(current as unknown as Json, value), definition);
      const problems = pruneObject(definition, patched, { duplicates }, known);
      const complaint = complaintOf(problems, options.level, options.warnings);
      if (complaint !== undefined) throw unfitPatch(definition, showPatch(value), complaint);
      refuseOtherUid(options.target, current, patched);
      return patched;
    };
    return { isApply: false, apply };
  };
  switch (type) {
    case JSON_PATCH:
      return patchWith(applyJsonPatch);
    case MERGE_PATCH:
      return patchWith(applyMergePatch, { share: mergeSharing });
    case STRATEGIC_PATCH:
      // Custom resources have no merge keys, so the server refuses rather than guesses.
      if (!definition.custom)
        return patchWith((current, patch) => applyStrategicMergePatch(current, patch, definition.schema), {
          prefix: '',
          showPatch: goText,
        });
      break;
    default:
  }
  const accepted = [JSON_PATCH, MERGE_PATCH, ...(definition.custom ? [] : [STRATEGIC_PATCH]), APPLY_PATCH];
  throw unsupportedMediaType(
    `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`,
  );
}

/**
 * 422 for what a patch would make of an object. Shows the patch, where kube-apiserver may show the whole object: who
 * may patch a secret may not always read it.
 */
function unfitPatch({ group, kind }: ResourceDefinition, shown: string, complaint: string): ApiError {
  const isSecret = group === '' && kind === 'Secret';
  return invalidObject('', '', '', [invalid('patch', isSecret ? '...' : shown, complaint)]);
}

/** A UID in a whole object that replaces another asks for that very object; in a patch it would change it. */
function refuseOtherUid({ definition, name }: Target, { metadata }: KubeObject, patched: KubeObject): void {
  const { uid } = patched.metadata;
  if (uid === undefined || uid === metadata.uid) return;
  throw invalidObject(definition.group, definition.kind, name, [invalid('metadata.uid', uid, FIELD_IMMUTABLE)]);
}

function asObject(value: Json, definition: ResourceDefinition): KubeObject {
  return expectKind(value, apiVersionOf(definition.group, definition.version), definition.kind);
}

/** What is applied has to say itself what it is. */
function appliedObject(value: Json, definition: ResourceDefinition): KubeObject {
  if (typeof value !== 'object' || Array.isArray(value)) {
    throw badRequest(
      `error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal ${goNameOf(value)} into Go value of type map[string]interface {}`,
    );
  }
  const { apiVersion = '', kind = '' } = (value ?? {}) as { apiVersion?: Json; kind?: Json };
  if (apiVersion !== apiVersionOf(definition.group, definition.version) || kind !== definition.kind) {
    const { group, version } = parseApiVersion(typeof apiVersion === 'string' ? apiVersion : '');
    throw badRequest(`invalid object type: ${group}/${version}, Kind=${typeof kind === 'string' ? kind : ''}`);
  }
  return asObject(value, definition);
}

/** The body of an apply. Whatever is wrong with it, it was read as YAML, of which JSON is a part. */
function decodeApplied(bytes: Uint8Array): Decoded {
  if (bytes.length === 0) return { value: null, duplicates: [] };
  try {
    return decodeYaml(bytes);
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 400) throw error;
    throw badRequest(`error decoding YAML: ${error.message}`, error);
  }
}

function invalidOptions(error: FieldError): ApiError {
  return invalidObject('meta.k8s.io', 'PatchOptions', '', [error]);
}

function applyPatch(decoded: Decoded, options: PatchOptions): Patch {
  const { target, fieldManager, force, nowMs, level, warnings } = options;
  const { definition } = target;
  if (fieldManager === '') throw invalidOptions(required('fieldManager', 'is required for apply patch'));
  const applied = appliedObject(decoded.value, definition);
  const { name, uid } = applied.metadata;
  if (name === undefined) applied.metadata.name = target.name;
  const application = {
    applied,
    schema: definition.schema,
    manager: fieldManager,
    force,
    apiVersion: apiVersionOf(definition.group, definition.version),
    subresource: target.subresource ?? '',
    time: formatTime(nowMs),
    resetFields: resetFieldsOf(target),
  };
  checkApplied(application);
  // Where it was JSON, paths are known rather than lines.
  const strict = [...(decoded.repeatedLines ?? []), ...decoded.duplicates.map(repeated)];
  if (complaintOf({ mistyped: undefined, strict }, level, warnings) !== undefined) throw badRequest(repeats(strict));
  // Nothing unknown is left to prune; nulls are, which say nothing in a kind that Go decodes.
  pruneObject(definition, applied);
  const apply = (live: KubeObject | undefined): KubeObject => {
    const merged = applyObject({ ...application, live });
    const { mistyped } = pruneObject(definition, merged);
    if (mistyped !== undefined) throw unconvertible(applied, mistyped);
    if (live) refuseOtherUid(target, live, merged);
    return merged;
  };
  const create = (): KubeObject => {
    // Not filled in, as it is in no whole object that is to be created.
    if (name === undefined)
      throw badRequest(
        `the name of the object (${target.name} based on URL) was undeterminable: name must be provided`,
      );
    if (uid)
      throw conflict(
        definition,
        target.name,
        `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`,
      );
    return withoutVersion(apply(undefined));
  };
  return { isApply: true, apply, create };
}

function repeated(path: string): string {
  return `duplicate field ${JSON.stringify(path)}`;
}

/** Keys that came twice, in the words of the parser that kube-apiserver reads what is applied with. */
function repeats(lines: readonly string[]): string {
  const found = 'error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:';
  return [found, ...lines].join('\n  ');
}

/** 400 for what fits the schema as far as ownership goes (a number is a number), but not the types. */
function unconvertible({ apiVersion, kind, metadata }: KubeObject, mistyped: string): ApiError {
  const { group, version } = parseApiVersion(apiVersion);
  const type = `${group}/${version}, Kind=${kind}`;
  const subject = `${metadata.namespace ?? ''}/${metadata.name ?? ''}; ${type}`;
  return badRequest(
    `failed to convert new object (${subject}) to proper version: unable to convert unstructured object to ${type}: ${mistyped}`,
  );
}

/** Applying does not ask which version is replaced where there is none. */
function withoutVersion(object: KubeObject): KubeObject {
  delete object.metadata.resourceVersion;
  return object;
}
