/** Reads images of CDs again, straight from the standards and apart from the writer. */

const SECTOR_BYTES = 2048;

/** The files of an image by path, as Linux sees them (Rock Ridge) or as Windows does (Joliet). */
export function readIso(image: Uint8Array, kind: 'rock-ridge' | 'joliet'): Map<string, Uint8Array> {
  const bytes = Buffer.from(image.buffer, image.byteOffset, image.byteLength);
  const descriptor = bytes.subarray((kind === 'joliet' ? 17 : 16) * SECTOR_BYTES);
  if (descriptor.toString('latin1', 1, 6) !== 'CD001') throw new Error('no descriptor');
  if (descriptor[0] !== (kind === 'joliet' ? 2 : 1)) throw new Error('no such descriptor');
  const files = new Map<string, Uint8Array>();
  readDirectory(bytes, descriptor.subarray(156, 190), '', kind, files);
  return files;
}

/** What the file system is called. */
export function labelOf(image: Uint8Array): string {
  return Buffer.from(image)
    .toString('latin1', 16 * SECTOR_BYTES + 40, 16 * SECTOR_BYTES + 72)
    .trimEnd();
}

function readDirectory(
  image: Buffer,
  entry: Buffer,
  path: string,
  kind: 'rock-ridge' | 'joliet',
  files: Map<string, Uint8Array>,
): void {
  const start = entry.readUInt32LE(2) * SECTOR_BYTES;
  const end = start + entry.readUInt32LE(10);
  for (let at = start; at < end; ) {
    const length = image.readUInt8(at);
    if (length === 0) {
      at = (Math.floor(at / SECTOR_BYTES) + 1) * SECTOR_BYTES;
      continue;
    }
    const record = image.subarray(at, at + length);
    at += length;
    checkBothOrders(record);
    const identifier = record.subarray(33, 33 + record.readUInt8(32));
    if (identifier.length === 1 && (identifier[0] ?? 0) <= 1) continue;
    const name =
      kind === 'joliet' ? Buffer.from(identifier).swap16().toString('utf16le') : rockRidgeName(image, record);
    if (record.readUInt8(25) & 2) readDirectory(image, record, `${path}${name}/`, kind, files);
    else {
      if (files.has(path + name)) throw new Error(`two files are called ${path}${name}`);
      const data = record.readUInt32LE(2) * SECTOR_BYTES;
      files.set(path + name, image.subarray(data, data + record.readUInt32LE(10)));
    }
  }
}

function checkBothOrders(record: Buffer): void {
  if (record.readUInt32LE(2) !== record.readUInt32BE(6) || record.readUInt32LE(10) !== record.readUInt32BE(14))
    throw new Error('the two orders of bytes differ');
}

function rockRidgeName(image: Buffer, record: Buffer): string {
  const identifierLength = record.readUInt8(32);
  const parts: Buffer[] = [];
  const areas = [record.subarray(33 + identifierLength + (identifierLength % 2 === 0 ? 1 : 0))];
  for (const area of areas) {
    for (let at = 0; at + 4 <= area.length && area[at] !== 0; at += area.readUInt8(at + 2)) {
      const field = area.subarray(at, at + area.readUInt8(at + 2));
      const signature = field.toString('latin1', 0, 2);
      if (signature === 'NM') parts.push(field.subarray(5));
      if (signature === 'CE') {
        const [sector, offset, length] = [field.readUInt32LE(4), field.readUInt32LE(12), field.readUInt32LE(20)];
        if (offset + length > SECTOR_BYTES) throw new Error('a continuation crosses sectors');
        areas.push(image.subarray(sector * SECTOR_BYTES + offset, sector * SECTOR_BYTES + offset + length));
      }
    }
  }
  return Buffer.concat(parts).toString();
}
