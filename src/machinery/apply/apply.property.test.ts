import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json, JsonObject, KubeObject } from '../../api/meta.ts';
import { type Schema, bool, int32, intOrString, list, listMap, map, set, str } from '../../api/schema.ts';
import { ApiError } from '../../api/status.ts';
import { type Application, applyObject } from './apply.ts';
import { trackUpdate } from './managed-fields.ts';

const FIELDS = ['a', 'b', 'c', '__proto__'];
const DEPTH_MAX = 3;

/** A schema, and values that fit it. */
interface Typed {
  readonly schema: Schema;
  readonly value: fc.Arbitrary<Json>;
}

const name = fc.constantFrom('a', 'b', 'c');

const scalar: fc.Arbitrary<Typed> = fc.constantFrom(
  { schema: str(), value: name },
  { schema: int32(), value: fc.integer({ min: 0, max: 2 }) },
  { schema: bool(), value: fc.boolean() },
  { schema: intOrString(), value: fc.oneof(fc.nat(2), name) },
  { schema: set(str()), value: fc.uniqueArray(name) },
  {
    schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as Schema,
    value: fc.dictionary(name, fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<Json>, { maxKeys: 3 }),
  },
);

function typed(depth: number): fc.Arbitrary<Typed> {
  if (depth === 0) return scalar;
  const below = typed(depth - 1);
  return fc.oneof(
    scalar,
    object(depth - 1),
    below.map(({ schema, value }) => ({ schema: list(schema), value: fc.array(value, { maxLength: 2 }) })),
    below.map(({ schema, value }) => ({ schema: map(schema), value: fc.dictionary(name, value, { maxKeys: 3 }) })),
    object(depth - 1).map(({ schema, value }) => keyedList(schema, value)),
  );
}

function object(depth: number): fc.Arbitrary<Typed> {
  return fc
    .tuple(
      fc.dictionary(fc.constantFrom(...FIELDS), typed(depth), { maxKeys: 3 }),
      fc.constantFrom('atomic', 'granular'),
    )
    .map(([fields, mapType]) => ({
      schema: {
        type: 'object',
        properties: Object.fromEntries(Object.entries(fields).map(([key, field]) => [key, field.schema])),
        // Mostly granular: what is atomic is soon explored.
        ...(mapType === 'atomic' && depth === 0 ? { 'x-kubernetes-map-type': 'atomic' } : {}),
      },
      value: fc.record(Object.fromEntries(Object.entries(fields).map(([key, field]) => [key, field.value])), {
        requiredKeys: [],
      }) as fc.Arbitrary<Json>,
    }));
}

function keyedList(items: Schema, value: fc.Arbitrary<Json>): Typed {
  const schema: Schema = { ...items, properties: { ...items.properties, key: str(), other: str({ default: 'x' }) } };
  const item = fc
    .tuple(value, name, fc.option(fc.constantFrom('x', 'y'), { nil: undefined }))
    .map(([fields, key, other]) => ({ ...(fields as JsonObject), key, ...(other === undefined ? {} : { other }) }));
  return {
    schema: listMap(['key', 'other'], schema),
    value: fc.uniqueArray(item, { selector: ({ key, other }) => `${key}/${other ?? 'x'}`, maxLength: 3 }),
  };
}

/** A schema with some specs of it. */
function specs(count: number): fc.Arbitrary<{ schema: Schema; specs: Json[] }> {
  return object(DEPTH_MAX - 1).chain(({ schema, value }) =>
    fc.record({
      schema: fc.constant<Schema>({ type: 'object', properties: { spec: schema } }),
      specs: fc.array(value, { minLength: count, maxLength: count }),
    }),
  );
}

function thing(spec: Json | undefined): KubeObject {
  return {
    apiVersion: 'test/v1',
    kind: 'Thing',
    metadata: { name: 'x', namespace: 'ns' },
    ...(spec === undefined ? {} : { spec }),
  };
}

function apply(
  live: KubeObject | undefined,
  spec: Json | undefined,
  schema: Schema,
  more: Partial<Application> = {},
): KubeObject {
  return applyObject({
    live,
    applied: thing(spec),
    schema,
    manager: 'one',
    force: false,
    apiVersion: 'test/v1',
    subresource: '',
    time: '2026-01-01T00:00:00Z',
    ...more,
  });
}

function update(live: KubeObject | undefined, spec: Json, schema: Schema, manager = 'updater'): KubeObject {
  const updated = thing(spec);
  const input = {
    live,
    updated,
    schema,
    manager,
    apiVersion: 'test/v1',
    subresource: '',
    time: '2026-01-01T00:00:00Z',
  };
  updated.metadata.managedFields = trackUpdate(input);
  return updated;
}

/** An object that is tracked although its spec is still empty. */
function labelled(schema: Schema): KubeObject {
  const object = thing(undefined);
  object.metadata.labels = { made: 'earlier' };
  const input = { live: undefined, updated: object, schema, apiVersion: 'test/v1', subresource: '', time: '' };
  object.metadata.managedFields = trackUpdate({ ...input, manager: 'maker' });
  return object;
}

