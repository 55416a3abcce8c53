import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fullName, layerOf, ociArchive } from '../support/oci-archive.ts';

/** How the image of all components is packed, on a smaller one. */

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'godwit-archive-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

describe('an image', () => {
  it.each([
    ['team/godwit:v1', 'docker.io/team/godwit:v1'],
    ['godwit:v1', 'docker.io/library/godwit:v1'],
    ['registry.example.com/godwit:v1', 'registry.example.com/godwit:v1'],
    ['registry:5000/team/godwit:v1', 'registry:5000/team/godwit:v1'],
    ['localhost/godwit:v1', 'localhost/godwit:v1'],
    ['docker.io/team/godwit:v1', 'docker.io/team/godwit:v1'],
  ])('that is called %s is known to runtimes as %s', (name, known) => {
    expect(fullName(name)).toBe(known);
  });

  it('is the same whenever it is made of the same files, and says what it is called', () => {
    const made = ['one', 'other'].map((each, index) => {
      const files = join(directory, each, 'files');
      mkdirSync(files, { recursive: true });
      // Made in another order, at another time.
      for (const file of index === 0 ? ['a', 'b'] : ['b', 'a']) writeFileSync(join(files, file), file);
      const [name, place] = ['registry.example.com/godwit:v1', join(directory, each, 'image')];
      const archive = ociArchive(place, { name, layers: [layerOf(files)], config: {}, createdBy: 'test' });
      const { manifests } = JSON.parse(readFileSync(join(place, 'index.json'), 'utf8'));
      expect(manifests).toMatchObject([
        { annotations: { 'io.containerd.image.name': name, 'org.opencontainers.image.ref.name': name } },
      ]);
      return archive;
    });
    expect(made[0]?.equals(made[1] ?? Buffer.alloc(0))).toBe(true);
  });
});
