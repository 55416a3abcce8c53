import { describe, expect, expectTypeOf, it } from 'vitest';
import { bool, int32, list, listMap, map, message, quantity as builtinQuantity, str } from './schema.ts';
import {
  borrowed,
  choice,
  flag,
  type Infer,
  integer,
  kept,
  listByKey,
  listOf,
  mapOf,
  moment,
  needed,
  object,
  openObject,
  quantity,
  text,
} from './typed-schema.ts';

const disk = object('A disk.', {
  name: needed(text('Its name.')),
  bus: choice('Its bus.', ['virtio', 'sata']),
  size: quantity('Its size.'),
  boot: integer('Its turn.', { minimum: 1 }),
});
const machine = openObject('A machine.', {
  disks: listByKey('Disks.', 'name', disk),
  tags: listOf('Tags.', text('A tag.')),
  labels: mapOf('Labels.', text('A value.')),
  isReady: flag('Whether it is ready.'),
  since: moment('Since when.'),
  extra: kept('Whatever.'),
  path: listOf('Steps.', integer('A step.')),
});

describe('types', () => {
  it('have fields that may be absent unless they are needed', () => {
    interface Expected {
      name: string;
      bus?: 'virtio' | 'sata';
      size?: string | number;
      boot?: number;
    }
    expectTypeOf<Infer<typeof disk>>().toEqualTypeOf<Expected>();
  });
  it('follow lists, sets, maps and what is kept', () => {
    type Machine = Infer<typeof machine>;
    expectTypeOf<Machine['tags']>().toEqualTypeOf<string[] | undefined>();
    expectTypeOf<Machine['labels']>().toEqualTypeOf<Record<string, string> | undefined>();
    expectTypeOf<NonNullable<Machine['disks']>[number]>().toEqualTypeOf<Infer<typeof disk>>();
    expectTypeOf<Machine['since']>().toEqualTypeOf<string | undefined>();
  });
});

describe('schemas', () => {
  it('say the same to the API server', () => {
    expect(disk).toEqual({
      type: 'object',
      description: 'A disk.',
      required: ['name'],
      properties: {
        name: { type: 'string', description: 'Its name.' },
        bus: { type: 'string', description: 'Its bus.', enum: ['virtio', 'sata'] },
        size: {
          description: 'Its size.',
          anyOf: [{ type: 'integer' }, { type: 'string' }],
          pattern: expect.any(String),
          'x-kubernetes-int-or-string': true,
        },
        boot: { type: 'integer', format: 'int32', description: 'Its turn.', minimum: 1 },
      },
    });
    expect(machine['x-kubernetes-preserve-unknown-fields']).toBe(true);
    expect(machine.required).toBeUndefined();
    expect(machine.properties?.['disks']).toMatchObject({
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
    });
    expect(machine.properties?.['tags']).toMatchObject({ 'x-kubernetes-list-type': 'atomic' });
  });
  it.each(['1', '-1', '+.5', '1.', '10Mi', '1.5Gi', '500m', '12e6', '1E-3', '4k'])(
    'take %s for a quantity',
    (value) => {
      expect(value).toMatch(new RegExp(quantity('').pattern ?? ''));
    },
  );
  it.each(['', 'Gi', '1 Gi', '1gi', '.', '1Kib', '0x10', 'e6'])('do not take "%s" for one', (value) => {
    expect(value).not.toMatch(new RegExp(quantity('').pattern ?? ''));
  });
  it('borrow those of built-in kinds without what only these may have', () => {
    const item = message('io.Item', 'An item.', { name: [1, str(), 'Its name.'], isOn: [2, bool({ pointer: true })] });
    const builtin = message('io.Thing', 'A thing.', {
      items: [1, listMap(['name'], item)],
      amounts: [2, map(builtinQuantity())],
      numbers: [3, list(int32())],
    });
    expect(borrowed('Passed on.', builtin)).toEqual({
      type: 'object',
      description: 'Passed on.',
      properties: {
        items: {
          type: 'array',
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['name'],
          items: {
            type: 'object',
            description: 'An item.',
            properties: { name: { type: 'string', description: 'Its name.' }, isOn: { type: 'boolean' } },
          },
        },
        amounts: { type: 'object', additionalProperties: { 'x-kubernetes-int-or-string': true } },
        numbers: { type: 'array', 'x-kubernetes-list-type': 'atomic', items: { type: 'integer', format: 'int32' } },
      },
    });
  });
});
