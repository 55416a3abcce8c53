import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { Buildah } from '../support/kubernetes/buildah.ts';
import { buildImage } from '../support/kubernetes/kubelets/images.ts';
import { type UnpackedImage, unpackImage } from '../support/oci-image.ts';

/** The image of all components, as the Containerfile has it, on a base of Debian's packages and this machine's Node. */

vi.setConfig({ testTimeout: 1_800_000, hookTimeout: 1_800_000 });

const BASE = 'localhost/base';
const DAY = '20251101T000000Z';
/** In the form in which the base has them that the Containerfile names. */
const SOURCES = ['debian', 'debian-security']
  .map((name) => `Types: deb\nURIs: http://mirror.example/${name}\nSuites: some\nComponents: main\nTrusted: yes\n`)
  .join('\n');

let directory: string;
let buildah: Buildah;
let first: UnpackedImage;

/** Builds the Containerfile. */
async function built(name: string): Promise<UnpackedImage> {
  const archive = join(directory, `${name}.tar`);
  await buildah.buildImage({ tag: `oci-archive:${archive}`, values: { BASE } });
  return unpackImage(archive, join(directory, name));
}

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'godwit-image-'));
  buildah = new Buildah(directory);
  // The Containerfile gets the newest lists of packages, and so has the script to; this machine's own are left alone.
  mkdirSync(join(directory, 'lists'));
  writeFileSync(join(directory, 'apt.conf'), `Dir::State::lists "${join(directory, 'lists')}";\n`);
  vi.stubEnv('APT_CONFIG', join(directory, 'apt.conf'));
  execFileSync('apt-get', ['update', '-qq', '-o', 'APT::Sandbox::User=']);
  await buildah.makeBase(BASE);
  first = await built('first');
});
afterAll(() => {
  vi.unstubAllEnvs();
  rmSync(directory, { recursive: true, force: true });
});

it('is the same whenever it is built of the same packages', async () => {
  const { digest, files } = await built('second');
  expect(files).toEqual(first.files);
  expect(digest).toBe(first.digest);
});

it('has the same files as the one that is made without Docker, which is always the same, too, and runs the same', async () => {
  for (const name of ['script', 'again']) await buildImage(join(directory, `${name}.tar`), 'localhost/godwit:test');
  expect(readFileSync(join(directory, 'again.tar')).equals(readFileSync(join(directory, 'script.tar')))).toBe(true);
  const { files, config } = unpackImage(join(directory, 'script.tar'), join(directory, 'script'));
  expect(first.files).toEqual(files);
  expect(first.config).toEqual(config);
});

it('has the packages of a day, where one is given', async () => {
  const asked: string[] = [];
  const proxy = createServer(({ url = '' }, response) => {
    asked.push(url);
    response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const { port } = proxy.address() as AddressInfo;
  try {
    const base = `${BASE}-of-debian`;
    await buildah.changeBase(base, BASE, '/etc/apt/sources.list.d/debian.sources', SOURCES);
    const values = { BASE: base, SNAPSHOT: DAY };
    const environment = { http_proxy: `http://127.0.0.1:${port}` };
    await expect(buildah.buildImage({ tag: 'localhost/none', values, environment })).rejects.toThrow('404');
  } finally {
    proxy.close();
  }
  for (const name of ['debian', 'debian-security'])
    expect(asked).toContain(`http://snapshot.debian.org/archive/${name}/${DAY}/dists/some/InRelease`);
});
