import { invalid, required } from '../../api/field-error.ts';
import type { Json, JsonObject, ObjectMeta } from '../../api/meta.ts';
import { dns1035LabelErrors, pathSegmentErrors } from '../../api/names.ts';
import type { Schema } from '../../api/schema.ts';
import { validateObjectMeta } from '../../api/validate-meta.ts';
import type { ValidationContext } from './validation-context.ts';

/** What every embedded resource must have: an apiVersion, a kind, and well-formed metadata. */
export type EmbeddedCheck = (value: Json, context: ValidationContext) => void;

/** Compiles the check of the resources embedded below the root; undefined where the schema embeds none. */
export function compileEmbeddedCheck(schema: Schema): EmbeddedCheck | undefined {
  return new Compiler().compile(schema, true);
}

class Compiler {
  readonly #known = new Map<Schema, EmbeddedCheck | undefined>();

  compile(schema: Schema, isRoot = false): EmbeddedCheck | undefined {
    if (this.#known.has(schema)) return this.#known.get(schema);
    let check: EmbeddedCheck | undefined;
    this.#known.set(schema, (value, context) => check?.(value, context));
    check = this.#node(schema, isRoot);
    this.#known.set(schema, check);
    return check;
  }

  #node(schema: Schema, isRoot: boolean): EmbeddedCheck | undefined {
    const below = new Map<string, EmbeddedCheck>();
    for (const [field, property] of Object.entries(schema.properties ?? {})) {
      const check = this.compile(property);
      if (check) below.set(field, check);
    }
    const additional = schema.additionalProperties;
    const others = typeof additional === 'object' ? this.compile(additional) : undefined;
    const items = schema.items === undefined ? undefined : this.compile(schema.items);
    const isResource = !isRoot && schema['x-kubernetes-embedded-resource'] === true;
    if (below.size === 0 && !others && !items && !isResource) return undefined;
    return (value, context) => {
      if (typeof value !== 'object' || value === null) return;
      if (isResource && !Array.isArray(value)) checkResource(value, context);
      for (const key of Object.keys(value)) {
        const check = Array.isArray(value) ? items : (below.get(key) ?? others);
        if (!check || context.isFull) continue;
        context.path.push(Array.isArray(value) ? Number(key) : key);
        check((value as JsonObject)[key] as Json, context);
        context.path.pop();
      }
    };
  }
}

function checkResource(value: JsonObject, context: ValidationContext): void {
  const { field } = context;
  const at = (name: string): string => (field === '' ? name : `${field}.${name}`);
  for (const name of ['apiVersion', 'kind']) {
    if (!Object.hasOwn(value, name)) context.add(required(at(name)));
    else if (value[name] === '') context.add(invalid(at(name), '', 'must not be empty'));
  }
  const { apiVersion, kind, metadata } = value;
  if (typeof apiVersion === 'string' && apiVersion.split('/').length > 2) {
    context.add(invalid(at('apiVersion'), apiVersion, `unexpected GroupVersion string: ${apiVersion}`));
  }
  const wrong = typeof kind === 'string' && kind !== '' ? dns1035LabelErrors(kind.toLowerCase()) : [];
  if (wrong.length > 0) {
    const detail = `may have mixed case, but should otherwise match: ${wrong.join(',')}`;
    context.add(invalid(at('kind'), kind, detail));
  }
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata)) return;
  // Only what the schema has found to be of the right shape can be looked at more closely.
  if (context.errors.length === 0) checkMetadata(metadata as ObjectMeta, at('metadata'), context);
}

function checkMetadata(metadata: ObjectMeta, path: string, context: ValidationContext): void {
  // A template need not have a name yet.
  const named = metadata.name ? metadata : { ...metadata, name: 'unnamed' };
  for (const error of validateObjectMeta(named, Boolean(metadata.namespace), pathSegmentErrors)) {
    context.add({ ...error, field: error.field.replace(/^metadata/, path) });
  }
}
