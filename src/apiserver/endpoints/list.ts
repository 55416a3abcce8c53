import { apiVersionOf, type JsonObject, type KubeObject } from '../../api/meta.ts';
import { badRequest } from '../../api/status.ts';
import { toTable } from '../../machinery/table.ts';
import { LIST_CHUNK_BYTES } from '../http/limits.ts';
import type { ApiResponse } from '../http/message.ts';
import { decodeStored, textFor } from '../registry/codec.ts';
import type { Stored } from '../storage/store.ts';
import { type Representation, toYaml } from './negotiate.ts';
import { type Page, type PageRequest, readPage } from './page.ts';
import { Turns } from './turns.ts';

/** Lists, in the form asked for, streamed when large. */

export interface ListRequest extends PageRequest {
  readonly representation: Representation;
}

/** `metadata` alone, as metadata-only clients ask for. */
export function partialMetadata(object: KubeObject): KubeObject {
  return { apiVersion: 'meta.k8s.io/v1', kind: 'PartialObjectMetadata', metadata: object.metadata };
}

/** Which part of each object a Table carries. */
export function includeObjectOf(query: URLSearchParams): 'None' | 'Metadata' | 'Object' {
  const value = query.get('includeObject') ?? '';
  if (value === '' || value === 'Metadata') return 'Metadata';
  if (value === 'None' || value === 'Object') return value;
  const wanted = "must be 'Metadata', 'Object', 'None', or empty";
  throw badRequest(
    `Unable to convert to Table as requested: includeObject: Invalid value: ${JSON.stringify(value)}: ${wanted}`,
  );
}

/** Answers a list. */
export async function answerList(request: ListRequest): Promise<ApiResponse> {
  const page = await readPage(request);
  const chunks = chunksOf(request, page, formOf(request, page));
  const first = await chunks.next();
  const second = await chunks.next();
  const headers = { 'content-type': request.representation.contentType };
  if (second.done || first.done) return { status: 200, headers, body: first.value ?? '' };
  return { status: 200, headers, body: stream(first.value, second.value, chunks) };
}

/** How the text of a list is put together from the texts of its items. */
interface Form {
  readonly opening: string;
  readonly separator: string;
  readonly closing: string;
  readonly encode: (stored: Stored) => string;
}

function formOf(request: ListRequest, { metadata, items }: Page): Form {
  const { definition, representation, query, clock } = request;
  if (representation.as === 'Table') {
    const options = { nowMs: clock.now(), includeObject: includeObjectOf(query), listMeta: metadata };
    const { rows: _none, ...head } = toTable(definition, [], options);
    const rowOf = (stored: Stored): unknown =>
      (toTable(definition, [decodeStored(definition, stored)], options)['rows'] as JsonObject[])[0];
    return inFormat(representation, head, 'rows', items.length, rowOf);
  }
  if (representation.as === 'PartialObjectMetadata') {
    const head = { kind: 'PartialObjectMetadataList', apiVersion: 'meta.k8s.io/v1', metadata };
    const itemOf = (stored: Stored): unknown => partialMetadata(decodeStored(definition, stored));
    return inFormat(representation, head, 'items', items.length, itemOf);
  }
  const head = { kind: definition.listKind, apiVersion: apiVersionOf(definition.group, definition.version), metadata };
  const form = inFormat(representation, head, 'items', items.length, (stored) => decodeStored(definition, stored));
  return representation.format === 'json' ? { ...form, encode: (stored) => textFor(definition, stored) } : form;
}

function inFormat(
  { format }: Representation,
  head: object,
  field: 'items' | 'rows',
  count: number,
  itemOf: (stored: Stored) => unknown,
): Form {
  if (format === 'json')
    return {
      opening: `${JSON.stringify(head).slice(0, -1)},"${field}":[`,
      separator: ',',
      closing: ']}\n',
      encode: (stored) => JSON.stringify(itemOf(stored)),
    };
  return {
    opening: `${toYaml(head)}${field}:${count === 0 ? ' []' : ''}\n`,
    separator: '',
    closing: '',
    // A list of one is written as each element of a longer one.
    encode: (stored) => toYaml([itemOf(stored)]),
  };
}

/** The text in chunks, made in turns. */
async function* chunksOf(
  { clock }: ListRequest,
  { items }: Page,
  { opening, separator, closing, encode }: Form,
): AsyncGenerator<string, undefined> {
  const turns = new Turns(clock);
  let parts = [opening];
  let length = opening.length;
  for (const [index, stored] of items.entries()) {
    if (turns.isOver()) await turns.next();
    const text = encode(stored);
    if (index > 0) parts.push(separator);
    parts.push(text);
    length += text.length;
    if (length < LIST_CHUNK_BYTES) continue;
    yield parts.join('');
    parts = [];
    length = 0;
  }
  parts.push(closing);
  yield parts.join('');
}

async function* stream(first: string, second: string, rest: AsyncIterable<string>): AsyncGenerator<string> {
  yield first;
  yield second;
  yield* rest;
}
