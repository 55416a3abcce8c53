import * as fc from 'fast-check';
import type { Json, JsonObject } from '../../src/api/meta.ts';

/** Values that mean something somewhere, or break something somewhere else. */

const PLAIN =
  `a x-y default All Always Never IfNotPresent Retain True False v1 Pod ClusterIP TCP In NotIn Exists 80 100m
1Gi -1 50% 1e3 10.0.0.1 ::1 10.0.0.0/8 2026-01-01T00:00:00Z 2026-01-01T00:00:00.000000Z 5m0s https://h/p example.com/x a/b
nginx YQ== kube-system system:masters .. . / % %2f __proto__ constructor prototype toString hasOwnProperty length
f:metadata k:{"a":1} k:{ v:1 i:0 $patch * ! = { [ {} null $(A)`.split(/\s+/);
const ODD = ['', '\u0000', '\n', '\u00e9', '\u{1f600}', 'x'.repeat(300)];

export const words = fc.constantFrom(...PLAIN, ...ODD);

export const numbers = fc.oneof(
  fc.constantFrom(0, -0, 1, -1, 80, 8080, 65_536, 2 ** 31, -(2 ** 31), 2 ** 53 - 1, 1e300, 0.5),
  fc.integer({ min: -2, max: 5 }),
);

export const scalars: fc.Arbitrary<Json> = fc.oneof(words, numbers, fc.boolean(), fc.constant(null));

/** Any small JSON, of such scalars. */
export const anyJson: fc.Arbitrary<Json> = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    scalars,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.array(fc.tuple(words, tie('value')), { maxLength: 3 }).map(objectOf),
  ),
})).value;

/** `__proto__` included, which decoders refuse and patches must not obey. */
export function objectOf(entries: readonly (readonly [string, Json])[]): JsonObject {
  const object: JsonObject = {};
  for (const [key, value] of entries) own(object, key, value);
  return object;
}

export function own(object: JsonObject, key: string, value: Json): void {
  Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
}
