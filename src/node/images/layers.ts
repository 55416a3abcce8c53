import { DamagedInput } from './byte-stream.ts';

/** What the layers of a container image come to, one upon the other. No file system is involved. */

export type LayerEntry<File> =
  | { readonly kind: 'file'; readonly path: string; readonly file: File }
  | { readonly kind: 'directory'; readonly path: string }
  /** `target` is a path of the image for hard links, and as written for symbolic ones. */
  | { readonly kind: 'hard-link' | 'symbolic-link'; readonly path: string; readonly target: string };

type Upper<File> =
  | { readonly kind: 'file'; readonly file: File }
  | { readonly kind: 'symbolic-link'; readonly target: string };

const REMOVED = '.wh.';
const EMPTIED = '.wh..wh..opq';
/** As Linux has it. */
const HOPS_MAX = 40;

/** The path inside an image that a path in an archive stands for. Throws DamagedInput for one that leads outside. */
export function pathInImage(path: string): string {
  const names = path.split('/').filter((name) => name !== '' && name !== '.');
  if (names.includes('..') || path.includes('\0'))
    throw new DamagedInput(`the image has a file with a path that leads outside: ${JSON.stringify(path)}`);
  return `/${names.join('/')}`;
}

/** The regular files of an image by path, those that symbolic links lead to under the links' paths, too. */
export function flattened<File>(layers: readonly (readonly LayerEntry<File>[])[]): Map<string, File> {
  const upper = new Map<string, Upper<File>>();
  for (const layer of layers) {
    // What a layer removes is what was below it, wherever in the layer that is said.
    for (const { path } of layer) remove(upper, path);
    for (const entry of layer) add(upper, entry);
  }
  const files = new Map<string, File>();
  for (const path of upper.keys()) {
    const file = resolved(upper, path);
    if (file !== undefined) files.set(path, file);
  }
  return files;
}

function remove<File>(upper: Map<string, Upper<File>>, path: string): void {
  const slash = path.lastIndexOf('/');
  const [directory, name] = [path.slice(0, slash), path.slice(slash + 1)];
  if (name === EMPTIED) removeBelow(upper, directory);
  else if (name.startsWith(REMOVED)) {
    const removed = `${directory}/${name.slice(REMOVED.length)}`;
    upper.delete(removed);
    removeBelow(upper, removed);
  }
}

function removeBelow<File>(upper: Map<string, Upper<File>>, directory: string): void {
  for (const path of upper.keys()) if (path.startsWith(`${directory}/`)) upper.delete(path);
}

function add<File>(upper: Map<string, Upper<File>>, entry: LayerEntry<File>): void {
  const { kind, path } = entry;
  if (path.slice(path.lastIndexOf('/') + 1).startsWith(REMOVED)) return;
  if (kind === 'directory') {
    // Where there was a file, there is a directory now.
    if (upper.get(path)?.kind === 'file') upper.delete(path);
    return;
  }
  if (!upper.has(path)) removeBelow(upper, path);
  if (kind === 'file') upper.set(path, { kind, file: entry.file });
  else if (kind === 'symbolic-link') upper.set(path, { kind, target: entry.target });
  else {
    const target = upper.get(entry.target);
    // A link to what was not kept is not kept either.
    if (target) upper.set(path, target);
    else upper.delete(path);
  }
}

function resolved<File>(upper: ReadonlyMap<string, Upper<File>>, path: string): File | undefined {
  let at = path;
  for (let hops = 0; hops <= HOPS_MAX; hops++) {
    const found = upper.get(at);
    if (found?.kind !== 'symbolic-link') return found?.file;
    at = linkTarget(at, found.target);
  }
  return undefined;
}

/** Where a symbolic link leads; never above the root of the image. */
function linkTarget(path: string, target: string): string {
  const names = target.startsWith('/') ? [] : path.split('/').slice(1, -1);
  for (const name of target.split('/')) {
    if (name === '..') names.pop();
    else if (name !== '' && name !== '.') names.push(name);
  }
  return `/${names.join('/')}`;
}
