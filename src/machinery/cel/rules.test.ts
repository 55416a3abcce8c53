import { describe, expect, it } from 'vitest';
import type { Json } from '../../api/meta.ts';
import type { Schema, ValidationRule } from '../../api/schema.ts';
import { compileSchema } from '../schema/compile.ts';

const int: Schema = { type: 'integer' };
const str: Schema = { type: 'string' };

function rules(...list: (string | ValidationRule)[]): Schema {
  return { 'x-kubernetes-validations': list.map((rule) => (typeof rule === 'string' ? { rule } : rule)) };
}

/** A kind whose spec has these properties. */
function spec(properties: Record<string, Schema>, extra: Schema = {}): Schema {
  return { type: 'object', properties: { spec: { type: 'object', properties, ...extra } } };
}

function errors(schema: Schema, object: Json, old?: Json): string[] {
  return compileSchema(schema)
    .validate(object, old)
    .map((error) => `${error.field}: ${error.message}`);
}

describe('rules', () => {
  it('hold or fail, named by their own text', () => {
    const schema = spec({ replicas: int, max: int }, rules('self.replicas <= self.max'));
    expect(errors(schema, { spec: { replicas: 2, max: 3 } })).toEqual([]);
    expect(errors(schema, { spec: { replicas: 5, max: 3 } })).toEqual([
      'spec: Invalid value: "object": failed rule: self.replicas <= self.max',
    ]);
    expect(errors(schema, { spec: { replicas: 5 } })).toEqual([
      'spec: Invalid value: "object": no such key: max evaluating rule: self.replicas <= self.max',
    ]);
  });

  it('speak through message, messageExpression, reason and fieldPath', () => {
    const say = (rule: ValidationRule): string[] => errors(spec({ a: str, b: str }, rules(rule)), { spec: { a: 'z' } });
    expect(say({ rule: 'false', message: '  no  ' })).toEqual(['spec: Invalid value: "object": no']);
    expect(say({ rule: 'false', messageExpression: '"got " + self.a' })).toEqual([
      'spec: Invalid value: "object": got z',
    ]);
    expect(say({ rule: 'false', messageExpression: 'self.b', message: 'fallback' })).toEqual([
      'spec: Invalid value: "object": fallback',
    ]);
    expect(say({ rule: 'false', messageExpression: '" "' })).toEqual([
      'spec: Invalid value: "object": failed rule: false',
    ]);
    expect(say({ rule: 'has(self.b)', message: 'b!', reason: 'FieldValueRequired', fieldPath: '.b' })).toEqual([
      'spec.b: Required value: b!',
    ]);
    expect(say({ rule: 'false', message: 'm', reason: 'FieldValueForbidden' })).toEqual(['spec: Forbidden: m']);
    expect(say({ rule: 'false', message: 'm', reason: 'FieldValueDuplicate' })).toEqual([
      'spec: Duplicate value: "object"',
    ]);
  });

  it('are found in items, maps and nested objects, with their paths', () => {
    const positive: Schema = { ...int, ...rules('self > 0') };
    const schema = spec({
      list: { type: 'array', items: positive },
      map: { type: 'object', additionalProperties: positive },
    });
    expect(errors(schema, { spec: { list: [1, 0], map: { a: 0, b: 1 } } })).toEqual([
      'spec.list[1]: Invalid value: "integer": failed rule: self > 0',
      'spec.map[a]: Invalid value: "integer": failed rule: self > 0',
    ]);
  });

  it('see names and types of the resource at its root, and of embedded ones', () => {
    const root: Schema = { ...spec({}), ...rules('self.metadata.name.startsWith("x") && self.kind == "Thing"') };
    expect(errors(root, { apiVersion: 'v1', kind: 'Thing', metadata: { name: 'xy' } })).toEqual([]);
    expect(errors(root, { apiVersion: 'v1', kind: 'Thing', metadata: { name: 'y' } })).toHaveLength(1);
    const template: Schema = {
      type: 'object',
      'x-kubernetes-embedded-resource': true,
      'x-kubernetes-preserve-unknown-fields': true,
    };
    const embedding = spec({ template }, rules('self.template.kind == "Pod"'));
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' } };
    expect(errors(embedding, { spec: { template: pod } })).toEqual([]);
    expect(errors(embedding, { spec: { template: { ...pod, kind: 'Job' } } })).toHaveLength(1);
  });

  it('see formats as times, durations and bytes', () => {
    const schema = spec(
      {
        at: { ...str, format: 'date-time' },
        day: { ...str, format: 'date' },
        every: { ...str, format: 'duration' },
        data: { ...str, format: 'byte' },
      },
      rules(
        'self.at < timestamp("2020-01-01T00:00:00Z")',
        'self.day.getFullYear() == 2019',
        'self.every < duration("1m")',
        'self.data == b"hi"',
      ),
    );
    const object = { at: '2019-12-31T00:00:00Z', day: '2019-06-01', every: '59s', data: 'aGk=' };
    expect(errors(schema, { spec: object })).toEqual([]);
    const late = { at: '2021-01-01T00:00:00Z', day: '2020-06-01', every: '2m', data: 'aGE=' };
    expect(errors(schema, { spec: late })).toHaveLength(4);
  });

  it('reach fields under escaped names', () => {
    const rule =
      'self.my__dash__field == "1" && self.__namespace__ == "2" && self.a__underscores__b == "3" && self.x__dot__y__slash__z == "4"';
    const schema = spec({ 'my-field': str, namespace: str, a__b: str, 'x.y/z': str }, rules(rule));
    const object = { 'my-field': '1', namespace: '2', a__b: '3', 'x.y/z': '4' };
    expect(errors(schema, { spec: object })).toEqual([]);
  });

  it('take int-or-string as it comes', () => {
    const port: Schema = { 'x-kubernetes-int-or-string': true };
    const guarded = spec({ port }, rules('type(self.port) == int ? self.port > 3 : self.port == "50%"'));
    expect(errors(guarded, { spec: { port: 5 } })).toEqual([]);
    expect(errors(guarded, { spec: { port: '50%' } })).toEqual([]);
    expect(errors(guarded, { spec: { port: '20%' } })).toHaveLength(1);
    expect(errors(spec({ port }, rules('self.port > 3')), { spec: { port: 'x' } })).toEqual([
      `spec: Invalid value: "object": 'no such overload': call arguments did not match a supported operator, function or macro signature for rule: self.port > 3`,
    ]);
  });

  it('take a null field for an absent one', () => {
    const schema = spec({ a: { ...str, nullable: true } }, rules('!has(self.a)'));
    expect(errors(schema, { spec: { a: null } })).toEqual([]);
  });

  it('wait until the object has its declared shape', () => {
    const schema = spec({ a: str, n: int }, rules('self.a == "x"'));
    expect(errors(schema, { spec: { a: 'y', n: 'no' } })).toEqual([
      'spec.n: Invalid value: "string": spec.n in body must be of type integer: "string"',
      ': Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
    ]);
  });
});

