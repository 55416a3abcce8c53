// Images as OCI archives, of directories: the same for the same files, whoever made them, and when.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

/** Not when it was made, or no two would be alike. */
const CREATED = '1970-01-01T00:00:00Z';
/** The registry that is meant where a name has none, and who has what is published there by nobody in particular. */
const [USUAL_REGISTRY, USUAL_OWNER] = ['docker.io', 'library'];

/** The image of all components where no other name is given. Of no registry, where somebody else could publish one. */
export function usualName(version) {
  return `localhost/godwit:v${version}`;
}

/** A name with its registry, as runtimes know images: what comes before the first slash is one if it looks like a host. */
export function fullName(name) {
  const [first = '', ...others] = name.split('/');
  if (others.length === 0) return `${USUAL_REGISTRY}/${USUAL_OWNER}/${name}`;
  return first === 'localhost' || /[.:]/.test(first) ? name : `${USUAL_REGISTRY}/${name}`;
}

/** A layer of all that is below a directory: the tar, and what is put into the image. */
export function layerOf(place, modes) {
  const contents = tarOf(place, modes);
  return { contents: gzipSync(contents, { level: 6 }), diffId: `sha256:${digestOf(contents)}` };
}

/** The archive of an image of these layers, with what is run in it; `place` is for files that are made on the way. */
export function ociArchive(place, { name, layers, config, createdBy }) {
  const blobs = join(place, 'blobs', 'sha256');
  mkdirSync(blobs, { recursive: true });
  const blob = (mediaType, contents) => {
    const digest = digestOf(contents);
    writeFileSync(join(blobs, digest), contents);
    return { mediaType, digest: `sha256:${digest}`, size: contents.length };
  };
  const json = (value) => Buffer.from(JSON.stringify(value));
  const described = blob(
    'application/vnd.oci.image.config.v1+json',
    json({
      created: CREATED,
      architecture: process.arch === 'x64' ? 'amd64' : process.arch,
      os: 'linux',
      config,
      rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
      history: layers.map(() => ({ created: CREATED, created_by: createdBy })),
    }),
  );
  const manifest = {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: described,
    layers: layers.map(({ contents }) => blob('application/vnd.oci.image.layer.v1.tar+gzip', contents)),
  };
  const annotations = { 'io.containerd.image.name': fullName(name), 'org.opencontainers.image.ref.name': name };
  const entry = { ...blob(manifest.mediaType, json(manifest)), annotations };
  writeFileSync(join(place, 'index.json'), json({ schemaVersion: 2, manifests: [entry] }));
  writeFileSync(join(place, 'oci-layout'), json({ imageLayoutVersion: '1.0.0' }));
  return tarOf(place);
}

export function digestOf(contents) {
  return createHash('sha256').update(contents).digest('hex');
}

function tarOf(place, modes = []) {
  const form = ['--format=gnu', '--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner'];
  return execFileSync('tar', ['-c', ...form, ...modes, '-C', place, '.'], { maxBuffer: 2 ** 32 });
}
