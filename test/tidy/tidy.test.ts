import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

/** The repository's own rules: the layers of ARCHITECTURE.md, and what no file may contain. */

const root = fileURLToPath(new URL('../..', import.meta.url));
const sources = filesBelow('src').filter((file) => file.endsWith('.ts'));
const isTest = (file: string): boolean => /\.(test|bench|fixture)\.ts$|\/test-support\/|\/testing\//.test(file);

function filesBelow(directory: string): string[] {
  return readdirSync(join(root, directory), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)));
}

function read(file: string): string {
  return readFileSync(join(root, file), 'utf8');
}

const BELOW_SIMULATION = 'sync node extension control cluster hypervisor migration kube apiserver machinery api'.split(
  ' ',
);

/** What each room may import, besides itself and the ports of `env`. */
const LAYERS: { readonly [room: string]: readonly string[] } = {
  env: [],
  api: [],
  machinery: ['api'],
  apiserver: ['machinery', 'api'],
  kube: ['machinery', 'api'],
  cluster: ['kube', 'migration', 'machinery', 'api'],
  control: ['kube', 'migration', 'machinery', 'api'],
  migration: ['machinery', 'api'],
  extension: ['kube', 'migration', 'machinery', 'api'],
  hypervisor: ['api'],
  node: ['kube', 'migration', 'hypervisor', 'machinery', 'api'],
  sync: ['kube', 'migration', 'machinery', 'api'],
  simulation: [...BELOW_SIMULATION, 'env'],
  cli: [...BELOW_SIMULATION, 'simulation', 'env'],
};

function roomOf(file: string): string {
  return file.split('/')[1] ?? '';
}

function importsOf(file: string): string[] {
  return [...read(file).matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map((match) =>
    relative(root, resolve(root, dirname(file), match[1] ?? '')),
  );
}

describe('layers', () => {
  it('every room is known', () =>
    expect([...new Set(sources.map(roomOf))].filter((room) => !(room in LAYERS))).toEqual([]));
  it('rooms import only what the design lets them', () => {
    const wrong = sources.flatMap((file) =>
      importsOf(file)
        .filter((imported) => imported.startsWith('src/'))
        .filter((imported) => imported !== 'src/env/ports.ts' && !(isTest(file) && imported.startsWith('src/env/')))
        .filter((imported) => roomOf(imported) !== roomOf(file) && !LAYERS[roomOf(file)]?.includes(roomOf(imported)))
        .map((imported) => `${file} imports ${imported}`),
    );
    expect(wrong).toEqual([]);
  });
  it('the language of the API is free of Node', () => {
    expect(sources.filter((file) => roomOf(file) === 'api' && !isTest(file) && /from 'node:/.test(read(file)))).toEqual(
      [],
    );
  });
});

describe('tidiness', () => {
  const AMBIENT = /\b(Date\.now\(|new Date\(\)|Math\.random\(|setTimeout\(|setInterval\(|randomUUID\()/;
  it('takes time and chance from the environment', () => {
    expect(sources.filter((file) => roomOf(file) !== 'env' && !isTest(file) && AMBIENT.test(read(file)))).toEqual([]);
  });
  it('leaves nothing unfinished', () => {
    const unfinished = /\b(?:TODO|FIXME|XXX|HACK)\b/;
    expect(sources.filter((file) => unfinished.test(read(file)))).toEqual([]);
  });
  it('skips and focuses no test', () => {
    const all = [...sources, ...filesBelow('test')].filter(
      (file) => file.endsWith('.test.ts') && !file.startsWith('test/tidy/'),
    );
    expect(all.filter((file) => /\b(it|test|describe)\.(skip|only|todo)\b/.test(read(file)))).toEqual([]);
  });
  it('keeps files short enough to hold one idea', () => {
    expect(sources.filter((file) => !isTest(file) && read(file).split('\n').length > 500)).toEqual([]);
  });
  it('records no download addresses', () => expect(read('package-lock.json')).not.toContain('"resolved"'));
});
