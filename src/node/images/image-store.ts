import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { Clock, DiskFiles, Random } from '../../env/ports.ts';
import { HEAD_BYTES, imageFacts } from '../volumes/qcow2.ts';
import { type Bytes, DamagedInput, Digest, headOf, limited, unpacked } from './byte-stream.ts';
import { readImageArchive } from './image-archive.ts';
import { INITRD_PATH, type ImageFile, type ImageRecord, KERNEL_PATH } from './image-record.ts';
import { type ImageReference, imageName, parseImageReference } from './image-reference.ts';
import { isTar } from './tar.ts';

/**
 * The images of a host. Contents are files named by their digest, and a name is a small document that lists digests, so
 * that an image appears, changes and disappears at once, and what two images have in common is there once:
 *
 *     blobs/<digest>      contents, never changed
 *     names/<hash>.json   ImageRecord
 *     incoming/<random>/  what is being imported
 *
 * Several processes may use it at once without a lock. Whoever imports writes the record and then looks whether the
 * contents are there still; whoever removes contents puts them aside and then looks whether a record names them by now.
 * Whatever comes first, one of the two sees the other.
 */

export interface ImageStoreOptions {
  readonly directory: string;
  readonly files: DiskFiles;
  readonly clock: Clock;
  readonly random: Random;
}

/** Everyone may read what is in the store who comes to know where: QEMU runs as somebody else. */
const DIRECTORY_ACCESS = { mode: 0o711 };
const BLOB_ACCESS = { mode: 0o444 };
const RECORD_ACCESS = { mode: 0o644 };
/** What an import left behind that did not live to clean up after itself. */
const ABANDONED_AFTER_MS = 24 * 60 * 60 * 1000;
/** What all files of an image may come to: a few bytes can unpack to as many zeros as one likes. */
const IMAGE_BYTES_MAX = 2 ** 43;
const RECORD_BYTES_MAX = 4 * 1024 * 1024;
const SNIFF_BYTES = 512;
const CONVERT = 'is a disk of another hypervisor; convert it first with qemu-img convert -O qcow2';
/** What begins so would be taken for a raw disk, on which no guest finds anything. */
const FOREIGN: readonly (readonly [magic: string, offset: number, advice: string])[] = [
  ['\xfd7zXZ', 0, 'is compressed with xz; unpack it first with unxz'],
  ['\x28\xb5\x2f\xfd', 0, 'is compressed with zstd; unpack it first with unzstd'],
  ['BZh', 0, 'is compressed with bzip2; unpack it first with bunzip2'],
  ['PK\x03\x04', 0, 'is a zip archive; unpack it first with unzip'],
  ...(['KDMV', 'vhdxfile', 'conectix', 'QED\0'] as const).map((magic) => [magic, 0, CONVERT] as const),
  ['\x7f\x10\xda\xbe', 64, CONVERT],
];

/** What was read, before it has its place. */
interface IncomingFile extends ImageFile {
  readonly incomingPath: string;
}

export class ImageStore {
  readonly #options: ImageStoreOptions;

  constructor(options: ImageStoreOptions) {
    this.#options = options;
  }

