import { apiVersionOf, type Json, type KubeObject } from '../../api/meta.ts';
import type { ResourceDefinition } from '../../api/resource.ts';
import type { Schema } from '../../api/schema.ts';
import { typeInvalid } from '../../api/field-error.ts';
import { badRequest, invalidObject, unsupportedMediaType } from '../../api/status.ts';
import { type Decoded, decodeJson, decodeYaml } from '../../machinery/decode.ts';
import { decodeProtobuf } from '../../machinery/protobuf/decode.ts';
import { compileSchema } from '../../machinery/schema/compile.ts';
import { describeMismatch, findMismatch } from '../../machinery/schema/shape.ts';
import type { ApiRequest } from '../http/message.ts';
import type { FieldValidation } from './write-options.ts';

/** Request bodies into objects: content types, and how strictly unknown and duplicate fields are taken. */

/** The content type without its parameters. Throws 415 for a body that is packed: its size would not be its size. */
export function mediaTypeOf(request: ApiRequest): string {
  const encoding = request.headers['content-encoding']?.trim().toLowerCase() ?? '';
  if (encoding !== '' && encoding !== 'identity')
    throw unsupportedMediaType(
      `content-encoding ${JSON.stringify(encoding)} is not accepted: send the body as it is, without compression`,
    );
  return (request.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

/** The body as an object of the given kind (or of any kind whose schema protobuf decoding can find), with its duplicates. */
export async function readBody(
  request: ApiRequest,
  schemaFor: (apiVersion: string, kind: string) => Schema | undefined,
): Promise<Decoded | undefined> {
  const type = mediaTypeOf(request);
  const bytes = await request.body();
  if (bytes.length === 0) return undefined;
  switch (type) {
    case '':
    case 'application/json':
      return decodeJson(bytes);
    case 'application/yaml':
    case 'application/x-yaml':
    case 'text/yaml':
      return decodeYaml(bytes);
    case 'application/vnd.kubernetes.protobuf':
      return { value: decodeProtobuf(bytes, schemaFor) as unknown as Json, duplicates: [] };
    default:
      throw unsupportedMediaType(
        `the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf`,
      );
  }
}

/** What a body calls itself, which need not be text. */
function name(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Checks that a decoded value is an object of this kind. Throws 400 that names what it is instead. */
export function expectKind(value: Json | undefined, apiVersion: string, kind: string): KubeObject {
  if (value === undefined) throw badRequest(`the request has no body; a ${kind} is expected`);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw badRequest(`the object provided is unrecognized (must be of type ${kind}): it is no JSON object`);
  const object = value as unknown as KubeObject;
  object.apiVersion ??= apiVersion;
  object.kind ??= kind;
  if (object.kind !== kind)
    throw badRequest(
      `${name(object.kind)} in version ${JSON.stringify(name(object.apiVersion))} cannot be handled as a ${kind}: the kind does not match the path`,
    );
  if (object.apiVersion !== apiVersion)
    throw badRequest(
      `the API version in the data (${name(object.apiVersion)}) does not match the expected API version (${apiVersion})`,
    );
  const metadata: unknown = object.metadata ?? {};
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata))
    throw badRequest(
      `${kind} in version ${JSON.stringify(apiVersion)} cannot be handled as a ${kind}: metadata must be an object`,
    );
  object.metadata = metadata;
  return object;
}

/**
 * Removes what the schema does not know from an object, and tells of it as strictly as asked: an error, warnings
 * or nothing. `duplicates` joins the unknown fields.
 */
export function pruneStrictly(
  definition: ResourceDefinition,
  object: KubeObject,
  duplicates: readonly string[],
  level: FieldValidation,
  warnings: string[],
): void {
  const unknown = compileSchema(definition.schema, { builtin: !definition.custom }).prune(object as unknown as Json);
  if (level === 'Ignore') return;
  const problems = [
    ...duplicates.map((path) => `duplicate field ${JSON.stringify(path)}`),
    ...unknown.map((path) => `unknown field ${JSON.stringify(path)}`),
  ];
  if (problems.length === 0) return;
  if (level === 'Warn') {
    warnings.push(...problems);
    return;
  }
  const { kind, version } = definition;
  throw badRequest(
    `${kind} in version ${JSON.stringify(version)} cannot be handled as a ${kind}: strict decoding error: ${problems.join(', ')}`,
  );
}

/** Throws 400 where a pruned body holds a value of another type than its kind declares, and names the field. */
export function refuseMistyped(
  definition: Pick<ResourceDefinition, 'schema' | 'kind' | 'version' | 'custom'>,
  object: object,
): void {
  const { schema, kind, version, custom } = definition;
  const mismatch = findMismatch(schema, object as Json, { builtin: !custom });
  if (!mismatch) return;
  throw badRequest(
    `${kind} in version ${JSON.stringify(version)} cannot be handled as a ${kind}: ${describeMismatch(mismatch)}`,
  );
}

/** The same for what a patch has made: 422, since the body itself was well formed. */
export function refuseMistypedPatch(definition: ResourceDefinition, objectName: string, object: KubeObject): void {
  const mismatch = findMismatch(definition.schema, object as unknown as Json, { builtin: !definition.custom });
  if (!mismatch) return;
  const { path, actual } = mismatch;
  throw invalidObject(definition.group, definition.kind, objectName, [
    typeInvalid(path, actual, describeMismatch(mismatch)),
  ]);
}

/** Reads the body as an object of this definition. */
export async function readObject(
  request: ApiRequest,
  definition: ResourceDefinition,
  level: FieldValidation,
  warnings: string[],
): Promise<KubeObject> {
  const apiVersion = apiVersionOf(definition.group, definition.version);
  const decoded = await readBody(request, (version, kind) =>
    version === apiVersion && kind === definition.kind ? definition.schema : undefined,
  );
  const object = expectKind(decoded?.value, apiVersion, definition.kind);
  pruneStrictly(definition, object, decoded?.duplicates ?? [], level, warnings);
  refuseMistyped(definition, object);
  return object;
}
