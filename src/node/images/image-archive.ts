import { type Bytes, DamagedInput, Digest, drain, unpacked } from './byte-stream.ts';
import { flattened, type LayerEntry, pathInImage } from './layers.ts';
import { type ArchiveManifest, manifestOf } from './archive-manifest.ts';
import { tarEntries } from './tar.ts';

/**
 * Container images in one file, as `docker save`, `podman save` or `skopeo copy oci-archive:` write them. The archive is
 * read twice, since nothing in it says where to look: first for what it consists of, then for the layers themselves,
 * each of which must have the digest that was promised. What it unpacks to is handed on, never put where it says.
 */

/** Documents in an archive are no longer than this, and not more: they are kept in memory. */
const DOCUMENT_BYTES_MAX = 1024 * 1024;
const DOCUMENTS_BYTES_MAX = 32 * 1024 * 1024;
/** Images for guests have a disk, or a kernel; anything with so many files is something else. */
const FILES_MAX = 1000;
const ENTRIES_MAX = 10_000;

export interface ArchiveReading<File> {
  /** Reads the archive, from its beginning each time. */
  readonly open: () => Bytes;
  /** Which files of the image are of interest. */
  readonly isWanted: (path: string) => boolean;
  /** Takes a file in. */
  readonly keep: (path: string, body: Bytes) => Promise<File>;
}

export interface ArchivedImage<File> {
  /** `sha256:…` by which the image is known where it came from. */
  readonly digest: string;
  readonly files: ReadonlyMap<string, File>;
}

/** The image in an archive. Throws DamagedInput for what is none, or not whole. */
export async function readImageArchive<File>(reading: ArchiveReading<File>): Promise<ArchivedImage<File>> {
  const { documents, links } = await readDocuments(reading.open);
  const manifest = manifestOf(documents);
  const layers = await readLayers(reading, manifest, links);
  return { digest: manifest.digest, files: flattened(layers) };
}

interface Documents {
  readonly documents: ReadonlyMap<string, Buffer>;
  /** Older archives have a layer once, and links to it. */
  readonly links: ReadonlyMap<string, string>;
}

async function readDocuments(open: () => Bytes): Promise<Documents> {
  const documents = new Map<string, Buffer>();
  const links = new Map<string, string>();
  let bytes = 0;
  for await (const entry of tarEntries(await unpacked(open()))) {
    const path = pathInImage(entry.path);
    if (entry.kind === 'symbolic-link') links.set(path, symbolicTarget(path, entry.linkPath));
    if (links.size > ENTRIES_MAX) throw new DamagedInput('the archive has too much in it');
    const isDocument = path.endsWith('.json') || path.startsWith('/blobs/');
    if (entry.kind !== 'file' || !isDocument || entry.sizeBytes > DOCUMENT_BYTES_MAX) continue;
    bytes += entry.sizeBytes;
    if (bytes > DOCUMENTS_BYTES_MAX) throw new DamagedInput('the archive has too much in it');
    const parts: Uint8Array[] = [];
    for await (const part of entry.body) parts.push(part);
    documents.set(path, Buffer.concat(parts));
  }
  return { documents, links };
}

function symbolicTarget(path: string, target: string): string {
  const base = target.startsWith('/') ? [] : path.split('/').slice(0, -1);
  const names: string[] = [];
  for (const name of [...base, ...target.split('/')]) {
    if (name === '..') names.pop();
    else if (name !== '' && name !== '.') names.push(name);
  }
  return `/${names.join('/')}`;
}

async function readLayers<File>(
  reading: ArchiveReading<File>,
  { layers }: ArchiveManifest,
  links: ReadonlyMap<string, string>,
): Promise<readonly (readonly LayerEntry<File>[])[]> {
  const found = new Map<string, readonly LayerEntry<File>[]>();
  const wanted = new Map(layers.map((layer) => [links.get(layer.path) ?? layer.path, layer]));
  const room = { files: FILES_MAX, entries: ENTRIES_MAX };
  for await (const entry of tarEntries(await unpacked(reading.open()))) {
    const path = pathInImage(entry.path);
    const layer = wanted.get(path);
    if (entry.kind !== 'file' || !layer || found.has(path)) continue;
    found.set(path, await readLayer(reading, entry.body, layer, room));
  }
  return layers.map((layer) => {
    const entries = found.get(links.get(layer.path) ?? layer.path);
    if (!entries) throw new DamagedInput(`the archive lacks a layer of the image: ${layer.path}`);
    return entries;
  });
}

async function readLayer<File>(
  { isWanted, keep }: ArchiveReading<File>,
  blob: Bytes,
  { path, packedDigest, unpackedDigest }: ArchiveManifest['layers'][number],
  room: { files: number; entries: number },
): Promise<readonly LayerEntry<File>[]> {
  const packedAs = new Digest();
  const unpackedAs = new Digest();
  const entries: LayerEntry<File>[] = [];
  const contents = unpackedAs.of(await unpacked(packedAs.of(blob)));
  for await (const entry of tarEntries(unbroken(contents))) {
    const at = pathInImage(entry.path);
    if (--room.entries < 0) throw new DamagedInput(`the image has more than ${ENTRIES_MAX} files`);
    if (entry.kind === 'directory') entries.push({ kind: 'directory', path: at });
    else if (entry.kind === 'symbolic-link') entries.push({ kind: 'symbolic-link', path: at, target: entry.linkPath });
    else if (entry.kind === 'hard-link')
      entries.push({ kind: 'hard-link', path: at, target: pathInImage(entry.linkPath) });
    else if (entry.kind === 'file' && (isWanted(at) || isMark(at))) {
      if (--room.files < 0)
        throw new DamagedInput(
          `the image has more than ${FILES_MAX} files: it is hardly one of a guest's disk or kernel`,
        );
      entries.push({ kind: 'file', path: at, file: await keep(at, entry.body) });
    }
  }
  // What is behind the archive's end belongs to its digest.
  await drain(contents);
  checkDigest(path, packedDigest, packedAs);
  checkDigest(path, unpackedDigest, unpackedAs);
  return entries;
}

/** Lets a reader leave early without ending what it reads from. */
function unbroken(source: AsyncGenerator<Uint8Array>): Bytes {
  return { [Symbol.asyncIterator]: () => ({ next: () => source.next() }) };
}

/** Files that stand for the absence of others. */
function isMark(path: string): boolean {
  return path.slice(path.lastIndexOf('/') + 1).startsWith('.wh.');
}

function checkDigest(path: string, expected: string | undefined, digest: Digest): void {
  if (expected === undefined) return;
  const actual = digest.value();
  if (actual !== expected) throw new DamagedInput(`the layer ${path} is damaged: it is ${actual}, not ${expected}`);
}