  /**
   * Takes in a disk (raw or qcow2, perhaps compressed with gzip) or an archive of a container image. Throws
   * DamagedInput or ImageFormatError for what is neither.
   */
  async importFile(name: string, path: string): Promise<ImageRecord> {
    const { files } = this.#options;
    const open = (): Bytes => files.read(path);
    const head = await headOf(await unpacked(open()), SNIFF_BYTES);
    refuseForeign(path, head);
    return this.#import(name, async (keep) => {
      if (isTar(head)) return readImageArchive({ open, isWanted: () => true, keep });
      const disk = await keep('/disk/disk.img', await unpacked(open()));
      if (disk.sizeBytes === 0) throw new DamagedInput(`${path} is empty`);
      return { digest: disk.digest, files: new Map([[disk.path, disk]]) };
    });
  }

  /** Takes in a kernel and, where there is one, its initial RAM disk. */
  async importKernel(name: string, kernelPath: string, initrdPath: string | undefined): Promise<ImageRecord> {
    const { files } = this.#options;
    return this.#import(
      name,
      async (keep) => {
        const kernel = await keep(KERNEL_PATH, files.read(kernelPath));
        const initrd = initrdPath ? await keep(INITRD_PATH, files.read(initrdPath)) : undefined;
        const all = [kernel, ...(initrd ? [initrd] : [])];
        const digest = createHash('sha256')
          .update(all.map((file) => file.digest).join('\n'))
          .digest('hex');
        return { digest: `sha256:${digest}`, files: new Map(all.map((file) => [file.path, file])) };
      },
      { isKernel: true },
    );
  }

  /** All images, by name. */
  async list(): Promise<readonly ImageRecord[]> {
    const { files, directory } = this.#options;
    const names = (await files.list(join(directory, 'names'))).filter((name) => name.endsWith('.json'));
    const records = await Promise.all(names.map((name) => this.#record(join(directory, 'names', name))));
    return records.filter((record) => record !== undefined).sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** The image that a name in a manifest stands for. Throws an ImageReferenceError for what is no name. */
  async find(text: string): Promise<ImageRecord | undefined> {
    const reference = parseImageReference(text);
    const record = await this.#record(this.#recordPath(imageName(reference)));
    if (reference.digest === undefined || record?.digest === reference.digest) return record;
    return (await this.list()).find((each) => isSame(each, reference));
  }

  /** Forgets a name, and what no other one needs. False where it is unknown. */
  async remove(text: string): Promise<boolean> {
    const path = this.#recordPath(imageName(parseImageReference(text)));
    const isKnown = (await this.#options.files.describe(path)) !== undefined;
    await this.#options.files.remove(path);
    await this.#removeUnused();
    return isKnown;
  }

  /** Where the contents are. */
  pathOf({ digest }: ImageFile): string {
    return join(this.#options.directory, 'blobs', digest.slice(digest.indexOf(':') + 1));
  }

  async #import(
    text: string,
    read: (keep: (path: string, body: Bytes) => Promise<IncomingFile>) => Promise<{
      digest: string;
      files: ReadonlyMap<string, IncomingFile>;
    }>,
    more: Pick<ImageRecord, 'isKernel'> = {},
  ): Promise<ImageRecord> {
    const { files, directory, clock, random } = this.#options;
    const name = imageName(parseImageReference(text));
    for (const each of ['blobs', 'names', 'incoming'])
      await files.makeDirectory(join(directory, each), DIRECTORY_ACCESS);
    await this.#removeAbandoned();
    const incoming = join(directory, 'incoming', random.uuid());
    await files.makeDirectory(incoming, DIRECTORY_ACCESS);
    try {
      const kept: IncomingFile[] = [];
      const image = await read(async (path, body) => {
        const bytes = kept.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
        const file = await this.#keep(path, body, join(incoming, String(kept.length)), IMAGE_BYTES_MAX - bytes);
        kept.push(file);
        return file;
      });
      const list = [...image.files].map(([path, file]) => ({ ...file, path }));
      const record: ImageRecord = {
        name,
        digest: image.digest,
        importedAt: new Date(clock.now()).toISOString(),
        ...more,
        files: list.map(recorded),
      };
      const place = async (): Promise<void> => {
        for (const file of list) await files.link(file.incomingPath, this.pathOf(file));
        await files.sync([join(directory, 'blobs')]);
      };
      await files.sync(list.map((file) => file.incomingPath));
      await place();
      await files.replace(this.#recordPath(name), Buffer.from(JSON.stringify(record)), RECORD_ACCESS);
      // Somebody may have removed what seemed to be in nobody's use.
      await place();
      return record;
    } finally {
      await files.remove(incoming);
      await this.#removeUnused();
    }
  }

  async #keep(path: string, body: Bytes, incomingPath: string, bytesMax: number): Promise<IncomingFile> {
    const { files } = this.#options;
    const digest = new Digest();
    const bytes = limited(digest.of(body), bytesMax, `${path} makes the image larger than any disk`);
    await files.write(incomingPath, bytes, BLOB_ACCESS);
    const head = await headOf(files.read(incomingPath), HEAD_BYTES);
    return { path, incomingPath, digest: digest.value(), sizeBytes: digest.bytes, ...imageFacts(head, digest.bytes) };
  }

  #recordPath(name: string): string {
    return join(this.#options.directory, 'names', `${createHash('sha256').update(name).digest('hex')}.json`);
  }

  /** Undefined where there is none, or not any more. */
  async #record(path: string): Promise<ImageRecord | undefined> {
    try {
      const bytes = await headOf(this.#options.files.read(path), RECORD_BYTES_MAX);
      return JSON.parse(Buffer.from(bytes).toString()) as ImageRecord;
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  }

  async #removeAbandoned(): Promise<void> {
    const { files, directory, clock } = this.#options;
    for (const name of await files.list(join(directory, 'incoming'))) {
      const path = join(directory, 'incoming', name);
      const modifiedMs = (await files.describe(path))?.modifiedMs ?? clock.now();
      if (clock.now() - modifiedMs > ABANDONED_AFTER_MS) await files.remove(path);
    }
  }

  async #removeUnused(): Promise<void> {
    const { files, directory, random } = this.#options;
    const blobs = join(directory, 'blobs');
    const used = await this.#usedBlobs();
    for (const name of await files.list(blobs)) {
      if (used.has(name)) continue;
      const aside = join(directory, 'incoming', random.uuid());
      try {
        await files.rename(join(blobs, name), aside);
      } catch (error) {
        // Somebody else was as quick.
        if (isMissing(error)) continue;
        throw error;
      }
      if ((await this.#usedBlobs()).has(name)) await files.link(aside, join(blobs, name));
      await files.remove(aside);
    }
  }

  async #usedBlobs(): Promise<ReadonlySet<string>> {
    const records = await this.list();
    return new Set(records.flatMap(({ files }) => files.map(({ digest }) => digest.slice(digest.indexOf(':') + 1))));
  }
}

function refuseForeign(path: string, head: Uint8Array): void {
  for (const [magic, offset, advice] of FOREIGN) {
    const found = Buffer.from(head).toString('latin1', offset, offset + magic.length);
    if (found === magic) throw new DamagedInput(`${path} ${advice}`);
  }
}

function isMissing(error: unknown): boolean {
  return (error as { code?: unknown }).code === 'ENOENT';
}

function recorded({ path, digest, sizeBytes, format, diskBytes }: ImageFile): ImageFile {
  return { path, digest, sizeBytes, format, diskBytes };
}

function isSame({ name, digest }: ImageRecord, reference: ImageReference): boolean {
  return digest === reference.digest && parseImageReference(name).repository === reference.repository;
}
