import type { Json, JsonObject } from '../../api/meta.ts';
import type { Schema } from '../../api/schema.ts';
import { itemKey } from '../schema/correlate.ts';
import { parseGoDuration } from '../schema/duration.ts';
import { parseDate, parseRfc3339 } from '../schema/time.ts';
import { evaluationError } from './budget.ts';
import { type Field, fieldsOf, resourceForRules } from './schema-types.ts';
import { Duration, ListValue, MapValue, Timestamp, type Value } from './values.ts';

/** JSON as values: by its schema where there is one, by what it looks like where there is none. */

/** The value that JSON stands for under a schema. Throws where they do not fit. */
export function fromJson(json: Json, given: Schema): Value {
  const schema = given['x-kubernetes-embedded-resource'] === true ? resourceForRules(given) : given;
  if (json === null) {
    if (schema.nullable === true) return null;
    throw evaluationError('invalid data, got null for schema with nullable=false');
  }
  if (schema['x-kubernetes-int-or-string'] === true || schema.type === undefined) return fromDynamic(json);
  switch (schema.type) {
    case 'object':
      if (typeof json !== 'object' || Array.isArray(json)) break;
      return typeof schema.additionalProperties === 'object' && !schema.properties
        ? new JsonMap(json, schema.additionalProperties)
        : new JsonFields(json, schema);
    case 'array':
      if (!Array.isArray(json)) break;
      return new JsonList(json, schema);
    case 'string':
      if (typeof json !== 'string') break;
      return fromText(json, schema.format);
    case 'number':
      if (typeof json !== 'number') break;
      return json;
    case 'integer':
      if (!Number.isInteger(json)) break;
      return BigInt(json as number);
    case 'boolean':
      if (typeof json !== 'boolean') break;
      return json;
  }
  throw evaluationError(`invalid data, expected ${schema.type}`);
}

function fromText(text: string, format: string | undefined): Value {
  if (format === 'byte') return Uint8Array.from(Buffer.from(text, 'base64'));
  if (format === 'duration') {
    const nanoseconds = parseGoDuration(text);
    if (nanoseconds === undefined) throw evaluationError(`Invalid duration ${text}`);
    return new Duration(nanoseconds);
  }
  if (format !== 'date' && format !== 'date-time') return text;
  const nanoseconds = format === 'date' ? parseDate(text) : parseRfc3339(text);
  if (nanoseconds === undefined) throw evaluationError(`Invalid ${format} formatted string ${text}`);
  return new Timestamp(nanoseconds);
}

/** JSON of which nothing is known: whole numbers are ints. */
export function fromDynamic(json: Json): Value {
  if (typeof json === 'number') return Number.isInteger(json) && Math.abs(json) <= 2 ** 63 ? BigInt(json) : json;
  if (typeof json !== 'object' || json === null) return json;
  return Array.isArray(json) ? new JsonList(json, undefined) : new JsonMap(json, undefined);
}

class JsonList extends ListValue {
  readonly #json: readonly Json[];
  readonly #schema: Schema | undefined;
  readonly #items: Schema | undefined;

  constructor(json: readonly Json[], schema: Schema | undefined) {
    super();
    this.#json = json;
    this.#schema = schema;
    this.#items = schema?.items;
  }

  get size(): number {
    return this.#json.length;
  }

  at(index: number): Value {
    const json = this.#json[index] as Json;
    return this.#items === undefined ? fromDynamic(json) : fromJson(json, this.#items);
  }

  override identity(index: number): string | undefined {
    const item = this.#json[index] as Json;
    const listType = this.#schema?.['x-kubernetes-list-type'];
    if (listType === 'set') return JSON.stringify(item);
    return listType === 'map' ? itemKey(item, this.#schema?.['x-kubernetes-list-map-keys'] ?? []) : undefined;
  }

  override concat(other: ListValue): ListValue {
    const listType = this.#schema?.['x-kubernetes-list-type'];
    if (!(other instanceof JsonList) || (listType !== 'set' && listType !== 'map')) return super.concat(other);
    const items = [...this.#json];
    const positions = new Map<string | undefined, number>();
    for (let index = 0; index < this.size; index++) positions.set(this.identity(index), index);
    for (let index = 0; index < other.size; index++) {
      const known = positions.get(other.identity(index));
      if (known === undefined) items.push(other.#json[index] as Json);
      else items[known] = other.#json[index] as Json;
    }
    return new JsonList(items, this.#schema);
  }
}

/** A map, or an object of which nothing is known. */
class JsonMap extends MapValue {
  readonly #json: JsonObject;
  readonly #values: Schema | undefined;

  constructor(json: JsonObject, values: Schema | undefined) {
    super();
    this.#json = json;
    this.#values = values;
  }

  get size(): number {
    return Object.keys(this.#json).length;
  }

  get(key: Value): Value | undefined {
    if (typeof key !== 'string' || !Object.hasOwn(this.#json, key)) return undefined;
    const json = this.#json[key] as Json;
    return this.#values === undefined ? fromDynamic(json) : fromJson(json, this.#values);
  }

  override has(key: Value): boolean {
    return typeof key === 'string' && Object.hasOwn(this.#json, key);
  }

  keys(): Value[] {
    return Object.keys(this.#json);
  }
}

/** An object with declared fields, under their escaped names. A null field is an absent one. */
class JsonFields extends MapValue {
  readonly #json: JsonObject;
  readonly #schema: Schema;
  readonly #fields: ReadonlyMap<string, Field>;

  constructor(json: JsonObject, schema: Schema) {
    super();
    this.#json = json;
    this.#schema = schema;
    this.#fields = fieldsOf(schema);
  }

  get size(): number {
    return Object.keys(this.#json).length;
  }

  get(key: Value): Value | undefined {
    const field = typeof key === 'string' ? this.#fields.get(key) : undefined;
    if (field === undefined || !this.#isSet(field.name)) return undefined;
    return fromJson(this.#json[field.name] as Json, field.schema);
  }

  override has(key: Value): boolean {
    const field = typeof key === 'string' ? this.#fields.get(key) : undefined;
    return field !== undefined && this.#isSet(field.name);
  }

  keys(): Value[] {
    return Array.from(this.#fields).flatMap(([key, field]) => (this.#isSet(field.name) ? [key] : []));
  }

  override hiddenKeys(): Value[] {
    return Object.keys(this.#json).filter((name) => this.#isSet(name));
  }

  override getHidden(key: Value): Value | undefined {
    if (typeof key !== 'string' || !this.#isSet(key)) return undefined;
    const properties = this.#schema.properties ?? {};
    const schema = Object.hasOwn(properties, key) ? properties[key] : undefined;
    const json = this.#json[key] as Json;
    return schema === undefined ? fromDynamic(json) : fromJson(json, schema);
  }

  #isSet(name: string): boolean {
    return Object.hasOwn(this.#json, name) && this.#json[name] !== null;
  }
}
