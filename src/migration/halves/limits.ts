import type { Schema } from '../../api/schema.ts';

/** Limits for what a schema leaves open: enough for anything that is meant, and nothing that could hurt. */

const TEXT_LENGTH_MAX = 2048;
const ITEMS_MAX = 256;
const PROPERTIES_MAX = 256;

/** The same schema, in which every text, list and map has a limit, every object only known fields, and nothing is null. */
export function limited(schema: Schema): Schema {
  const { nullable: _, 'x-kubernetes-preserve-unknown-fields': _open, properties, items, ...rest } = schema;
  const { additionalProperties } = rest;
  return {
    ...rest,
    ...(schema.type === 'string' && !schema.enum ? { maxLength: schema.maxLength ?? TEXT_LENGTH_MAX } : {}),
    ...(schema.type === 'array' ? { maxItems: schema.maxItems ?? ITEMS_MAX } : {}),
    ...(schema['x-kubernetes-int-or-string'] === true ? { maxLength: TEXT_LENGTH_MAX } : {}),
    ...(items ? { items: limited(items) } : {}),
    ...(properties
      ? { properties: Object.fromEntries(Object.entries(properties).map(([name, each]) => [name, limited(each)])) }
      : {}),
    ...(typeof additionalProperties === 'object'
      ? { additionalProperties: limited(additionalProperties), maxProperties: schema.maxProperties ?? PROPERTIES_MAX }
      : {}),
  };
}
