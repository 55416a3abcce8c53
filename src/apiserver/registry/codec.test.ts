import { describe, expect, it } from 'vitest';
import { definitionsOf } from '../custom-resources/definitions.ts';
import { decodeStored, encodeStored, textFor } from './codec.ts';

const schemaOf = (properties: object): object => ({
  openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object', properties } } },
});

/** A CRD as it was stored at revision 10: `v1` is stored, `v2` knows other fields. */
const [v1, v2] = definitionsOf({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'gears.example.com', resourceVersion: '10' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'gears', kind: 'Gear' },
    versions: [
      {
        name: 'v2',
        served: true,
        storage: false,
        schema: schemaOf({ teeth: { type: 'integer' }, metal: { type: 'string', default: 'brass' } }),
      },
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: schemaOf({ teeth: { type: 'integer' }, colour: { type: 'string', default: 'grey' } }),
      },
    ],
  },
});

const stored = (revision: number, spec: object) => ({
  revision,
  text: JSON.stringify({ apiVersion: 'example.com/v1', kind: 'Gear', metadata: { name: 'g' }, spec }),
});

describe('objects of custom resources, when they are read', () => {
  if (!v1 || !v2) throw new Error('both versions are served');

  it('get the defaults of a schema that is younger than they are, and lose what it does not know', () => {
    const old = stored(9, { teeth: 7, old: true });
    expect(decodeStored(v1, old)['spec']).toEqual({ teeth: 7, colour: 'grey' });
    expect(JSON.parse(textFor(v1, old))).toMatchObject({ spec: { teeth: 7, colour: 'grey' } });
  });

  it('are passed on as they are where the schema has seen them', () => {
    const fresh = stored(11, { teeth: 7, colour: 'red' });
    expect(textFor(v1, fresh)).toBe(fresh.text);
  });

  it('are shown in another version as its schema says', () => {
    const fresh = stored(11, { teeth: 7, colour: 'red' });
    expect(decodeStored(v2, fresh)).toMatchObject({ apiVersion: 'example.com/v2' });
    expect(decodeStored(v2, fresh)['spec']).toEqual({ teeth: 7, metal: 'brass' });
  });

  it('are stored as the stored version says, whichever they came in', () => {
    const object = { apiVersion: 'example.com/v2', kind: 'Gear', metadata: { name: 'g' }, spec: { metal: 'iron' } };
    const text = encodeStored(v1, v2, object, 12);
    expect(JSON.parse(text)).toEqual({
      apiVersion: 'example.com/v1',
      kind: 'Gear',
      metadata: { name: 'g', resourceVersion: '12' },
      spec: { colour: 'grey' },
    });
  });
});
