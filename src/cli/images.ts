import { join, resolve } from 'node:path';
import type { Env } from '../env/ports.ts';
import { realDiskFiles } from '../env/real-disk-files.ts';
import { DamagedInput } from '../node/images/byte-stream.ts';
import type { ImageRecord } from '../node/images/image-record.ts';
import { ImageReferenceError } from '../node/images/image-reference.ts';
import { ImageStore } from '../node/images/image-store.ts';
import { ImageFormatError } from '../node/volumes/qcow2.ts';
import { UserError } from './failure.ts';
import type { OutputFormat } from './cluster-options.ts';
import { printValue } from './print-value.ts';
import { byteCount } from './seen/bar.ts';
import { table } from './table.ts';

/** What `godwit image` does. */

export interface ImageOptions {
  readonly dataDir: string;
  /** Where images are, if not in the data directory. */
  readonly images?: string;
  /** Of list. */
  readonly output?: OutputFormat;
}

/** What an image is made from: a file, or a kernel and perhaps its initial RAM disk. */
export interface ImageSources {
  readonly file: string | undefined;
  readonly kernel?: string;
  readonly initrd?: string;
}

type Print = (line: string) => void;

const DIGEST_LENGTH = 'sha256:'.length + 12;

/** Takes an image in, under a name that manifests can use from then on. */
export async function importImage(
  name: string,
  { file, kernel, initrd }: ImageSources,
  options: ImageOptions,
  env: Env,
  print: Print,
): Promise<void> {
  if ((file === undefined) === (kernel === undefined) || (initrd !== undefined && kernel === undefined))
    throw new UserError('give either a file, or --kernel and perhaps --initrd', { exitCode: 2 });
  const store = storeOf(options, env);
  const record = await understood(async () =>
    kernel === undefined
      ? store.importFile(name, await fileAt(file ?? ''))
      : store.importKernel(name, await fileAt(kernel), initrd && (await fileAt(initrd))),
  );
  print(`Imported ${record.name} (${record.digest.slice(0, DIGEST_LENGTH)}, ${sizeOf(record)}): ${pathsOf(record)}.`);
}

/** Shows all images. */
export async function listImages(options: ImageOptions, env: Env, print: Print): Promise<void> {
  const records = await storeOf(options, env).list();
  if (printValue(records, options.output, print)) return;
  const isWide = options.output === 'wide';
  if (records.length === 0) {
    print('There are no images. Import one with: godwit image import NAME FILE');
    return;
  }
  const rows = records.map((record) => [
    record.name,
    isWide ? record.digest : record.digest.slice(0, DIGEST_LENGTH),
    sizeOf(record),
    record.importedAt.slice(0, 'yyyy-mm-dd'.length),
    isWide ? record.files.map(({ path }) => path).join(', ') : pathsOf(record),
  ]);
  for (const line of table([['NAME', 'DIGEST', 'SIZE', 'IMPORTED', 'FILES'], ...rows])) print(line);
}

/** Removes images; all that are known, even where one of the names is not. */
export async function removeImages(
  names: readonly string[],
  options: ImageOptions,
  env: Env,
  print: Print,
): Promise<void> {
  const store = storeOf(options, env);
  const unknown: string[] = [];
  for (const name of names) {
    if (await understood(() => store.remove(name))) print(`Removed ${name}.`);
    else unknown.push(name);
  }
  if (unknown.length > 0)
    throw new UserError(`there is no image ${unknown.join(', ')}; 'godwit image list' shows all there are`);
}

function storeOf({ dataDir, images }: ImageOptions, { clock, random }: Env): ImageStore {
  return new ImageStore({ directory: resolve(images ?? join(dataDir, 'images')), files: realDiskFiles, clock, random });
}

/** The real path of a file: the store itself follows no links. */
async function fileAt(path: string): Promise<string> {
  try {
    const real = await realDiskFiles.realPath(resolve(path));
    if ((await realDiskFiles.describe(real))?.kind === 'file') return real;
  } catch (error) {
    throw new UserError(
      `${path} cannot be read (${(error as Error).message}); give the path of a file that you may read`,
      {
        cause: error,
      },
    );
  }
  throw new UserError(`${path} is no file; give the path of a disk, an archive or a kernel`);
}

const EXPECTED = [DamagedInput, ImageFormatError, ImageReferenceError];

async function understood<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    const { message, code } = error as Error & { code?: unknown };
    const isExpected = EXPECTED.some((kind) => error instanceof kind) || typeof code === 'string';
    throw isExpected ? new UserError(message, { cause: error }) : error;
  }
}

function pathsOf({ files }: ImageRecord): string {
  const shown = files.slice(0, 3).map(({ path }) => path);
  const more = files.length - shown.length;
  return shown.join(', ') + (more > 0 ? ` and ${more} more` : '');
}

function sizeOf({ files }: ImageRecord): string {
  const sizes = new Map(files.map(({ digest, sizeBytes }) => [digest, sizeBytes]));
  const bytes = [...sizes.values()].reduce((sum, each) => sum + each, 0);
  return byteCount(bytes);
}
