import { entry, type FieldError, invalid, required, tooLong } from '../../field-error.ts';
import type { JsonObject, KubeObject } from '../../meta.ts';
import { configKeyErrors } from '../../names.ts';
import type { Strategy } from '../../resource.ts';
import { bool, bytes, map, str } from '../../schema.ts';
import { ageColumn, column, nameColumn } from '../columns.ts';
import { objectSchema } from '../meta.ts';
import { immutableErrors } from '../validation.ts';
import { decodedLength, decodeText, encodeText } from './base64.ts';
import { DATA_BYTES_MAX, frozenErrors } from './config-map.ts';
import { ensureObject, objectAt, textAt, textEntriesAt } from './fields.ts';
import { coreKind } from './kind.ts';
import { CORE } from './schema/package.ts';

const ACCOUNT_ANNOTATION = 'kubernetes.io/service-account.name';

const strategy: Strategy = {
  applyDefaults(secret) {
    if (textAt(secret, 'type') === '') secret['type'] = 'Opaque';
    const texts = textEntriesAt(secret, 'stringData');
    if (texts.length > 0) {
      const data = ensureObject(secret, 'data');
      if (data !== undefined) for (const [key, value] of texts) setOwn(data, key, encodeText(value));
    }
    delete secret['stringData'];
  },
  validate(secret) {
    const errors: FieldError[] = [];
    let bytesTotal = 0;
    for (const [key, value] of textEntriesAt(secret, 'data')) {
      for (const message of configKeyErrors(key)) errors.push(invalid(entry('data', key), key, message));
      bytesTotal += decodedLength(value);
    }
    if (bytesTotal > DATA_BYTES_MAX) errors.push(tooLong('data', DATA_BYTES_MAX));
    return [...errors, ...typeErrors(secret)];
  },
  validateUpdate: (secret, old) => [
    ...immutableErrors(secret['type'], old['type'], 'type'),
    ...frozenErrors(secret, old, 'data'),
  ],
};

/** Keys are data: one named `__proto__` must become a property like any other. */
function setOwn(object: JsonObject, key: string, value: string): void {
  Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
}

/** What a secret of a known type must hold. */
function typeErrors(secret: KubeObject): FieldError[] {
  const data = new Map(textEntriesAt(secret, 'data'));
  const missing = (...keys: readonly string[]): FieldError[] =>
    keys.filter((key) => !data.has(key)).map((key) => required(entry('data', key)));
  switch (textAt(secret, 'type')) {
    case 'kubernetes.io/service-account-token':
      return (secret.metadata.annotations?.[ACCOUNT_ANNOTATION] ?? '') === ''
        ? [required(entry('metadata.annotations', ACCOUNT_ANNOTATION))]
        : [];
    case 'kubernetes.io/dockercfg':
      return dockerErrors(data, '.dockercfg');
    case 'kubernetes.io/dockerconfigjson':
      return dockerErrors(data, '.dockerconfigjson');
    case 'kubernetes.io/basic-auth':
      return data.has('username') || data.has('password') ? [] : missing('username', 'password');
    case 'kubernetes.io/ssh-auth':
      return (data.get('ssh-privatekey') ?? '') === '' ? [required(entry('data', 'ssh-privatekey'))] : [];
    case 'kubernetes.io/tls':
      return missing('tls.crt', 'tls.key');
    default:
      return [];
  }
}

function dockerErrors(data: ReadonlyMap<string, string>, key: string): FieldError[] {
  const value = data.get(key);
  const path = entry('data', key);
  if (value === undefined) return [required(path)];
  // What is in a secret never appears in an error.
  return isJsonObject(decodeText(value)) ? [] : [invalid(path, '<secret contents redacted>', 'must be a JSON object')];
}

function isJsonObject(text: string | undefined): boolean {
  try {
    const value: unknown = JSON.parse(text ?? '');
    return typeof value === 'object' && !Array.isArray(value);
  } catch {
    // Not JSON at all: that is the answer, not an error of ours.
    return false;
  }
}

/** core/v1 Secret. */
export const secretDefinition = coreKind({
  plural: 'secrets',
  kind: 'Secret',
  namespaced: true,
  schema: objectSchema(`${CORE}.Secret`, 'Data to be kept from most eyes, in keys and values.', {
    data: [2, map(bytes()), 'Values in base64.'],
    type: [3, str(), 'What the secret is for; Opaque by default.'],
    stringData: [4, map(str()), 'Values as text; the server moves them into data.'],
    immutable: [5, bool({ pointer: true }), 'Whether data can no longer be changed.'],
  }),
  selectableFields: ['type'],
  columns: [
    nameColumn,
    column('Type', 'string', 'What the secret is for.', (_spec, _status, object) => textAt(object, 'type')),
    column(
      'Data',
      'string',
      'How many keys there are.',
      (_spec, _status, object) => Object.keys(objectAt(object, 'data') ?? {}).length,
    ),
    ageColumn,
  ],
  strategy,
});
