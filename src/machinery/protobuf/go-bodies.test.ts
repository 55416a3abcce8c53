import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { builtinDefinitions } from '../../api/kinds/builtins.ts';
import {
  bindingSchema,
  deleteOptionsSchema,
  evictionSchema,
  scaleSchema,
  tokenRequestSchema,
} from '../../api/kinds/meta-options.ts';
import { apiVersionOf, type Json } from '../../api/meta.ts';
import type { Schema } from '../../api/schema.ts';
import { decodeProtobuf } from './decode.ts';

/**
 * Bodies that Go's own k8s.io/api v0.34.1 wrote, each beside the JSON that it wrote of the same object: with every
 * field set (`full`), with every pointer set to a zero (`zero`), and with nothing set at all (`empty`).
 */
interface GoBody {
  readonly name: string;
  readonly body: string;
  readonly want: Json;
}

const bodies = readFileSync(new URL('go-bodies.ndjson', import.meta.url), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line) as GoBody);

const schemas: ReadonlyMap<string, Schema> = new Map([
  ...builtinDefinitions.map((definition): [string, Schema] => [
    `${apiVersionOf(definition.group, definition.version)} ${definition.kind}`,
    definition.schema,
  ]),
  ['policy/v1 Eviction', evictionSchema],
  ['v1 Binding', bindingSchema],
  ['v1 DeleteOptions', deleteOptionsSchema],
  ['autoscaling/v1 Scale', scaleSchema],
  ['authentication.k8s.io/v1 TokenRequest', tokenRequestSchema],
]);

/** Go writes null for what is absent in some places; nobody reads it as anything else. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (typeof value !== 'object' || value === null) return value;
  const present = Object.entries(value).filter(([, field]) => field !== null);
  return Object.fromEntries(present.map(([name, field]) => [name, withoutNulls(field)]));
}

describe("Go's bodies", () => {
  it.each(bodies)('$name', ({ body, want }) => {
    const decoded = decodeProtobuf(Buffer.from(body, 'base64'), (apiVersion, kind) =>
      schemas.get(`${apiVersion} ${kind}`),
    );
    expect(withoutNulls(decoded)).toEqual(withoutNulls(want));
  });
});
