import { listMeta, objectMeta } from '../../api/kinds/meta.ts';
import { deleteOptionsSchema } from '../../api/kinds/meta-options.ts';
import type { ResourceDefinition, SubresourceDefinition } from '../../api/resource.ts';
import type { Schema } from '../../api/schema.ts';
import { setOwn } from '../../machinery/clone.ts';
import { type GroupVersionKind, kindOfSubresource } from './groups.ts';
import { type Dialect, META, type Published, statusSchema, WELL_KNOWN } from './openapi-well-known.ts';

/**
 * Our schemas as OpenAPI publishes them: every named one once, everything else in place. A name is entered before its
 * schema is walked, so schemas that contain themselves come out as references.
 */

const REFERENCE_PREFIX: { readonly [dialect in Dialect]: string } = {
  v2: '#/definitions/',
  v3: '#/components/schemas/',
};

/** Keywords that are copied as they are; whatever else a schema of ours carries is nobody's business. */
const PLAIN = [
  'type',
  'format',
  'title',
  'description',
  'required',
  'enum',
  'default',
  'pattern',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'uniqueItems',
  'minProperties',
  'maxProperties',
  'x-kubernetes-int-or-string',
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-embedded-resource',
  'x-kubernetes-list-type',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-map-type',
  'x-kubernetes-validations',
  'x-kubernetes-patch-strategy',
  'x-kubernetes-patch-merge-key',
] as const satisfies readonly (keyof Schema)[];

/** Keywords that belong to a field rather than to the named schema it refers to. */
const AT_SITE = ['default', 'x-kubernetes-patch-strategy', 'x-kubernetes-patch-merge-key'] as const;

/** The named schemas of one document. */
export class Components {
  readonly #dialect: Dialect;
  readonly #schemas = new Map<string, Published>();

  constructor(dialect: Dialect) {
    this.#dialect = dialect;
  }

  /** All of them by name, in order. */
  toJSON(): Published {
    const sorted: Published = {};
    for (const name of [...this.#schemas.keys()].sort()) setOwn(sorted, name, this.#schemas.get(name));
    return sorted;
  }

  reference(name: string): Published {
    return { $ref: `${REFERENCE_PREFIX[this.#dialect]}${name}` };
  }

  /** The name under which a resource's kind is published; it and its list are from here on. */
  addKind(definition: ResourceDefinition): string {
    const { group, version, kind, listKind, custom, schema } = definition;
    const name = (custom ? undefined : schema.name) ?? nameOf(group, version, kind);
    if (custom) this.#addCustom(name, schema);
    else this.#add(name, schema);
    this.#tag(name, { group, version, kind });
    if ((definition.verbs ?? ['list']).includes('list')) this.#addList(definition, name, listKind);
    return name;
  }

  /** The name of the body of a subresource, if it has one of its own. */
  addSubresource(parent: ResourceDefinition, subresource: SubresourceDefinition): string | undefined {
    if (!subresource.schema) return undefined;
    const kind = kindOfSubresource(parent, subresource);
    const name = subresource.schema.name ?? nameOf(kind.group, kind.version, kind.kind);
    this.#add(name, subresource.schema);
    this.#tag(name, kind);
    return name;
  }

  listName(kindName: string, definition: ResourceDefinition): string {
    return kindName.slice(0, kindName.lastIndexOf('.') + 1) + definition.listKind;
  }

  /** metav1.Status. */
  addStatus(): string {
    const name = this.#add(statusSchema.name ?? '', statusSchema);
    this.#tag(name, { group: '', version: 'v1', kind: 'Status' });
    return name;
  }

  /** metav1.DeleteOptions, which every group has as a kind of its own. */
  addDeleteOptions(group: string, version: string): string {
    const name = this.#add(deleteOptionsSchema.name ?? '', deleteOptionsSchema);
    this.#tag(name, { group, version, kind: 'DeleteOptions' });
    return name;
  }

  /** metav1.Patch: any object. */
  addPatch(): string {
    const name = `${META}.Patch`;
    this.#schemas.set(name, {
      type: 'object',
      description: 'What to change, in the form that the content type names.',
    });
    return name;
  }

