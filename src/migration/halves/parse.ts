import type { FieldError } from '../../api/field-error.ts';
import type { MigrationLetter } from '../../api/kubevirt/migration-state.ts';
import type { JsonObject } from '../../api/meta.ts';
import { byteLength, dnsLabelErrors, dnsSubdomainErrors } from '../../api/names.ts';
import type { Schema } from '../../api/schema.ts';
import { labelsErrors } from '../../api/validate-meta.ts';
import { clone } from '../../machinery/clone.ts';
import { compilePrune } from '../../machinery/schema/prune.ts';
import { compileCheck } from '../../machinery/schema/validate.ts';
import { ValidationContext } from '../../machinery/schema/validation-context.ts';
import { type SourceHalf, sourceHalfShape, type TargetHalf, targetHalfShape } from './half.ts';
import { limited } from './limits.ts';

/**
 * Reads a half that somebody else wrote, who may be anybody: nothing of it is believed to be of its type, length or
 * range before it was looked at. What this version does not know is dropped: a newer one may say more.
 */

/** A half, or what is wrong with what came instead. */
export type ParsedHalf<T> = { readonly half: T } | { readonly problem: string };

/** As much as one message may carry. */
export const HALF_BYTES_MAX = 64 * 1024;

/** Reads what a source tells. */
export const parseSourceHalf: (json: unknown) => ParsedHalf<SourceHalf> = parser(sourceHalfShape, (half) => [
  ...labelsErrors(half.nodeSelectors, 'nodeSelectors'),
  ...macErrors(half.identity?.macAddresses),
  ...uuidErrors(half.identity?.firmwareUUID),
  ...letterErrors(half.letter, ['grant', 'aborted', 'please-refuse']),
]);

/** Reads what a target tells. */
export const parseTargetHalf: (json: unknown) => ParsedHalf<TargetHalf> = parser(targetHalfShape, (half) =>
  letterErrors(half.letter, ['taken', 'refused', 'is-it-over']),
);

function parser<T extends SourceHalf | TargetHalf>(
  shape: Schema,
  moreErrors: (half: T) => readonly FieldError[],
): (json: unknown) => ParsedHalf<T> {
  const schema = limited(shape);
  const prune = compilePrune(schema, false, false);
  const check = compileCheck(schema, false, false);
  return (json) => {
    const size = sizeOf(json);
    if (size > HALF_BYTES_MAX) return { problem: `takes ${size} bytes, and ${HALF_BYTES_MAX} are allowed` };
    if (typeof json !== 'object' || json === null || Array.isArray(json)) return { problem: 'must be an object' };
    const half = withoutNulls(clone(json as JsonObject));
    prune(half);
    const context = new ValidationContext();
    check(half, undefined, context);
    const [first] = context.errors.length > 0 ? context.errors : [...nameErrors(half as T), ...moreErrors(half as T)];
    return first ? { problem: `${first.field}: ${first.message}` } : { half: half as T };
  };
}

/** What cannot even be written down is as large as it gets. */
function sizeOf(json: unknown): number {
  try {
    return byteLength(JSON.stringify(json) ?? '');
  } catch {
    // Too deep, or not JSON at all: it is refused for its size, whatever it is.
    return Number.POSITIVE_INFINITY;
  }
}

/** Null says that there is nothing, as in a patch. */
function withoutNulls(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== null)) as JsonObject;
}

function nameErrors({ uid, name, namespace }: SourceHalf | TargetHalf): FieldError[] {
  return [
    ...(uid === '' ? ['uid: must not be empty'] : []),
    ...dnsSubdomainErrors(name).map((message) => `name: ${message}`),
    ...dnsLabelErrors(namespace).map((message) => `namespace: ${message}`),
  ].map(errorOf);
}

const MAC_ADDRESS = /^([0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}$/;

function macErrors(addresses: Readonly<Record<string, string>> = {}): FieldError[] {
  return Object.entries(addresses)
    .filter(([, address]) => !MAC_ADDRESS.test(address))
    .map(([name]) => errorOf(`identity.macAddresses[${name}]: must be six bytes such as de:ad:00:00:be:af`));
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

function uuidErrors(uuid: string | undefined): FieldError[] {
  return uuid === undefined || UUID.test(uuid) ? [] : [errorOf('identity.firmwareUUID: must be a UUID')];
}

/** Neither side can say what only the other one knows. */
function letterErrors(letter: MigrationLetter | undefined, kinds: readonly MigrationLetter['kind'][]): FieldError[] {
  return letter && !kinds.includes(letter.kind) ? [errorOf(`letter.kind: must be one of ${kinds.join(', ')}`)] : [];
}

function errorOf(text: string): FieldError {
  const [field = '', message = ''] = text.split(': ');
  return { type: 'FieldValueInvalid', field, message };
}
