import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { Anything } from './api.ts';

/** An image in an archive, as a registry and a runtime see it. */
export interface UnpackedImage {
  /** That of its manifest, by which registries know it. */
  readonly digest: string;
  /** What is run in it. */
  readonly config: Anything;
  /** All files by their paths: mode, owner, time, and a digest of contents or where a link leads. */
  readonly files: ReadonlyMap<string, string>;
}

/** Takes an OCI archive apart, into a directory that is made for it. */
export function unpackImage(archive: string, directory: string): UnpackedImage {
  const [image, root] = [join(directory, 'image'), join(directory, 'root')];
  for (const each of [image, root]) mkdirSync(each, { recursive: true });
  execFileSync('tar', ['-xf', archive, '-C', image]);
  const blob = (digest: string): string => join(image, 'blobs', ...digest.split(':'));
  const json = (path: string): Anything => JSON.parse(readFileSync(path, 'utf8'));
  const [{ digest }] = json(join(image, 'index.json')).manifests;
  const { config, layers } = json(blob(digest));
  for (const layer of layers) execFileSync('tar', ['-xpf', blob(layer.digest), '-C', root]);
  return { digest, config: json(blob(config.digest)).config, files: filesBelow(root) };
}

function filesBelow(root: string): ReadonlyMap<string, string> {
  const paths = readdirSync(root, { recursive: true, encoding: 'utf8' });
  return new Map(paths.toSorted().map((path) => [path, describe(join(root, path))]));
}

function describe(path: string): string {
  const status = lstatSync(path);
  const { mode, uid, gid, mtimeMs } = status;
  return `${mode.toString(8)} ${uid}:${gid} ${mtimeMs} ${status.isDirectory() ? '' : contentsOf(path, status.isFile())}`;
}

function contentsOf(path: string, isFile: boolean): string {
  return isFile ? createHash('sha256').update(readFileSync(path)).digest('hex') : `-> ${readlinkSync(path)}`;
}
