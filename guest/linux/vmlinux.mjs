// The kernel inside a Debian kernel image. QEMU starts it directly, by its PVH note: unpacking it in a guest that is
// translated takes a second.

const BOOT_PROTOCOL_MAGIC = 0x53726448;
const LZ4_LEGACY_MAGIC = 0x184c2102;
/** A kernel is larger than it looks, but not that large. */
const BYTES_MAX = 256 * 1024 * 1024;

/** The ELF file in a bzImage that is packed with LZ4; the image as it is, which boots as well, where it is packed otherwise. */
export function vmlinuxOf(image) {
  if (image.readUInt32LE(0x202) !== BOOT_PROTOCOL_MAGIC) throw new Error('this is no kernel image');
  const setupSectors = image[0x1f1] || 4;
  const payload = (setupSectors + 1) * 512 + image.readUInt32LE(0x248);
  const length = image.readUInt32LE(0x24c);
  if (image.readUInt32LE(payload) !== LZ4_LEGACY_MAGIC) return image;
  // The size of what comes out follows the archive.
  const kernel = unpack(image.subarray(payload + 4, payload + length - 4));
  if (kernel.toString('latin1', 1, 4) !== 'ELF') throw new Error('the image holds no ELF file');
  return kernel;
}

/** Chunks, each with its length before it. */
function unpack(packed) {
  const output = Buffer.allocUnsafe(BYTES_MAX);
  let at = 0;
  let end = 0;
  while (at + 4 <= packed.length) {
    const length = packed.readUInt32LE(at);
    at += 4;
    end = unpackBlock(packed.subarray(at, at + length), output, end);
    at += length;
  }
  return Buffer.from(output.subarray(0, end));
}

/** Sequences of literals and of copies of what came before. Answers where the output ends. */
function unpackBlock(input, output, start) {
  let from = 0;
  let to = start;
  const extended = (short) => {
    let value = short;
    if (short === 15)
      for (let more = 255; more === 255; ) {
        more = input[from++];
        value += more;
      }
    return value;
  };
  while (from < input.length) {
    const token = input[from++];
    const literals = extended(token >> 4);
    input.copy(output, to, from, from + literals);
    from += literals;
    to += literals;
    if (from >= input.length) break;
    const distance = input[from] | (input[from + 1] << 8);
    from += 2;
    const copied = extended(token & 15) + 4;
    if (distance === 0 || distance > to || to + copied > output.length) throw new Error('the kernel is damaged');
    // What is copied may overlap with where it goes.
    if (distance >= copied) output.copyWithin(to, to - distance, to - distance + copied);
    else for (let i = 0; i < copied; i++) output[to + i] = output[to - distance + i];
    to += copied;
  }
  return to;
}
