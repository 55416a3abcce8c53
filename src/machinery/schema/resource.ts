import { objectMeta } from '../../api/kinds/meta.ts';
import { type Schema, str } from '../../api/schema.ts';

const META_FIELDS: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata']);

const described = new WeakMap<Schema, Schema>();

/** Whether the field belongs to every resource, whatever its schema says. */
export function isMetaField(field: string): boolean {
  return META_FIELDS.has(field);
}

/**
 * The schema of a resource (a root, or an embedded one) with the fields that every resource has. The metadata is
 * always the built-in one; a CRD may only restrict its name and generateName.
 */
export function describeResource(schema: Schema): Schema {
  const known = described.get(schema);
  if (known) return known;
  const own = schema.properties ?? {};
  const result: Schema = {
    ...schema,
    properties: {
      ...own,
      apiVersion: { ...str(), ...own['apiVersion'] },
      kind: { ...str(), ...own['kind'] },
      metadata: describeMetadata(own['metadata']),
    },
  };
  described.set(schema, result);
  return result;
}

function describeMetadata(own: Schema | undefined): Schema {
  if (own === undefined || own.name === objectMeta.name) return own ?? objectMeta;
  const restrictions: Record<string, Schema> = {};
  for (const field of ['name', 'generateName']) {
    const restriction = own.properties?.[field];
    if (restriction) restrictions[field] = { ...restriction, type: 'string' };
  }
  return {
    ...objectMeta,
    ...(own.required === undefined ? {} : { required: own.required }),
    properties: { ...objectMeta.properties, ...restrictions },
  };
}
