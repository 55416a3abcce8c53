import type { IsoNode } from './iso-tree.ts';

/** The bytes of which the directories of an ISO 9660 image consist. */

export const SECTOR_BYTES = 2048;

/** A part of the image, in whole sectors. */
export interface Extent {
  readonly sector: number;
  readonly bytes: number;
}

const ROOT_FLAGS = 2;
const DIRECTORY_MODE = 0o040555;
const FILE_MODE = 0o100444;

export function sectorsOf(bytes: number): number {
  return Math.ceil(bytes / SECTOR_BYTES);
}

/** A number in both orders of bytes. */
export function both32(view: DataView, offset: number, value: number): void {
  view.setUint32(offset, value, true);
  view.setUint32(offset + 4, value);
}

export function both16(view: DataView, offset: number, value: number): void {
  view.setUint16(offset, value, true);
  view.setUint16(offset + 2, value);
}

/** The entry of a file or a directory: where it is, and by what it goes. `systemUse` is what Rock Ridge adds. */
export function directoryRecord(
  identifier: Uint8Array,
  { sector, bytes }: Extent,
  kind: IsoNode['kind'],
  modified: Date,
  systemUse: Uint8Array = new Uint8Array(),
): Uint8Array {
  const systemUseAt = 33 + identifier.length + (identifier.length % 2 === 0 ? 1 : 0);
  const length = systemUseAt + systemUse.length + (systemUse.length % 2);
  if (length > 255) throw new Error('an entry of a directory is too long');
  const record = new Uint8Array(length);
  const view = new DataView(record.buffer);
  view.setUint8(0, length);
  both32(view, 2, sector);
  both32(view, 10, bytes);
  record.set(recordTime(modified), 18);
  view.setUint8(25, kind === 'directory' ? ROOT_FLAGS : 0);
  both16(view, 28, 1);
  view.setUint8(32, identifier.length);
  record.set(identifier, 33);
  record.set(systemUse, systemUseAt);
  return record;
}

function recordTime(time: Date): Uint8Array {
  return Uint8Array.of(
    time.getUTCFullYear() - 1900,
    time.getUTCMonth() + 1,
    time.getUTCDate(),
    time.getUTCHours(),
    time.getUTCMinutes(),
    time.getUTCSeconds(),
    0,
  );
}

/** Puts entries into sectors, none of them into two. */
export function packed(records: readonly Uint8Array[]): Uint8Array {
  let end = 0;
  const places = records.map((record) => {
    const left = SECTOR_BYTES - (end % SECTOR_BYTES);
    if (record.length > left) end += left;
    const place = end;
    end += record.length;
    return place;
  });
  const bytes = new Uint8Array(Math.max(1, sectorsOf(end)) * SECTOR_BYTES);
  for (const [index, record] of records.entries()) bytes.set(record, places[index]);
  return bytes;
}

function field(signature: string, body: Uint8Array): Uint8Array {
  return Uint8Array.of(...Buffer.from(signature, 'latin1'), body.length + 4, 1, ...body);
}

/** What Rock Ridge says of a file: its mode. Who reads the image owns it. */
export function modeField(kind: IsoNode['kind']): Uint8Array {
  const body = new Uint8Array(32);
  const view = new DataView(body.buffer);
  both32(view, 0, kind === 'directory' ? DIRECTORY_MODE : FILE_MODE);
  both32(view, 8, 1);
  return field('PX', body);
}

/** What tells readers, in the first entry of the root, that Rock Ridge is used at all. */
export function announcement(): Uint8Array {
  const identifier = Buffer.from('RRIP_1991A', 'latin1');
  return Buffer.concat([
    field('SP', Uint8Array.of(0xbe, 0xef, 0)),
    modeField('directory'),
    field('ER', Uint8Array.of(identifier.length, 0, 0, 1, ...identifier)),
  ]);
}

const NAME_PART_BYTES_MAX = 200;

/** The name as it is; in several fields where it does not fit into one. */
export function nameFields(name: Uint8Array): Uint8Array {
  const parts: Uint8Array[] = [];
  for (let offset = 0; offset < name.length; offset += NAME_PART_BYTES_MAX) {
    const part = name.subarray(offset, offset + NAME_PART_BYTES_MAX);
    const goesOn = offset + part.length < name.length ? 1 : 0;
    parts.push(field('NM', Uint8Array.of(goesOn, ...part)));
  }
  return Buffer.concat(parts);
}

/** Says where an entry goes on that is too long for its directory. */
export function continuationField(sector: number, offset: number, bytes: number): Uint8Array {
  const body = new Uint8Array(24);
  const view = new DataView(body.buffer);
  both32(view, 0, sector);
  both32(view, 8, offset);
  both32(view, 16, bytes);
  return field('CE', body);
}
