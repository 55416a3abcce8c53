import { stringify } from 'yaml';
import { ApiError } from '../../api/status.ts';
import { covers, type MediaRange, parseAccept } from '../http/accept.ts';
import type { ApiResponse } from '../http/message.ts';

/** Which of the forms that we can produce a client asked for. Protobuf answers are never given: all clients take JSON too. */

export interface Representation {
  readonly format: 'json' | 'yaml';
  readonly as: 'Object' | 'Table' | 'PartialObjectMetadata';
  /** What the answer's content-type says. */
  readonly contentType: string;
}

/** What a client gets that does not say. */
export const PLAIN: Representation = { format: 'json', as: 'Object', contentType: 'application/json' };

function represent(range: MediaRange): Representation | undefined {
  const format = covers(range, 'application/json') ? 'json' : 'yaml';
  if (format === 'yaml' && !covers(range, 'application/yaml')) return undefined;
  const as = range.parameters.get('as');
  if (as === undefined) return format === 'json' ? PLAIN : { format, as: 'Object', contentType: 'application/yaml' };
  const group = range.parameters.get('g') ?? '';
  const version = range.parameters.get('v') ?? '';
  if (group !== 'meta.k8s.io' || (version !== 'v1' && version !== 'v1beta1')) return undefined;
  if (as === 'Table') return { format, as, contentType: `application/${format}` };
  // A list is answered as the list of what was asked for, whichever of the two names came.
  if (as === 'PartialObjectMetadata' || as === 'PartialObjectMetadataList')
    return { format, as: 'PartialObjectMetadata', contentType: `application/${format}` };
  return undefined;
}

/** The form that a client likes best of those that it accepts. Throws 406 when there is none. */
export function negotiate(accept: string | undefined): Representation {
  if (accept === undefined || accept === '' || accept === 'application/json' || accept === '*/*') return PLAIN;
  for (const range of parseAccept(accept)) {
    const representation = represent(range);
    if (representation) return representation;
  }
  throw new ApiError(
    406,
    'NotAcceptable',
    'only the following media types are accepted: application/json, application/yaml',
  );
}

/** All warnings of an answer together, as kube-apiserver has it: clients refuse answers with more headers than bodies. */
const WARNINGS_LENGTH_MAX = 4 * 1024;
/** Where they are more, each is cut to this. */
const WARNING_LENGTH_MAX = 256;
// oxlint-disable-next-line no-control-regex -- exactly those are to go
const CONTROL_CHARACTERS = /[\u0000-\u001f\u007f]/g;

/** Warnings in the form of RFC 7234, each once; control characters cannot travel in a header. */
export function warningHeaders(warnings: readonly string[]): { warning?: string[] } {
  if (warnings.length === 0) return {};
  const all = [...new Set(warnings)];
  const isLong = all.reduce((sum, text) => sum + text.length, 0) > WARNINGS_LENGTH_MAX;
  const warning: string[] = [];
  let length = 0;
  for (const text of all) {
    const shown = isLong ? cut(text) : text;
    length += shown.length;
    if (length > WARNINGS_LENGTH_MAX) break;
    warning.push(`299 - "${quote(shown)}"`);
  }
  return { warning };
}

function cut(text: string): string {
  if (text.length <= WARNING_LENGTH_MAX) return text;
  // Half a surrogate pair at the cut would not be text any more.
  return `${text.slice(0, WARNING_LENGTH_MAX).replace(/\p{Surrogate}$/u, '')}...`;
}

function quote(text: string): string {
  return text.replaceAll(CONTROL_CHARACTERS, ' ').replaceAll('\\', '\\\\').replaceAll('"', '\\"');
}

/**
 * A value as YAML that every parser of Kubernetes' world reads alike: what an older version of YAML takes for a boolean or a number is
 * quoted. Sorted and indented as kube-apiserver does.
 */
export function toYaml(value: unknown): string {
  return stringify(value, { compat: 'yaml-1.1', indentSeq: false, sortMapEntries: true });
}

/** A complete answer in the form that was asked for. `text` is its JSON. */
export function respond(
  representation: Representation,
  status: number,
  text: string,
  warnings: readonly string[] = [],
): ApiResponse {
  const body = representation.format === 'yaml' ? toYaml(JSON.parse(text)) : `${text}\n`;
  return { status, headers: { 'content-type': representation.contentType, ...warningHeaders(warnings) }, body };
}
