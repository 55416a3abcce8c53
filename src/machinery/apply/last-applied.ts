/**
 * The bridge from client-side to server-side apply. Objects that kubectl once applied itself carry the configuration in
 * an annotation; when kubectl applies them on the server, fields that still are as that configuration says count as
 * kubectl's own, so that there is no conflict with its former self, and the annotation is kept up to date.
 */

import type { Json, JsonObject, KubeObject } from '../../api/meta.ts';
import type { Schema } from '../../api/schema.ts';
import { clone, setOwn } from '../clone.ts';
import { changesOf, touchedBy } from './changes.ts';
import { type FieldSet, NOTHING, difference } from './field-set.ts';
import { appliedPaths } from './paths.ts';
import { rootSchemaOf } from './typed.ts';

const ANNOTATION = 'kubectl.kubernetes.io/last-applied-configuration';

/** The manager that this is for; others opt out by their name. */
export const KUBECTL_MANAGER = 'kubectl';

/** The fields of the live object that are as kubectl last applied them on the client's side. */
export function lastAppliedFields(live: JsonObject, schema: Schema, apiVersion: string): FieldSet {
  const annotation = annotationOf(live as unknown as KubeObject);
  if (annotation === undefined) return NOTHING;
  const lastApplied = parseObject(annotation);
  if (lastApplied === undefined || lastApplied['apiVersion'] !== apiVersion) return NOTHING;
  const fields = appliedPaths(lastApplied, rootSchemaOf(schema));
  const changes = changesOf(lastApplied, live, schema);
  return changes === undefined ? fields : difference(fields, touchedBy(changes));
}

function parseObject(text: string): JsonObject | undefined {
  try {
    const value = JSON.parse(text) as Json;
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    // An annotation that someone else has written over tells nothing; the conflicts then stand.
    return undefined;
  }
}

/** Brings the annotation of an applied object, where it has one, up to the applied configuration. Changes `object`. */
export function refreshLastApplied(object: KubeObject, applied: KubeObject): void {
  if (annotationOf(object) === undefined) return;
  const configuration = clone(applied);
  if (configuration.metadata.annotations) delete configuration.metadata.annotations[ANNOTATION];
  (object.metadata.annotations ??= {})[ANNOTATION] = `${JSON.stringify(sorted(configuration as unknown as Json))}\n`;
}

function annotationOf(object: KubeObject): string | undefined {
  const annotations = object.metadata?.annotations;
  if (!annotations || !Object.hasOwn(annotations, ANNOTATION)) return undefined;
  const annotation = annotations[ANNOTATION];
  return typeof annotation === 'string' && annotation !== '' ? annotation : undefined;
}

function sorted(value: Json): Json {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(sorted);
  const copy: JsonObject = {};
  for (const key of Object.keys(value).sort()) setOwn(copy, key, sorted(value[key] as Json));
  return copy;
}
