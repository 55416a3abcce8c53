/** Lines in what comes in pieces. */

/** Of a text, kept in memory to find the last lines of it. */
const KEPT_BYTES_MAX = 64 * 1024 * 1024;
const LINE_BREAK = 10;

/** What ends a line. */
export const NEW_LINE: Uint8Array = Uint8Array.of(LINE_BREAK);

/** Whether what comes next begins a line. */
export function endsLine(bytes: Uint8Array): boolean {
  return bytes.length === 0 || bytes.at(-1) === LINE_BREAK;
}

/** All of it, or the last of it where it is too long to be kept. */
export async function collected(body: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of body) {
    pieces.push(piece);
    length += piece.length;
    while (length > KEPT_BYTES_MAX) length -= pieces.shift()?.length ?? 0;
  }
  return Buffer.concat(pieces);
}

/** Lines that have begun; the last one need not have ended. */
export function countLines(bytes: Uint8Array): number {
  let count = endsLine(bytes) ? 0 : 1;
  for (const byte of bytes) if (byte === LINE_BREAK) count++;
  return count;
}

/** Where the last lines begin. */
export function startOfLastLines(bytes: Uint8Array, count: number): number {
  if (count === 0) return bytes.length;
  let left = count;
  for (let index = bytes.length - 2; index >= 0; index--) {
    if (bytes[index] === LINE_BREAK && --left === 0) return index + 1;
  }
  return 0;
}

/** As many bytes as are wanted at most; the rest is not asked for. */
export async function* limited(
  pieces: AsyncIterable<Uint8Array>,
  limitBytes: number | undefined,
): AsyncGenerator<Uint8Array> {
  let leftBytes = limitBytes ?? Number.POSITIVE_INFINITY;
  for await (const piece of pieces) {
    yield piece.length > leftBytes ? piece.subarray(0, leftBytes) : piece;
    leftBytes -= piece.length;
    if (leftBytes <= 0) return;
  }
}
