import { TransportError } from './transport.ts';

/** Longest line that is put together; the largest object fits a hundred times. */
const LINE_LENGTH_MAX = 256 * 1024 * 1024;

/** The lines of a stream, whole, however its pieces are cut. What follows the last line break is no line: it was cut off. */
export async function* readLines(pieces: AsyncIterable<string>): AsyncGenerator<string> {
  let rest: string[] = [];
  let restLength = 0;
  for await (const piece of pieces) {
    let start = 0;
    for (let end = piece.indexOf('\n'); end >= 0; end = piece.indexOf('\n', start)) {
      rest.push(piece.slice(start, end));
      yield rest.join('');
      rest = [];
      restLength = 0;
      start = end + 1;
    }
    if (start === piece.length) continue;
    rest.push(start === 0 ? piece : piece.slice(start));
    restLength += piece.length - start;
    if (restLength > LINE_LENGTH_MAX) throw new TransportError('a line of the watch is too long');
  }
}