describe('server-side apply, on random objects of random schemas', () => {
  it('creates what it is given', () => {
    fc.assert(
      fc.property(specs(1), ({ schema, specs: [spec] }) => {
        expect(apply(undefined, spec, schema)['spec']).toEqual(spec);
      }),
    );
  });

  it('is idempotent', () => {
    fc.assert(
      fc.property(specs(2), ({ schema, specs: [before, spec] }) => {
        const once = apply(update(undefined, before as Json, schema), spec, schema, { force: true });
        expect(apply(once, spec, schema, { time: '2026-01-02T00:00:00Z' })).toEqual(once);
      }),
    );
  });

  it('never conflicts with itself, and owns the same however it came there', () => {
    fc.assert(
      fc.property(specs(2), ({ schema, specs: [first, second] }) => {
        const base = labelled(schema);
        const replaced = apply(apply(base, first, schema), second, schema);
        expect(fieldsByManager(replaced)).toEqual(fieldsByManager(apply(base, second, schema)));
      }),
    );
  });

  it('takes back all that it added to what others own', () => {
    fc.assert(
      fc.property(specs(2), ({ schema, specs: [before, spec] }) => {
        const live = update(undefined, before as Json, schema);
        let applied: KubeObject;
        try {
          applied = apply(live, spec, schema);
        } catch (error) {
          expect(error).toMatchObject({ code: 409 });
          return;
        }
        const back = apply(applied, undefined, schema);
        expect(content(back['spec'])).toEqual(content(before));
        expect(back.metadata.managedFields?.map(({ manager }) => manager)).toEqual(
          live.metadata.managedFields?.map(({ manager }) => manager),
        );
      }),
      { numRuns: 300 },
    );
  });

  it('does not depend on the order in which appliers come that do not conflict', () => {
    fc.assert(
      fc.property(specs(2), ({ schema, specs: [one, two] }) => {
        const base = labelled(schema);
        let states: [KubeObject, KubeObject];
        try {
          states = [
            apply(apply(base, one, schema), two, schema, { manager: 'two' }),
            apply(apply(base, two, schema, { manager: 'two' }), one, schema),
          ];
        } catch (error) {
          expect(error).toMatchObject({ code: 409 });
          return;
        }
        const [onesFirst, twosFirst] = states;
        expect(content(onesFirst['spec'])).toEqual(content(twosFirst['spec']));
        expect(fieldsByManager(onesFirst)).toEqual(fieldsByManager(twosFirst));
      }),
      { numRuns: 300 },
    );
  });

  it('never crashes, changes no argument, and leaves managed fields that say what is there', () => {
    const step = fc.record({
      kind: fc.constantFrom('apply', 'force', 'update'),
      manager: fc.constantFrom('one', 'two', 'kubectl'),
    });
    fc.assert(
      fc.property(specs(5), fc.array(step, { minLength: 5, maxLength: 5 }), ({ schema, specs: all }, steps) => {
        let live: KubeObject | undefined;
        for (const [index, { kind, manager }] of steps.entries()) {
          const spec = all[index] as Json;
          const before = JSON.stringify([live, spec]);
          try {
            const next =
              kind === 'update'
                ? update(live, spec, schema, manager)
                : apply(live, spec, schema, { manager, force: kind === 'force' });
            expect(JSON.stringify([live, spec])).toBe(before);
            live = next;
          } catch (error) {
            expect(error).toBeInstanceOf(ApiError);
            expect(kind).toBe('apply');
          }
        }
      }),
      { numRuns: 300 },
    );
  });

  it('answers anything but crashes to objects that fit no schema', () => {
    const anything = fc.jsonValue({ maxDepth: 4 }) as fc.Arbitrary<Json>;
    fc.assert(
      fc.property(specs(1), anything, anything, ({ schema }, live, applied) => {
        const base = update(undefined, live, schema);
        update(base, applied, schema);
        try {
          apply(base, applied, schema, { force: true });
        } catch (error) {
          expect(error).toMatchObject({ code: 400 });
        }
      }),
      { numRuns: 300 },
    );
  });
});

function fieldsByManager(object: KubeObject): Record<string, unknown> {
  return Object.fromEntries((object.metadata.managedFields ?? []).map(({ manager, fieldsV1 }) => [manager, fieldsV1]));
}

/** A value without empty containers and nulls, and without the order of lists: what there is to own. */
function content(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value ?? undefined;
  if (Array.isArray(value)) {
    const items = value.map(content).filter((item) => item !== undefined);
    return items.length === 0 ? undefined : items.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
  }
  const fields = Object.entries(value)
    .map(([key, field]) => [key, content(field)] as const)
    .filter(([, field]) => field !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return fields.length === 0 ? undefined : Object.fromEntries(fields);
}
