import { apiVersionOf, type Json, type KubeObject } from '../../api/meta.ts';
import type { ResourceDefinition } from '../../api/resource.ts';
import type { Schema } from '../../api/schema.ts';
import { type ApiError, badRequest, unsupportedMediaType } from '../../api/status.ts';
import { type Decoded, decodeJson, decodeYaml } from '../../machinery/decode.ts';
import { decodeProtobuf } from '../../machinery/protobuf/decode.ts';
import { compileSchema } from '../../machinery/schema/compile.ts';
import { findMismatch } from '../../machinery/schema/shape.ts';
import type { ApiRequest } from '../http/message.ts';
import type { Call } from './context.ts';
import { type FieldValidation, writeOptionsOf } from './write-options.ts';

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

/** What is wrong with an object's shape: a value of the wrong type, or else fields that are unknown or repeated. */
export interface ShapeProblems {
  readonly mistyped: string | undefined;
  readonly strict: readonly string[];
}

/**
 * Removes what the schema does not know from an object, and tells what was wrong with it. What is the very same in a `known`
 * object, with which nothing is wrong, is left alone.
 */
export function pruneObject(
  definition: Pick<ResourceDefinition, 'schema' | 'custom'>,
  object: object,
  decoded: Pick<Decoded, 'duplicates' | 'repeatedLines'> = { duplicates: [] },
  known?: object,
): ShapeProblems {
  const { schema, custom } = definition;
  const unknown = compileSchema(schema, { builtin: !custom }).prune(object as Json, known as Json | undefined);
  return {
    mistyped: findMismatch(schema, object as Json, { builtin: !custom, known: known as Json | undefined })?.sentence,
    strict: [
      ...(decoded.repeatedLines ?? []),
      ...decoded.duplicates.map((path) => `duplicate field ${JSON.stringify(path)}`),
      ...unknown.map((path) => `unknown field ${JSON.stringify(path)}`),
    ],
  };
}

/** What remains to be complained of once the client's wishes are known; warnings are collected on the way. */
export function complaintOf(problems: ShapeProblems, level: FieldValidation, warnings: string[]): string | undefined {
  if (problems.mistyped !== undefined) return problems.mistyped;
  if (problems.strict.length === 0 || level === 'Ignore') return undefined;
  if (level === 'Strict') return `strict decoding error: ${joined(problems.strict)}`;
  // A patch that is tried again says the same again.
  const said = new Set(warnings);
  for (const problem of problems.strict) if (!said.has(problem)) warnings.push(problem);
  return undefined;
}

const YAML_LINE = /^line \d+: key /;

/** All problems in one sentence; what YAML's parser says of lines is one problem to it. */
function joined(problems: readonly string[]): string {
  const lines = problems.filter((problem) => YAML_LINE.test(problem));
  const others = problems.filter((problem) => !YAML_LINE.test(problem));
  const yaml = lines.length > 0 ? [['yaml: unmarshal errors:', ...lines].join('\n  ')] : [];
  return [...yaml, ...others].join(', ');
}

/** 400 for a body that is none of its kind. */
function undecodable({ kind, version }: Pick<ResourceDefinition, 'kind' | 'version'>, complaint: string): ApiError {
  return badRequest(`${kind} in version ${JSON.stringify(version)} cannot be handled as a ${kind}: ${complaint}`);
}

/** Throws 400 where a pruned body holds a value of another type than its kind declares, and names the field. */
export function refuseMistyped(
  definition: Pick<ResourceDefinition, 'schema' | 'kind' | 'version' | 'custom'>,
  object: object,
): void {
  const mismatch = findMismatch(definition.schema, object as Json, { builtin: !definition.custom });
  if (mismatch) throw undecodable(definition, mismatch.sentence);
}

/** Reads the body of a call as an object of the kind that it is for; what its client is to be warned of is added. */
export async function readObject({ request, target: { definition } }: Call, warnings: string[]): Promise<KubeObject> {
  const apiVersion = apiVersionOf(definition.group, definition.version);
  const decoded = await readBody(request, (version, kind) =>
    version === apiVersion && kind === definition.kind ? definition.schema : undefined,
  );
  const object = expectKind(decoded?.value, apiVersion, definition.kind);
  const complaint = complaintOf(
    pruneObject(definition, object, decoded),
    writeOptionsOf(request).fieldValidation,
    warnings,
  );
  if (complaint !== undefined) throw undecodable(definition, complaint);
  return object;
}