describe("rules of KubeVirt's kind", () => {
  const selection: Schema = {
    type: 'object',
    properties: { name: str, inferFromVolume: str, kind: str, revisionName: str },
    ...rules(
      { rule: 'has(self.name) || has(self.inferFromVolume)', message: 'one of name or inferFromVolume is required' },
      {
        rule: '!(has(self.name) && has(self.inferFromVolume))',
        message: 'name and inferFromVolume exclude each other',
      },
    ),
  };
  const schema = spec(
    {
      running: { type: 'boolean' },
      runStrategy: str,
      instancetype: selection,
      volumes: {
        type: 'array',
        items: { type: 'object', properties: { name: str, disk: { type: 'object' }, secret: { type: 'object' } } },
      },
    },
    rules(
      { rule: 'has(self.running) != has(self.runStrategy)', message: 'running and runStrategy exclude each other' },
      'self.volumes.all(v, has(v.disk) || has(v.secret))',
      'self.volumes.all(v, v.name.startsWith("vol-") && !v.name.contains("/"))',
      '[has(self.running), has(self.runStrategy)].filter(x, x).size() == 1',
      'self.?instancetype.?kind.orValue("x") != "forbidden"',
    ),
  );
  const good = { running: true, instancetype: { name: 'u1' }, volumes: [{ name: 'vol-a', disk: {} }] };

  it.each<[string, Json, number]>([
    ['a good one', good, 0],
    ['both ways to run', { ...good, runStrategy: 'Always' }, 2],
    ['a volume without a source', { ...good, volumes: [{ name: 'vol-a' }] }, 1],
    ['a volume with a bad name', { ...good, volumes: [{ name: 'a/b', secret: {} }] }, 1],
    ['no name to select by', { ...good, instancetype: {} }, 1],
    ['two names to select by', { ...good, instancetype: { name: 'a', inferFromVolume: 'b' } }, 1],
    ['a forbidden kind', { ...good, instancetype: { name: 'a', kind: 'forbidden' } }, 1],
  ])('%s', (_, object, count) => {
    expect(errors(schema, { spec: object })).toHaveLength(count);
  });
});

