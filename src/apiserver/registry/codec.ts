import { apiVersionOf, type Json, type KubeObject } from '../../api/meta.ts';
import type { ResourceDefinition } from '../../api/resource.ts';
import { compileSchema } from '../../machinery/schema/compile.ts';
import type { Stored } from '../storage/store.ts';

/**
 * Objects to and from their stored text. The text begins with apiVersion and kind, so that a reader can see
 * from its first characters whether it may pass it on as it is.
 */

const openings = new WeakMap<ResourceDefinition, string>();

/** How the text of every object of this definition begins. */
function openingOf(definition: ResourceDefinition): string {
  let opening = openings.get(definition);
  if (opening === undefined) {
    opening = `{"apiVersion":${JSON.stringify(apiVersionOf(definition.group, definition.version))},"kind":${JSON.stringify(definition.kind)},`;
    openings.set(definition, opening);
  }
  return opening;
}

/** The key of an object in its bucket. */
export function keyOf(definition: ResourceDefinition, namespace: string, name: string): string {
  return definition.namespaced ? `${namespace}/${name}` : name;
}

/** Encodes in the stored version, with this revision as the resourceVersion. */
export function encodeStored(
  storage: ResourceDefinition,
  face: ResourceDefinition,
  object: KubeObject,
  revision: number,
): string {
  const { apiVersion: _apiVersion, kind: _kind, metadata, ...rest } = object;
  const body = {
    apiVersion: apiVersionOf(storage.group, storage.version),
    kind: storage.kind,
    metadata: { ...metadata, resourceVersion: String(revision) },
    ...rest,
  };
  if (face.storage) {
    face.storage.toStorage(body);
    // What the conversion may have said of these is not what they are.
    body.apiVersion = apiVersionOf(storage.group, storage.version);
    body.kind = storage.kind;
  }
  return JSON.stringify(body);
}

/** The object as this definition's version shows it; a fresh copy. */
export function decodeStored(definition: ResourceDefinition, stored: Pick<Stored, 'text' | 'revision'>): KubeObject {
  const object = JSON.parse(stored.text) as KubeObject;
  if (definition.storage) definition.storage.fromStorage(object);
  else if (predatesSchema(definition, stored)) reshape(definition, object);
  object.apiVersion = apiVersionOf(definition.group, definition.version);
  object.kind = definition.kind;
  return object;
}

/** The object's text as this definition's version shows it: the stored text itself where the versions agree. */
export function textFor(definition: ResourceDefinition, stored: Pick<Stored, 'text' | 'revision'>): string {
  const isAsShown =
    !definition.storage && !predatesSchema(definition, stored) && stored.text.startsWith(openingOf(definition));
  return isAsShown ? stored.text : JSON.stringify(decodeStored(definition, stored));
}

function predatesSchema({ shapedSince = 0 }: ResourceDefinition, { revision }: Pick<Stored, 'revision'>): boolean {
  return revision < shapedSince;
}

/** Makes an object what this definition would have made of it. */
export function reshape(definition: ResourceDefinition, object: KubeObject): void {
  const compiled = compileSchema(definition.schema, { builtin: !definition.custom });
  compiled.prune(object as unknown as Json);
  compiled.applyDefaults(object as unknown as Json);
}
