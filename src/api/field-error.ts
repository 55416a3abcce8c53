/** Validation errors that name the field, worded as Kubernetes' field.Error so that kubectl users recognise them. */

export type FieldErrorType =
  | 'FieldValueRequired'
  | 'FieldValueInvalid'
  | 'FieldValueNotSupported'
  | 'FieldValueForbidden'
  | 'FieldValueDuplicate'
  | 'FieldValueTooLong'
  | 'FieldValueTooMany'
  | 'FieldValueTypeInvalid'
  | 'FieldValueNotFound'
  | 'InternalError';

export interface FieldError {
  readonly type: FieldErrorType;
  /** The path, e.g. `spec.containers[0].name`; empty for the object as a whole. */
  readonly field: string;
  /** The complete sentence without the path, e.g. `Invalid value: "x": must be positive`. */
  readonly message: string;
}

/** A path below `parent`: `field` for a property, a number for an index, `[key]` for a map key. */
export function child(parent: string, field: string | number): string {
  if (typeof field === 'number') return `${parent}[${field}]`;
  return parent === '' ? field : `${parent}.${field}`;
}

/** A path to a map's entry, e.g. `metadata.labels[app]`. */
export function entry(parent: string, key: string): string {
  return `${parent}[${key}]`;
}

/** Characters of a value that a message shows: enough to recognise it, not the whole body once more. */
const SHOWN_LENGTH_MAX = 1024;

/**
 * A value as Go prints it in these messages: strings quoted, the rest as JSON. Only the beginning of what is long is
 * even looked at: a list may be shown once for each of its items.
 */
export function show(value: unknown): string {
  const text = shorten(value === undefined ? null : value, SHOWN_LENGTH_MAX);
  return text.length > SHOWN_LENGTH_MAX ? `${text.slice(0, SHOWN_LENGTH_MAX)}...` : text;
}

/** JSON of the value, which may stop anywhere once it is longer than the limit. */
function shorten(value: unknown, limit: number): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, limit));
  if (Array.isArray(value)) {
    let text = '[';
    for (let index = 0; index < value.length && text.length <= limit; index++)
      text += (index === 0 ? '' : ',') + shorten(value[index], limit - text.length);
    return `${text}]`;
  }
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  let text = '{';
  for (const [key, field] of Object.entries(value)) {
    if (text.length > limit) break;
    if (field === undefined) continue;
    text += `${text === '{' ? '' : ','}${JSON.stringify(key)}:${shorten(field, limit - text.length)}`;
  }
  return `${text}}`;
}

export function required(field: string, detail = ''): FieldError {
  return { type: 'FieldValueRequired', field, message: detail === '' ? 'Required value' : `Required value: ${detail}` };
}

export function invalid(field: string, value: unknown, detail: string): FieldError {
  return { type: 'FieldValueInvalid', field, message: `Invalid value: ${show(value)}: ${detail}` };
}

export function typeInvalid(field: string, value: unknown, detail: string): FieldError {
  return { type: 'FieldValueTypeInvalid', field, message: `Invalid value: ${show(value)}: ${detail}` };
}

export function notSupported(field: string, value: unknown, supported: readonly string[]): FieldError {
  const list = supported.map((each) => JSON.stringify(each)).join(', ');
  return {
    type: 'FieldValueNotSupported',
    field,
    message: `Unsupported value: ${show(value)}: supported values: ${list}`,
  };
}

export function forbidden(field: string, detail: string): FieldError {
  return { type: 'FieldValueForbidden', field, message: `Forbidden: ${detail}` };
}

export function duplicate(field: string, value: unknown): FieldError {
  return { type: 'FieldValueDuplicate', field, message: `Duplicate value: ${show(value)}` };
}

export function tooLong(field: string, maxBytes: number): FieldError {
  return {
    type: 'FieldValueTooLong',
    field,
    message: `Too long: may not be more than ${maxBytes} byte${maxBytes === 1 ? '' : 's'}`,
  };
}

export function tooMany(field: string, actual: number, max: number): FieldError {
  return {
    type: 'FieldValueTooMany',
    field,
    message: `Too many: ${actual}: must have at most ${max} item${max === 1 ? '' : 's'}`,
  };
}

/** A reference to what is not there. */
export function notFound(field: string, value: unknown): FieldError {
  return { type: 'FieldValueNotFound', field, message: `Not found: ${show(value)}` };
}