describe('transition rules', () => {
  const shrinking = spec({ n: int }, rules({ rule: 'self.n >= oldSelf.n', message: 'cannot shrink' }));

  it('compare with the old value, and are silent where there is none', () => {
    expect(errors(shrinking, { spec: { n: 1 } })).toEqual([]);
    expect(errors(shrinking, { spec: { n: 3 } }, { spec: { n: 2 } })).toEqual([]);
    expect(errors(shrinking, { spec: { n: 1 } }, { spec: { n: 2 } })).toEqual([
      'spec: Invalid value: "object": cannot shrink',
    ]);
    const immutable = spec({ a: { ...str, ...rules('self == oldSelf') } });
    expect(errors(immutable, { spec: { a: 'x' } }, { spec: {} })).toEqual([]);
    expect(errors(immutable, { spec: { a: 'x' } }, { spec: { a: 'y' } })).toHaveLength(1);
  });

  it('see an optional old value where they ask for one', () => {
    const rule = { rule: 'oldSelf.hasValue() ? self == oldSelf.value() : self == "first"', optionalOldSelf: true };
    const schema = spec({ a: { ...str, ...rules(rule) } });
    expect(errors(schema, { spec: { a: 'first' } })).toEqual([]);
    expect(errors(schema, { spec: { a: 'second' } })).toHaveLength(1);
    expect(errors(schema, { spec: { a: 'second' } }, { spec: { a: 'second' } })).toEqual([]);
    expect(errors(schema, { spec: { a: 'second' } }, { spec: { a: 'third' } })).toHaveLength(1);
  });

  it('find the old item of a keyed list wherever it stood', () => {
    const item: Schema = {
      type: 'object',
      required: ['name'],
      properties: { name: str, v: int },
      ...rules('self.v >= oldSelf.v'),
    };
    const schema = spec({
      items: { type: 'array', items: item, 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] },
    });
    const old = {
      spec: {
        items: [
          { name: 'b', v: 5 },
          { name: 'a', v: 0 },
        ],
      },
    };
    expect(
      errors(
        schema,
        {
          spec: {
            items: [
              { name: 'a', v: 1 },
              { name: 'b', v: 4 },
              { name: 'c', v: 0 },
            ],
          },
        },
        old,
      ),
    ).toEqual(['spec.items[1]: Invalid value: "object": failed rule: self.v >= oldSelf.v']);
  });

  it('compare sets and keyed lists without regard to order, plain lists with', () => {
    const compare = (list: Schema, now: Json, before: Json): number =>
      errors(
        spec({ l: { type: 'array', ...list } }, rules('self.l == oldSelf.l')),
        { spec: { l: now } },
        { spec: { l: before } },
      ).length;
    expect(compare({ items: str }, ['a', 'b'], ['b', 'a'])).toBe(1);
    expect(compare({ items: str, 'x-kubernetes-list-type': 'set' }, ['a', 'b'], ['b', 'a'])).toBe(0);
    expect(compare({ items: str, 'x-kubernetes-list-type': 'set' }, ['a', 'b'], ['b', 'c'])).toBe(1);
    const keyed: Schema = {
      items: { type: 'object', required: ['k'], properties: { k: str, v: int } },
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['k'],
    };
    expect(compare(keyed, [{ k: 'a', v: 1 }, { k: 'b' }], [{ k: 'b' }, { k: 'a', v: 1 }])).toBe(0);
    expect(compare(keyed, [{ k: 'a', v: 1 }, { k: 'b' }], [{ k: 'b' }, { k: 'a', v: 2 }])).toBe(1);
  });

  it('compare fields that no schema describes', () => {
    const open: Schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
    const schema = spec({ open }, rules('self.open == oldSelf.open'));
    expect(errors(schema, { spec: { open: { x: [1] } } }, { spec: { open: { x: [1] } } })).toEqual([]);
    expect(errors(schema, { spec: { open: { x: [1] } } }, { spec: { open: { x: [2] } } })).toHaveLength(1);
  });
});

