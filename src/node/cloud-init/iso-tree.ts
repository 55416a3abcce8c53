/** The files of an image as a tree, with the names that each of its two directories of contents has for them. */

export interface IsoFile {
  readonly kind: 'file';
  readonly name: string;
  readonly bytes: Uint8Array;
}

export interface IsoDirectory {
  readonly kind: 'directory';
  readonly name: string;
  readonly children: Map<string, IsoNode>;
}

export type IsoNode = IsoFile | IsoDirectory;

const NAME_BYTES_MAX = 255;
/** More levels would have to be moved elsewhere, and Rock Ridge would have to say where they belong. */
const LEVELS_MAX = 8;

/** Throws for paths that are no names of files: what is written here is read by a guest as it is. */
export function isoTree(files: ReadonlyMap<string, Uint8Array>): IsoDirectory {
  const root: IsoDirectory = { kind: 'directory', name: '', children: new Map() };
  for (const [path, bytes] of files) {
    const names = path.split('/');
    if (names.length > LEVELS_MAX || names.some((name) => !isName(name)))
      throw new Error(`${JSON.stringify(path)} is no path of a file`);
    const last = names.pop() ?? '';
    const directory = names.reduce((parent, name) => subdirectory(parent, name, path), root);
    if (directory.children.has(last)) throw new Error(`${JSON.stringify(path)} is two things at once`);
    directory.children.set(last, { kind: 'file', name: last, bytes });
  }
  return root;
}

function isName(name: string): boolean {
  return (
    name !== '' &&
    name !== '.' &&
    name !== '..' &&
    !name.includes('\0') &&
    new TextEncoder().encode(name).length <= NAME_BYTES_MAX
  );
}

function subdirectory(parent: IsoDirectory, name: string, path: string): IsoDirectory {
  const existing = parent.children.get(name);
  if (existing?.kind === 'file') throw new Error(`${JSON.stringify(path)} is below a file`);
  const directory: IsoDirectory = existing ?? { kind: 'directory', name, children: new Map() };
  parent.children.set(name, directory);
  return directory;
}

/** The nodes of a directory under names that are unlike each other, in the order of the names' bytes. */
export type NamedChildren = readonly (readonly [identifier: Uint8Array, node: IsoNode])[];

/** Names as the plainest of readers know them: capitals, digits, one dot, a version. */
export function plainNames({ children }: IsoDirectory): NamedChildren {
  return named(children, (node, attempt) => {
    const plain = node.name.toUpperCase().replaceAll(/[^A-Z0-9_.]/g, '_');
    const suffix = attempt === 0 ? '' : `_${attempt}`;
    if (node.kind === 'directory') return latin(plain.replaceAll('.', '_').slice(0, 26) + suffix);
    const dot = plain.lastIndexOf('.');
    const [base, extension] = dot > 0 ? [plain.slice(0, dot), plain.slice(dot + 1)] : [plain, ''];
    const stem = base.replaceAll('.', '_').slice(0, 20 - suffix.length);
    return latin(`${stem}${suffix}.${extension.slice(0, 8)};1`);
  });
}

const JOLIET_LENGTH_MAX = 64;

/** Names as Windows knows them: 64 characters of 16 bits. */
export function jolietNames({ children }: IsoDirectory): NamedChildren {
  return named(children, (node, attempt) => {
    // eslint-disable-next-line no-control-regex -- They are what must not be in a name.
    const plain = node.name.replaceAll(/[\u0000-\u001f*/:;?\\]/g, '_');
    const suffix = attempt === 0 ? '' : `~${attempt}`;
    return wide(plain.slice(0, JOLIET_LENGTH_MAX - suffix.length) + suffix);
  });
}

function named(
  children: ReadonlyMap<string, IsoNode>,
  identify: (node: IsoNode, attempt: number) => Uint8Array,
): NamedChildren {
  const taken = new Set<string>();
  const attempts = new Map<string, number>();
  const entries = [...children.values()].map((node): [Uint8Array, IsoNode] => {
    const wish = keyOf(identify(node, 0));
    // Where the last one of the same wish ended up: a thousand names that look alike must not be a million tries.
    let attempt = attempts.get(wish) ?? 0;
    let identifier = identify(node, attempt);
    while (taken.has(keyOf(identifier))) identifier = identify(node, ++attempt);
    attempts.set(wish, attempt);
    taken.add(keyOf(identifier));
    return [identifier, node];
  });
  return entries.sort(([a], [b]) => Buffer.compare(a, b));
}

function keyOf(identifier: Uint8Array): string {
  return Buffer.from(identifier).toString('latin1');
}

function latin(text: string): Uint8Array {
  return Buffer.from(text, 'latin1');
}

/** UCS-2, the most significant byte first. */
export function wide(text: string): Uint8Array {
  return Buffer.from(text, 'utf16le').swap16();
}
