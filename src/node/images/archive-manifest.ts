import { createHash } from 'node:crypto';
import { DamagedInput } from './byte-stream.ts';

/** What an archive of a container image says of itself: OCI's layout, or that of `docker save`. */

export interface ArchiveManifest {
  readonly digest: string;
  /** The lowest first. */
  readonly layers: readonly {
    /** In the archive. */
    readonly path: string;
    readonly packedDigest: string | undefined;
    readonly unpackedDigest: string | undefined;
  }[];
}

type Documents = ReadonlyMap<string, Buffer>;
type Json = { readonly [name: string]: unknown };

const LAYERS_MAX = 500;
const INDEX_DEPTH_MAX = 3;
const DIGEST = /^sha256:([0-9a-f]{64})$/;

/** Throws DamagedInput where there is no image, or more than one to choose from. */
export function manifestOf(documents: Documents): ArchiveManifest {
  const manifest = documents.has('/index.json') ? layoutManifest(documents) : savedManifest(documents);
  if (manifest.layers.length === 0) throw new DamagedInput('the image in the archive has no layers');
  if (manifest.layers.length > LAYERS_MAX) throw new DamagedInput('the image in the archive has too many layers');
  return manifest;
}

function layoutManifest(documents: Documents): ArchiveManifest {
  const descriptor = theImage(documents, parsed(documents, '/index.json'), 0);
  const manifest = parsed(documents, blobPath(descriptor), descriptor);
  const layers = listOf(manifest['layers'], 'layers').map((layer) => {
    const { mediaType } = layer;
    if (typeof mediaType === 'string' && mediaType.includes('zstd'))
      throw new DamagedInput('the image is compressed with zstd; save it again with gzip, or uncompressed');
    const digest = digestOf(layer);
    return { path: blobPath(digest), packedDigest: digest, unpackedDigest: undefined };
  });
  return { digest: descriptor, layers };
}

/** The digest of the one image that there is, for the machines that we run. */
function theImage(documents: Documents, index: Json, depth: number): string {
  const all = listOf(index['manifests'], 'manifests').filter((each) => !isAttestation(each));
  const fitting = all.length > 1 ? all.filter(isForUs) : all;
  const digests = new Set(fitting.map(digestOf));
  const [digest] = digests;
  if (digest === undefined) throw new DamagedInput('the archive has no image for linux/amd64');
  if (digests.size > 1) throw new DamagedInput('the archive has several images; save the one that is wanted');
  const document = parsed(documents, blobPath(digest), digest);
  if (!Array.isArray(document['manifests'])) return digest;
  if (depth >= INDEX_DEPTH_MAX) throw new DamagedInput('the archive has too many lists of images');
  return theImage(documents, document, depth + 1);
}

function isAttestation({ annotations }: Json): boolean {
  return isJson(annotations) && annotations['vnd.docker.reference.type'] === 'attestation-manifest';
}

function isForUs({ platform }: Json): boolean {
  return isJson(platform) && platform['os'] === 'linux' && platform['architecture'] === 'amd64';
}

function savedManifest(documents: Documents): ArchiveManifest {
  const manifests = listOf(value(documents, '/manifest.json'), 'images');
  const [manifest] = manifests;
  if (!manifest) throw new DamagedInput('the archive has no image');
  if (manifests.length > 1) throw new DamagedInput('the archive has several images; save the one that is wanted');
  const configPath = archivePath(manifest['Config']);
  const config = parsed(documents, configPath);
  const paths = Array.isArray(manifest['Layers']) ? manifest['Layers'].map(archivePath) : [];
  const rootfs = isJson(config['rootfs']) ? config['rootfs'] : {};
  const digests = Array.isArray(rootfs['diff_ids']) ? rootfs['diff_ids'].map(String) : [];
  if (digests.length !== paths.length)
    throw new DamagedInput('the archive is damaged: it has other layers than its image');
  return {
    digest: hashOf(documents.get(configPath)),
    layers: paths.map((path, index) => ({ path, packedDigest: undefined, unpackedDigest: digests[index] })),
  };
}

function archivePath(path: unknown): string {
  if (typeof path !== 'string' || path.split('/').includes('..'))
    throw new DamagedInput('the archive is damaged: it names a file that cannot be in it');
  return `/${path.replace(/^(\.?\/)+/, '')}`;
}

function value(documents: Documents, path: string): unknown {
  const document = documents.get(path);
  if (!document) throw new DamagedInput(`this is no archive of an image: it lacks ${path.slice(1)}`);
  try {
    return JSON.parse(document.toString());
  } catch (error) {
    throw new DamagedInput(`${path.slice(1)} in the archive is no JSON`, error);
  }
}

function parsed(documents: Documents, path: string, digest?: string): Json {
  const document = value(documents, path);
  if (digest !== undefined && hashOf(documents.get(path)) !== digest)
    throw new DamagedInput(`${path.slice(1)} in the archive is damaged: its digest is another one`);
  if (!isJson(document)) throw new DamagedInput(`${path.slice(1)} in the archive is no object`);
  return document;
}

function hashOf(bytes: Buffer | undefined): string {
  return `sha256:${createHash('sha256')
    .update(bytes ?? '')
    .digest('hex')}`;
}

function isJson(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function listOf(value: unknown, what: string): readonly Json[] {
  if (!Array.isArray(value) || !value.every(isJson))
    throw new DamagedInput(`the archive is damaged: no list of ${what}`);
  return value;
}

function digestOf({ digest }: Json): string {
  if (typeof digest !== 'string' || !DIGEST.test(digest))
    throw new DamagedInput('the archive has a digest that is none of sha256');
  return digest;
}

function blobPath(digest: string): string {
  return `/blobs/sha256/${digest.slice('sha256:'.length)}`;
}
