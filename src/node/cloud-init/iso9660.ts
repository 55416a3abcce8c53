import {
  announcement,
  both16,
  both32,
  continuationField,
  directoryRecord,
  type Extent,
  modeField,
  nameFields,
  packed,
  SECTOR_BYTES,
  sectorsOf,
} from './iso-records.ts';
import {
  type IsoDirectory,
  type IsoFile,
  type IsoNode,
  isoTree,
  jolietNames,
  type NamedChildren,
  plainNames,
  wide,
} from './iso-tree.ts';

/**
 * Images of CDs, as cloud-init and everything else that a guest boots can read: ISO 9660, with Rock Ridge so that Linux
 * sees each name as it is, and with Joliet for Windows. One set of files, two trees of directories that lead to it:
 *
 *     16 descriptors (plain, Joliet, end) │ path tables │ plain directories │ long names │ Joliet directories │ files
 *
 * The same files give the same image, down to the last byte: a guest that moves finds its disk unchanged.
 */

export interface IsoContents {
  /** What the file system is called; at most 32 characters. */
  readonly label: string;
  /** By path, such as `meta-data` or `openstack/latest/user_data`. */
  readonly files: ReadonlyMap<string, Uint8Array>;
  readonly modifiedMs: number;
}

const DESCRIPTORS_AT = 16;
const LABEL_LENGTH_MAX = 32;
/** A name that is longer goes on elsewhere: an entry has 255 bytes, and the rest of it takes up to 103 of them. */
const NAME_BYTES_INLINE_MAX = 140;
const DIRECTORY_SELF = Uint8Array.of(0);
const DIRECTORY_PARENT = Uint8Array.of(1);

/** The image of a CD with these files. Throws for names and labels that cannot be. */
export function iso9660({ label, files, modifiedMs }: IsoContents): Uint8Array {
  if (!/^[\u0020-\u007e]{1,32}$/.test(label) || label.length > LABEL_LENGTH_MAX)
    throw new Error(`${JSON.stringify(label)} is no label of a file system`);
  const root = isoTree(files);
  const modified = new Date(modifiedMs);
  const plain = new Tree(root, plainNames, modified, true);
  const joliet = new Tree(root, jolietNames, modified, false);
  const image = new Image(DESCRIPTORS_AT + 3);
  for (const tree of [plain, joliet]) tree.place(image);
  const extents = new Map(filesOf(root).map((file) => [file, image.reserve(file.bytes.length)]));
  image.finish((write) => {
    for (const tree of [plain, joliet]) tree.write(write, extents);
    for (const [{ bytes }, { sector }] of extents) write(sector, bytes);
    write(DESCRIPTORS_AT, descriptor(plain, image.sectors, label, modified));
    write(DESCRIPTORS_AT + 1, descriptor(joliet, image.sectors, label, modified));
    write(DESCRIPTORS_AT + 2, Uint8Array.of(255, ...Buffer.from('CD001'), 1));
  });
  return image.bytes;
}

function filesOf({ children }: IsoDirectory): IsoFile[] {
  return [...children.values()].flatMap((node) => (node.kind === 'file' ? [node] : filesOf(node)));
}

type Write = (sector: number, bytes: Uint8Array) => void;

/** Sectors, handed out one after the other, then filled. */
class Image {
  sectors: number;
  bytes: Uint8Array = new Uint8Array();

  constructor(firstFreeSector: number) {
    this.sectors = firstFreeSector;
  }

  reserve(bytes: number): Extent {
    const sector = this.sectors;
    this.sectors += sectorsOf(bytes);
    return { sector, bytes };
  }

  finish(fill: (write: Write) => void): void {
    this.bytes = new Uint8Array(this.sectors * SECTOR_BYTES);
    fill((sector, bytes) => this.bytes.set(bytes, sector * SECTOR_BYTES));
  }
}

interface PlacedDirectory {
  readonly directory: IsoDirectory;
  readonly identifier: Uint8Array;
  /** Of the directory above it in the list, from 0; that of the root is the root. */
  readonly parent: number;
  readonly children: NamedChildren;
  extent: Extent;
}

/** One of the two trees of directories. */
class Tree {
  readonly isPlain: boolean;
  readonly directories: PlacedDirectory[] = [];
  readonly #modified: Date;
  /** Where long names go on, by node. */
  readonly #continued = new Map<IsoNode, { readonly at: number; readonly bytes: Uint8Array }>();
  #continuations: Extent = { sector: 0, bytes: 0 };
  pathTables: readonly Extent[] = [];

  constructor(
    root: IsoDirectory,
    namesOf: (directory: IsoDirectory) => NamedChildren,
    modified: Date,
    isPlain: boolean,
  ) {
    this.isPlain = isPlain;
    this.#modified = modified;
    const nowhere = { sector: 0, bytes: 0 };
    const add = (directory: IsoDirectory, identifier: Uint8Array, parent: number): void =>
      void this.directories.push({ directory, identifier, parent, children: namesOf(directory), extent: nowhere });
    add(root, DIRECTORY_SELF, 0);
    // Level by level, and by name within each: the order in which path tables must be.
    for (const [index, { children }] of this.directories.entries())
      for (const [identifier, node] of children) if (node.kind === 'directory') add(node, identifier, index);
  }