describe('ratcheting', () => {
  it('excuses a value that breaks a rule as it did before, but not one whose surroundings changed', () => {
    const onField = spec({ a: { ...str, ...rules('self.startsWith("x")') }, b: str });
    expect(errors(onField, { spec: { a: 'y', b: '2' } }, { spec: { a: 'y', b: '1' } })).toEqual([]);
    expect(errors(onField, { spec: { a: 'z', b: '2' } }, { spec: { a: 'y', b: '1' } })).toHaveLength(1);
    const onSpec = spec({ a: str, b: str }, rules('self.a.startsWith("x")'));
    expect(errors(onSpec, { spec: { a: 'y', b: '1' } }, { spec: { a: 'y', b: '1' } })).toEqual([]);
    expect(errors(onSpec, { spec: { a: 'y', b: '2' } }, { spec: { a: 'y', b: '1' } })).toHaveLength(1);
  });

  it('does not excuse transition rules', () => {
    const schema = spec({ n: int }, rules('self.n != oldSelf.n'));
    expect(errors(schema, { spec: { n: 1 } }, { spec: { n: 1 } })).toHaveLength(1);
  });

  it('excuses items of a plain list only with the whole list', () => {
    const schema = spec({ l: { type: 'array', items: { ...str, ...rules('self != "bad"') } } });
    expect(errors(schema, { spec: { l: ['bad', 'x'] } }, { spec: { l: ['bad', 'x'] } })).toEqual([]);
    expect(errors(schema, { spec: { l: ['bad', 'y'] } }, { spec: { l: ['bad', 'x'] } })).toHaveLength(1);
  });
});

describe('a part that is the very same as before', () => {
  const grows = spec(
    { epoch: int, pinned: str },
    rules('self.epoch >= oldSelf.epoch', 'self.pinned != oldSelf.pinned'),
  );

  it('is held against its transition rules each time, where they do not hold', () => {
    const part: Json = { epoch: 1, pinned: 'a' };
    for (let time = 0; time < 2; time++)
      expect(errors(grows, { spec: part }, { spec: part })).toEqual([
        'spec: Invalid value: "object": failed rule: self.pinned != oldSelf.pinned',
      ]);
  });

  it('may stay where they hold, and is still looked at when it changes', () => {
    const schema = spec({ epoch: int }, rules('self.epoch >= oldSelf.epoch', 'self.epoch < 9'));
    const part: Json = { epoch: 3 };
    for (let time = 0; time < 3; time++) expect(errors(schema, { spec: part }, { spec: part })).toEqual([]);
    expect(errors(schema, { spec: part }, { spec: { epoch: 4 } })).toHaveLength(1);
    expect(errors(schema, { spec: { epoch: 2 } }, { spec: part })).toHaveLength(1);
    expect(errors(schema, { spec: { epoch: 9 } }, { spec: part })).toHaveLength(1);
  });

  it('costs what it cost, so that nothing grows part by part beyond what any object may cost', () => {
    const rule = rules('self.list.all(x, self.list.all(y, x + y >= 0))');
    const part: Schema = { type: 'object', properties: { list: { type: 'array', items: int } }, ...rule };
    const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
    const schema = spec(Object.fromEntries(names.map((name) => [name, part])));
    const list = Array.from({ length: 420 }, (_, index) => index);
    let grown: Record<string, Json> = {};
    const refused = names.filter((name) => {
      const next = { ...grown, [name]: { list } };
      if (errors(schema, { spec: next }, { spec: grown }).length > 0) return true;
      grown = next;
      // Once more, as others are written meanwhile: now it is known.
      expect(errors(schema, { spec: { ...grown } }, { spec: grown })).toEqual([]);
      return false;
    });
    expect(refused).not.toEqual([]);
    expect(errors(schema, { spec: JSON.parse(JSON.stringify(grown)) as Json })).toEqual([]);
  });
});