  #addList(definition: ResourceDefinition, kindName: string, listKind: string): void {
    const name = this.listName(kindName, definition);
    if (!this.#schemas.has(name)) {
      this.#schemas.set(name, {
        type: 'object',
        description: `A list of ${definition.kind} objects.`,
        required: ['items'],
        properties: {
          apiVersion: { type: 'string', description: 'Version of the schema of this object.' },
          items: { type: 'array', description: 'The objects.', items: this.reference(kindName) },
          kind: { type: 'string', description: 'What this object is.' },
          metadata: this.#field({ ...listMeta, description: 'Standard list metadata.', protobuf: 1 }, false),
        },
      });
    }
    this.#tag(name, { group: definition.group, version: definition.version, kind: listKind });
  }

  #tag(name: string, kind: GroupVersionKind): void {
    const component = this.#schemas.get(name);
    if (!component) return;
    const kinds = (component['x-kubernetes-group-version-kind'] ?? []) as GroupVersionKind[];
    const isKnown = kinds.some(
      (each) => each.group === kind.group && each.version === kind.version && each.kind === kind.kind,
    );
    if (!isKnown) component['x-kubernetes-group-version-kind'] = [...kinds, kind];
  }

  #add(name: string, schema: Schema): string {
    const known = this.#schemas.get(name);
    // A field's copy of a schema has the field's description; only the original tells what the type is.
    const isOriginal = schema.protobuf === undefined && schema.description !== undefined;
    if (known) {
      if (isOriginal && known['description'] === undefined) known['description'] = schema.description;
      return name;
    }
    const component: Published = {};
    this.#schemas.set(name, component);
    Object.assign(component, this.#body(schema, false));
    for (const key of AT_SITE) delete component[key];
    if (!isOriginal) delete component['description'];
    return name;
  }

  #addCustom(name: string, schema: Schema): void {
    const body = this.#body(schema, true);
    const metadata = this.#field({ ...objectMeta, description: 'Standard metadata.', protobuf: 1 }, false);
    this.#schemas.set(name, { ...body, properties: { ...(body['properties'] as Published | undefined), metadata } });
  }

  /** A schema where it is used: a reference if it has a name, else itself. */
  #field(schema: Schema, isCustom: boolean): Published {
    if (isCustom) return this.#body(schema, true);
    const wellKnown = schema.format === undefined ? undefined : WELL_KNOWN[schema.format];
    if (wellKnown) this.#schemas.set(wellKnown.name, wellKnown[this.#dialect]);
    const name = wellKnown?.name ?? schema.name;
    if (name === undefined) return this.#body(schema, false);
    if (!wellKnown) this.#add(name, schema);
    const site: Published = {};
    if (schema.protobuf !== undefined && schema.description !== undefined) site['description'] = schema.description;
    for (const key of AT_SITE) if (schema[key] !== undefined) site[key] = schema[key];
    // Said only where it is not what the named schema says.
    if (schema['x-kubernetes-map-type'] === 'granular') site['x-kubernetes-map-type'] = 'granular';
    const reference = this.reference(name);
    if (Object.keys(site).length === 0) return reference;
    return this.#dialect === 'v3' ? { allOf: [reference], ...site } : { ...reference, ...site };
  }

  #body(schema: Schema, isCustom: boolean): Published {
    const body: Published = {};
    for (const key of PLAIN) if (schema[key] !== undefined) body[key] = schema[key];
    const isLoose = this.#dialect === 'v2' && isCustom && this.#looseForV2(schema, body);
    // A built-in value of several types (a schema or a boolean) is published as just anything, as upstream does.
    const isOpaque = isLoose || (!isCustom && schema.type === undefined);
    if (!isOpaque) {
      if (schema.properties) {
        const properties: Published = {};
        for (const [field, each] of Object.entries(schema.properties)) {
          setOwn(properties, field, this.#field(each, isCustom));
        }
        body['properties'] = properties;
      }
      if (schema.items) body['items'] = this.#field(schema.items, isCustom);
      if (typeof schema.additionalProperties === 'object') {
        body['additionalProperties'] = this.#field(schema.additionalProperties, isCustom);
      } else if (schema.additionalProperties !== undefined) {
        body['additionalProperties'] = schema.additionalProperties;
      }
    }
    if (this.#dialect === 'v3') this.#addV3Keywords(schema, body, isCustom);
    if (isCustom && schema['x-kubernetes-embedded-resource'] && !isOpaque) this.#completeEmbedded(body);
    return body;
  }

  #addV3Keywords(schema: Schema, body: Published, isCustom: boolean): void {
    if (schema.nullable && isCustom) body['nullable'] = true;
    for (const key of ['allOf', 'anyOf', 'oneOf'] as const) {
      if (schema[key]) body[key] = schema[key].map((each) => this.#body(each, isCustom));
    }
    if (schema.not) body['not'] = this.#body(schema.not, isCustom);
  }

  /**
   * Version 2 cannot say that a value may be null or have unknown fields, and kubectl would refuse such values before
   * the server sees them; so there it says nothing. Answers whether it did.
   */
  #looseForV2(schema: Schema, body: Published): boolean {
    if (schema['x-kubernetes-int-or-string']) delete body['type'];
    if (!schema.nullable && !schema['x-kubernetes-preserve-unknown-fields']) return false;
    delete body['required'];
    if (schema.nullable) for (const key of ['type', 'format', 'enum']) delete body[key];
    return true;
  }

  #completeEmbedded(body: Published): void {
    body['properties'] = {
      apiVersion: { type: 'string', description: 'Version of the schema of this object.' },
      kind: { type: 'string', description: 'What this object is.' },
      ...(body['properties'] as Published | undefined),
      metadata: this.#field({ ...objectMeta, description: 'Standard metadata.', protobuf: 1 }, false),
    };
  }
}

/** How kinds without a name of their own are called: their group backwards, as Java would name a package. */
function nameOf(group: string, version: string, kind: string): string {
  return [...group.split('.').reverse(), version, kind].join('.');
}