  /** Finds room for everything but the files. Sizes do not depend on where things are. */
  place(image: Image): void {
    const tableBytes = this.#pathTable(true).length;
    this.pathTables = [image.reserve(tableBytes), image.reserve(tableBytes)];
    if (this.isPlain) this.#placeLongNames(image);
    for (const placed of this.directories)
      placed.extent = image.reserve(this.#directoryBytes(placed, () => placed.extent).length);
  }

  write(write: Write, files: ReadonlyMap<IsoNode, Extent>): void {
    const directories = new Map<IsoNode, Extent>(this.directories.map(({ directory, extent }) => [directory, extent]));
    const extentOf = (node: IsoNode): Extent => {
      const extent = files.get(node) ?? directories.get(node);
      if (!extent) throw new Error(`${node.name} has no place in the image`);
      return extent;
    };
    for (const [index, { sector }] of this.pathTables.entries()) write(sector, this.#pathTable(index === 0));
    for (const placed of this.directories) write(placed.extent.sector, this.#directoryBytes(placed, extentOf));
    const names = new Uint8Array(this.#continuations.bytes);
    for (const { at, bytes } of this.#continued.values()) names.set(bytes, at);
    write(this.#continuations.sector, names);
  }

  #placeLongNames(image: Image): void {
    let end = 0;
    for (const { children } of this.directories)
      for (const [, node] of children) {
        const name = new TextEncoder().encode(node.name);
        if (name.length <= NAME_BYTES_INLINE_MAX) continue;
        const bytes = nameFields(name);
        const left = SECTOR_BYTES - (end % SECTOR_BYTES);
        if (bytes.length > left) end += left;
        this.#continued.set(node, { at: end, bytes });
        end += bytes.length;
      }
    this.#continuations = image.reserve(end);
  }

  #directoryBytes(placed: PlacedDirectory, extentOf: (node: IsoNode) => Extent): Uint8Array {
    const { directory, parent, children } = placed;
    const above = this.directories[parent]?.directory ?? directory;
    const record = (identifier: Uint8Array, node: IsoNode, systemUse: Uint8Array): Uint8Array =>
      directoryRecord(identifier, extentOf(node), node.kind, this.#modified, this.isPlain ? systemUse : undefined);
    const isRoot = placed === this.directories[0];
    return packed([
      record(DIRECTORY_SELF, directory, isRoot ? announcement() : modeField('directory')),
      record(DIRECTORY_PARENT, above, modeField('directory')),
      ...children.map(([identifier, node]) => record(identifier, node, this.#systemUse(node))),
    ]);
  }

  #systemUse(node: IsoNode): Uint8Array {
    const long = this.#continued.get(node);
    const name = long
      ? continuationField(
          this.#continuations.sector + Math.floor(long.at / SECTOR_BYTES),
          long.at % SECTOR_BYTES,
          long.bytes.length,
        )
      : nameFields(new TextEncoder().encode(node.name));
    return Buffer.concat([modeField(node.kind), name]);
  }

  #pathTable(isLittleEndian: boolean): Uint8Array {
    const records = this.directories.map(({ identifier, parent, extent }) => {
      const record = new Uint8Array(8 + identifier.length + (identifier.length % 2));
      const view = new DataView(record.buffer);
      view.setUint8(0, identifier.length);
      view.setUint32(2, extent.sector, isLittleEndian);
      view.setUint16(6, parent + 1, isLittleEndian);
      record.set(identifier, 8);
      return record;
    });
    return Buffer.concat(records);
  }
}

/** The page that describes one of the trees, and the whole image. */
function descriptor(tree: Tree, sectors: number, label: string, modified: Date): Uint8Array {
  const bytes = new Uint8Array(SECTOR_BYTES);
  const view = new DataView(bytes.buffer);
  const text = (offset: number, length: number, value: string): void => {
    const encoded = tree.isPlain ? Buffer.from(value.padEnd(length)) : wide(value.padEnd(length));
    bytes.set(encoded.subarray(0, length), offset);
  };
  bytes[0] = tree.isPlain ? 1 : 2;
  bytes.set(Buffer.from('CD001'), 1);
  bytes[6] = 1;
  text(8, 32, 'LINUX');
  text(40, 32, label);
  both32(view, 80, sectors);
  // How Joliet is told from other supplements: UCS-2, level 3.
  if (!tree.isPlain) bytes.set(Buffer.from('%/E'), 88);
  both16(view, 120, 1);
  both16(view, 124, 1);
  both16(view, 128, SECTOR_BYTES);
  const [little, big] = tree.pathTables;
  both32(view, 132, little?.bytes ?? 0);
  view.setUint32(140, little?.sector ?? 0, true);
  view.setUint32(148, big?.sector ?? 0);
  const root = tree.directories[0]?.extent ?? { sector: 0, bytes: 0 };
  bytes.set(directoryRecord(DIRECTORY_SELF, root, 'directory', modified), 156);
  for (const [offset, length] of [
    [190, 128],
    [318, 128],
    [446, 128],
    [574, 128],
    [702, 37],
    [739, 37],
    [776, 37],
  ] as const)
    text(offset, length, '');
  const time = Buffer.from(
    `${modified
      .toISOString()
      .replaceAll(/[^0-9]/g, '')
      .slice(0, 16)}\0`,
  );
  const never = Buffer.from(`${'0'.repeat(16)}\0`);
  for (const [index, moment] of [time, time, never, time].entries()) bytes.set(moment, 813 + index * 17);
  bytes[881] = 1;
  return bytes;
}
