import { createHash } from 'node:crypto';
import { array, assert, dictionary, integer, oneof, property, string, uint8Array } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { labelOf, readIso } from './iso-reader.fixture.ts';
import { iso9660 } from './iso9660.ts';

const MODIFIED_MS = Date.UTC(2026, 0, 2, 3, 4, 5);
const text = (value: string): Uint8Array => Buffer.from(value);

function imageOf(files: Iterable<readonly [string, Uint8Array]>): Uint8Array {
  return iso9660({ label: 'cidata', files: new Map(files), modifiedMs: MODIFIED_MS });
}

const sorted = (files: Iterable<readonly [string, Uint8Array]>): [string, string][] =>
  [...files]
    .map(([path, bytes]): [string, string] => [path, Buffer.from(bytes).toString('hex')])
    .sort(([a], [b]) => (a < b ? -1 : 1));

const SEED: readonly (readonly [string, Uint8Array])[] = [
  ['meta-data', text('instance-id: web.shop\nlocal-hostname: web\n')],
  ['user-data', text('#cloud-config\n')],
  ['network-config', text('version: 2\n')],
];

describe('images of CDs', () => {
  it('are the same to the last byte for the same files', () => {
    const image = imageOf(SEED);
    expect(createHash('sha256').update(image).digest('hex')).toMatchInlineSnapshot(
      `"ac05b44dc8e9926acc288917ba52abef356c9cb51d880b28b3a518209672d4ce"`,
    );
    expect(image.length % 2048).toBe(0);
    expect(labelOf(image)).toBe('cidata');
    expect([...readIso(image, 'joliet').keys()]).toEqual(['meta-data', 'network-config', 'user-data']);
  });

  it('give every file back, under its name', () => {
    const name = oneof(string({ minLength: 1, maxLength: 20 }), string({ minLength: 200, maxLength: 253 }))
      .map((each) => each.replaceAll(/[^a-zA-Z0-9._-]/g, 'x'))
      .filter((each) => each !== '.' && each !== '..');
    assert(
      property(dictionary(name, uint8Array({ maxLength: 5000 }), { maxKeys: 40, noNullPrototype: true }), (object) => {
        const files = Object.entries(object);
        const image = imageOf(files);
        expect(sorted(readIso(image, 'rock-ridge'))).toEqual(sorted(files));
        const contents = sorted(readIso(image, 'joliet')).map(([, bytes]) => bytes);
        expect(contents.sort()).toEqual(
          sorted(files)
            .map(([, bytes]) => bytes)
            .sort(),
        );
      }),
      { numRuns: 60 },
    );
  });

  it('have directories', () => {
    const paths = array(array(integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 6 }), { maxLength: 30 });
    assert(
      property(paths, (lists) => {
        const files = new Map(
          lists.map((list) => [[...list.map((each) => `directory-${each}`), 'file'].join('/'), text(String(list))]),
        );
        expect(sorted(readIso(imageOf(files), 'rock-ridge'))).toEqual(sorted(files));
        expect(sorted(readIso(imageOf(files), 'joliet'))).toEqual(sorted(files));
      }),
      { numRuns: 60 },
    );
  });

  it('tell names apart that look alike to plain readers', () => {
    const files = ['a b', 'A_B', 'a-b', 'a_b.', '.a', 'ключ', 'клюв', `${'n'.repeat(250)}1`, `${'n'.repeat(250)}2`].map(
      (name): [string, Uint8Array] => [name, text(name)],
    );
    const image = imageOf(files);
    expect(sorted(readIso(image, 'rock-ridge'))).toEqual(sorted(files));
    expect(readIso(image, 'joliet').size).toBe(files.length);
  });

  it('hold thousands of files whose names look alike', () => {
    const files = Array.from({ length: 3000 }, (_, index): [string, Uint8Array] => [
      `${'n'.repeat(80)}-${index}`,
      text('x'),
    ]);
    expect(readIso(imageOf(files), 'joliet').size).toBe(3000);
  });

  it.each(['', '.', '..', '/', 'a/', '/a', 'a//b', 'a/../b', 'a\0b', 'x'.repeat(256), '1/2/3/4/5/6/7/8/9'])(
    'refuse the path %j',
    (path) => {
      expect(() => imageOf([[path, text('')]])).toThrow('is no path of a file');
    },
  );

  it('refuse what is a file and a directory, and labels that are none', () => {
    const clash: [string, Uint8Array][] = [
      ['a', text('')],
      ['a/b', text('')],
    ];
    expect(() => imageOf(clash)).toThrow('below a file');
    expect(() => imageOf(clash.reverse())).toThrow('two things');
    for (const label of ['', 'x'.repeat(33), 'ключ'])
      expect(() => iso9660({ label, files: new Map(), modifiedMs: 0 })).toThrow('no label');
  });
});
