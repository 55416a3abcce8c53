import { type FieldError, invalid, notSupported, tooLong } from '../../api/field-error.ts';
import { invalidObject } from '../../api/status.ts';
import type { ApiRequest } from '../http/message.ts';

/** The parameters of writes: CreateOptions, UpdateOptions and PatchOptions, which differ in little but their names. */

export type FieldValidation = 'Ignore' | 'Warn' | 'Strict';

export interface WriteOptions {
  readonly dryRun: boolean;
  /** As the client says; empty where it says nothing. */
  readonly fieldManager: string;
  /** What is not said is Warn, as kube-apiserver has it. */
  readonly fieldValidation: FieldValidation;
}

const MANAGER_BYTES_MAX = 128;
/** What Go's unicode.IsPrint refuses. */
const UNPRINTABLE = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u;

const KINDS: ReadonlyMap<string, string> = new Map([
  ['POST', 'CreateOptions'],
  ['PUT', 'UpdateOptions'],
  ['PATCH', 'PatchOptions'],
  ['DELETE', 'DeleteOptions'],
]);

/** Reads the parameters of a write. Throws 422 naming each that is wrong. */
export function writeOptionsOf({ method, query }: Pick<ApiRequest, 'method' | 'query'>): WriteOptions {
  const isDelete = method === 'DELETE';
  const dryRun = query.getAll('dryRun').filter((value) => value !== '');
  const fieldManager = isDelete ? '' : (query.get('fieldManager') ?? '');
  const fieldValidation = isDelete ? '' : (query.get('fieldValidation') ?? '');
  const errors = [...managerErrors(fieldManager), ...dryRunErrors(dryRun)];
  if (!['', 'Ignore', 'Warn', 'Strict'].includes(fieldValidation))
    errors.push(notSupported('fieldValidation', fieldValidation, ['', 'Ignore', 'Strict', 'Warn']));
  if (errors.length > 0) throw invalidObject('meta.k8s.io', KINDS.get(method) ?? 'CreateOptions', '', errors);
  return {
    dryRun: dryRun.length > 0,
    fieldManager,
    fieldValidation: fieldValidation === '' ? 'Warn' : (fieldValidation as FieldValidation),
  };
}

/** What is wrong with the values of `dryRun`. */
export function dryRunErrors(values: readonly string[]): FieldError[] {
  if (values.every((value) => value === 'All')) return [];
  // Go prints the list as a whole.
  const shown = JSON.stringify(values);
  const message = `Unsupported value: ${shown}: supported values: "All"`;
  return [{ type: 'FieldValueNotSupported', field: 'dryRun', message }];
}

function managerErrors(manager: string): FieldError[] {
  const errors: FieldError[] = [];
  if (Buffer.byteLength(manager) > MANAGER_BYTES_MAX) errors.push(tooLong('fieldManager', MANAGER_BYTES_MAX));
  const character = UNPRINTABLE.exec(manager);
  if (character) {
    const code = (character[0].codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
    errors.push(invalid('fieldManager', manager, `invalid character U+${code} (at position ${character.index})`));
  }
  return errors;
}
