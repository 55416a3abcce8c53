import { entry, type FieldError, forbidden, invalid, tooLong } from '../../field-error.ts';
import type { KubeObject } from '../../meta.ts';
import { byteLength, configKeyErrors } from '../../names.ts';
import type { Strategy } from '../../resource.ts';
import { bool, bytes, map, str } from '../../schema.ts';
import { ageColumn, column, nameColumn } from '../columns.ts';
import { objectSchema } from '../meta.ts';
import { isSame } from '../validation.ts';
import { decodedLength } from './base64.ts';
import { isSet, objectAt, textEntriesAt } from './fields.ts';
import { coreKind } from './kind.ts';
import { CORE } from './schema/package.ts';

/** All values of one ConfigMap or Secret together, as upstream. */
export const DATA_BYTES_MAX = 1024 * 1024;

const strategy: Strategy = {
  validate(configMap) {
    const binary = objectAt(configMap, 'binaryData') ?? {};
    const errors: FieldError[] = [];
    let bytesTotal = 0;
    for (const [key, value] of textEntriesAt(configMap, 'data')) {
      const path = entry('data', key);
      for (const message of configKeyErrors(key)) errors.push(invalid(path, key, message));
      if (Object.hasOwn(binary, key)) errors.push(invalid(path, key, 'duplicate of key present in binaryData'));
      bytesTotal += byteLength(value);
    }
    for (const [key, value] of textEntriesAt(configMap, 'binaryData')) {
      for (const message of configKeyErrors(key)) errors.push(invalid(entry('binaryData', key), key, message));
      bytesTotal += decodedLength(value);
    }
    if (bytesTotal > DATA_BYTES_MAX) errors.push(tooLong('', DATA_BYTES_MAX));
    return errors;
  },
  validateUpdate: (configMap, old) => frozenErrors(configMap, old, 'data', 'binaryData'),
};

/** Refuses changes of data once somebody has made it immutable, and of that too. */
export function frozenErrors(object: KubeObject, old: KubeObject, ...fields: readonly string[]): FieldError[] {
  if (!isSet(old, 'immutable')) return [];
  const detail = 'field is immutable when `immutable` is set';
  const changed = fields.filter((field) => !isSame(objectAt(object, field) ?? {}, objectAt(old, field) ?? {}));
  const thawed = isSet(object, 'immutable') ? [] : ['immutable'];
  return [...thawed, ...changed].map((field) => forbidden(field, detail));
}

/** core/v1 ConfigMap. */
export const configMapDefinition = coreKind({
  plural: 'configmaps',
  kind: 'ConfigMap',
  namespaced: true,
  shortNames: ['cm'],
  schema: objectSchema(`${CORE}.ConfigMap`, 'Configuration in keys and values.', {
    data: [2, map(str()), 'Values that are text.'],
    binaryData: [3, map(bytes()), 'Values that are bytes, in base64.'],
    immutable: [4, bool({ pointer: true }), 'Whether data can no longer be changed.'],
  }),
  columns: [
    nameColumn,
    column(
      'Data',
      'string',
      'How many keys there are.',
      (_spec, _status, object) =>
        Object.keys(objectAt(object, 'data') ?? {}).length + Object.keys(objectAt(object, 'binaryData') ?? {}).length,
    ),
    ageColumn,
  ],
  strategy,
});
