import type { DiskFiles } from '../../env/ports.ts';
import type { ImagePlace } from '../../migration/right-to-run/attempt.ts';
import type { ImageStamp, SeenImage, SeenStamp } from '../../migration/right-to-run/image-stamps.ts';
import { DISK_NAME } from './claim-source.ts';

/** Where an image is, and on which claim. */
export type StampedImage = Pick<ImagePlace, 'path' | 'claim'>;

/** The stamps of the images that this node reaches. */
export interface ImageStamps {
  look(image: StampedImage): Promise<Pick<SeenImage, 'stamp' | 'isBeside'>>;
  /** On the disk once it resolves. */
  write(image: StampedImage, stamp: ImageStamp): Promise<void>;
  /** Removes an image that nobody can use any more, if it is still the one that this migration was filling. */
  discard(image: StampedImage, migrationUID: string): Promise<void>;
}

export interface ImageStampFilesOptions {
  readonly files: Pick<
    DiskFiles,
    'create' | 'describe' | 'makeDirectory' | 'overwrite' | 'read' | 'remove' | 'replace'
  >;
  /** The agent's own, for stamps that cannot be beside their images. */
  readonly directory: string;
}

const SUFFIX = '.stamp';
/** Room for the longest names; written over in place, so that a disk that is full holds up no guest on its way. */
const STAMP_BYTES = 1024;
const GUEST_LENGTH_MAX = 320;
const WORDS_LENGTH_MAX = 320;
/** Read by agents of any user; what it says is no secret. */
const ACCESS = { mode: 0o644 };
const STATES = ['current', 'receiving', 'stale'] as const;
/** The directory of the image is not this agent's to write. */
const FOREIGN: ReadonlySet<unknown> = new Set(['EACCES', 'EPERM', 'EROFS']);

/**
 * Stamps as files beside the images, where every node finds them that reaches the image, and where they go when the claim
 * does. Of a device, and of an image in a directory that the agent may not write, the stamp is in a directory of the
 * agent's own: nobody else knows it.
 */
export class ImageStampFiles implements ImageStamps {
  readonly #options: ImageStampFilesOptions;

  constructor(options: ImageStampFilesOptions) {
    this.#options = options;
  }

  async look(image: StampedImage): Promise<Pick<SeenImage, 'stamp' | 'isBeside'>> {
    const beside = (await this.#isFile(image)) ? await this.#read(`${image.path}${SUFFIX}`) : 'absent';
    const own = await this.#read(this.#ownPath(image));
    return { stamp: laterOf(beside, own), isBeside: beside !== 'absent' };
  }

  /** Makes room for the stamp of an image that is there, unless its directory is not this agent's to write. */
  async makeRoom({ path }: Pick<StampedImage, 'path'>): Promise<void> {
    try {
      const blank = { bytes: bytesOf(''), sizeBytes: STAMP_BYTES };
      await this.#options.files.create(`${path}${SUFFIX}`, blank, ACCESS);
    } catch (error) {
      if (!FOREIGN.has((error as { code?: unknown }).code)) throw error;
    }
  }

  async write(image: StampedImage, stamp: ImageStamp): Promise<void> {
    const { files, directory } = this.#options;
    const bytes = bytesOf(textOf(stamp));
    let cause: unknown;
    if (await this.#isFile(image)) {
      const path = `${image.path}${SUFFIX}`;
      try {
        if (!(await files.overwrite(path, bytes))) await files.replace(path, bytes, ACCESS);
        // What is there of an earlier try is no longer so.
        await files.remove(this.#ownPath(image));
        return;
      } catch (error) {
        cause = error;
      }
    }
    try {
      await files.makeDirectory(directory, { mode: 0o700 });
      await files.replace(this.#ownPath(image), bytes, ACCESS);
    } catch (error) {
      throw cause === undefined ? error : new Error(`the image ${image.path} cannot be stamped`, { cause });
    }
  }

  async discard(image: StampedImage, migrationUID: string): Promise<void> {
    const { files } = this.#options;
    const { stamp } = await this.look(image);
    const isReceived = typeof stamp === 'object' && stamp.state === 'receiving' && stamp.migrationUID === migrationUID;
    // A device has nothing that could be removed: it stays as it is, and nothing is started on it.
    if (!isReceived || !(await this.#isFile(image))) return;
    await files.remove(image.path);
    await files.remove(`${image.path}${SUFFIX}`);
    await files.remove(this.#ownPath(image));
  }

  /** Whether the image is a file, or will be one. */
  async #isFile({ path }: StampedImage): Promise<boolean> {
    const found = await this.#options.files.describe(path);
    return found ? found.kind === 'file' : path.endsWith(`/${DISK_NAME}`);
  }

  #ownPath({ claim }: StampedImage): string {
    if (!/^[\w-]+$/.test(claim.uid)) throw new Error(`${JSON.stringify(claim.uid)} is no UID of a claim`);
    return `${this.#options.directory}/${claim.uid}`;
  }

  async #read(path: string): Promise<SeenStamp> {
    const { files } = this.#options;
    const found = await files.describe(path);
    if (found === undefined) return 'absent';
    if (found.kind !== 'file') return 'damaged';
    const chunks: Uint8Array[] = [];
    for await (const chunk of files.read(path, { offset: 0, length: STAMP_BYTES })) chunks.push(chunk);
    return stampOf(Buffer.concat(chunks).toString());
  }
}

/** What was written last, of two places. The second is only used where the first cannot be, or could not. */
function laterOf(beside: SeenStamp, own: SeenStamp): SeenStamp {
  if (own === 'absent' || own === 'blank') return beside;
  if (typeof beside === 'string' || typeof own === 'string') return own;
  // Another machine has used it since: it could only do so once it was allowed to.
  if (beside.vm !== own.vm) return beside;
  return beside.epoch > own.epoch ? beside : own;
}

function bytesOf(text: string): Uint8Array {
  return Buffer.from(`${text.padEnd(STAMP_BYTES - 1)}\n`);
}

/** What decides comes first, in the first sector of the disk, which is written whole or not at all. */
function textOf({ state, epoch, vm, migrationUID, guest, wentTo }: ImageStamp): string {
  const facts = { state, epoch, vm, ...(migrationUID === undefined ? {} : { migrationUID }) };
  const words = wentTo === undefined ? {} : { wentTo: wentTo.slice(0, WORDS_LENGTH_MAX) };
  const text = JSON.stringify({ ...facts, guest: guest.slice(0, GUEST_LENGTH_MAX), ...words });
  return Buffer.byteLength(text) < STAMP_BYTES ? text : JSON.stringify({ ...facts, guest: '' });
}

function stampOf(text: string): SeenStamp {
  if (text.trim() === '') return 'blank';
  let read: Partial<Record<keyof ImageStamp, unknown>> | null;
  try {
    read = JSON.parse(text) as typeof read;
  } catch {
    return 'damaged';
  }
  const { state, epoch, vm, guest, wentTo, migrationUID } = read ?? {};
  const known = STATES.find((each) => each === state);
  if (known === undefined || !Number.isSafeInteger(epoch) || typeof vm !== 'string' || typeof guest !== 'string')
    return 'damaged';
  return {
    state: known,
    epoch: epoch as number,
    vm,
    guest,
    ...(typeof wentTo === 'string' ? { wentTo } : {}),
    ...(typeof migrationUID === 'string' ? { migrationUID } : {}),
  };
}
