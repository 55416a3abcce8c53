import { compileError } from './issues.ts';

const SIMPLE_ESCAPES: ReadonlyMap<string, number> = new Map([
  ['a', 7],
  ['b', 8],
  ['f', 12],
  ['n', 10],
  ['r', 13],
  ['t', 9],
  ['v', 11],
  ['\\', 92],
  ["'", 39],
  ['"', 34],
  ['`', 96],
  ['?', 63],
]);
/** Letters of escapes in numbers, and how many digits follow. */
const NUMERIC_ESCAPES: ReadonlyMap<string, number> = new Map([
  ['x', 2],
  ['X', 2],
  ['u', 4],
  ['U', 8],
]);

/** Reads the string or bytes literal that starts at `at` with `opening` (its prefix letters and quotes). */
export function parseString(source: string, at: number, opening: string): { text: string; value: string | Uint8Array } {
  const quote = opening.replace(/^[a-zA-Z]+/, '');
  const prefix = opening.slice(0, opening.length - quote.length).toLowerCase();
  const isRaw = prefix.includes('r');
  const start = at + opening.length;
  const end = findEnd(source, start, quote, isRaw);
  if (end < 0)
    throw compileError(source, at, `Syntax error: token recognition error at: '${source.slice(at, at + 20)}'`);
  const body = source.slice(start, end);
  const text = source.slice(at, end + quote.length);
  const isBytes = prefix.includes('b');
  if (isRaw || !body.includes('\\')) return { text, value: isBytes ? new TextEncoder().encode(body) : body };
  const points = unescape(source, body, start, isBytes);
  if (isBytes) return { text, value: Uint8Array.from(points) };
  let value = '';
  for (const point of points) value += String.fromCodePoint(point);
  return { text, value };
}

function findEnd(source: string, start: number, quote: string, isRaw: boolean): number {
  const isLong = quote.length === 3;
  for (let index = start; index < source.length; index++) {
    if (source.startsWith(quote, index)) return index;
    const char = source[index];
    if (char === '\\' && !isRaw) index++;
    else if ((char === '\n' || char === '\r') && !isLong) return -1;
  }
  return -1;
}

/** Code points of a string, octets of bytes. */
function unescape(source: string, body: string, start: number, isBytes: boolean): number[] {
  const points: number[] = [];
  let index = 0;
  while (index < body.length) {
    const point = body.codePointAt(index) ?? 0;
    const char = String.fromCodePoint(point);
    if (char !== '\\') {
      if (isBytes) points.push(...new TextEncoder().encode(char));
      else points.push(point);
      index += char.length;
      continue;
    }
    const letter = body[index + 1] ?? '';
    const [value, length] = readEscape(body, index + 1, letter);
    const isUnicode = letter === 'u' || letter === 'U';
    const isInvalid = value === undefined || (isBytes && (isUnicode || value > 255)) || !isScalar(value);
    if (isInvalid) throw compileError(source, start + index, `invalid escape sequence '\\${letter}'`);
    points.push(value);
    index += 1 + length;
  }
  return points;
}

function readEscape(body: string, at: number, letter: string): [value: number | undefined, length: number] {
  const simple = SIMPLE_ESCAPES.get(letter);
  if (simple !== undefined) return [simple, 1];
  const digits = NUMERIC_ESCAPES.get(letter);
  if (digits !== undefined) {
    const hex = body.slice(at + 1, at + 1 + digits);
    const isHex = hex.length === digits && /^[0-9a-fA-F]+$/.test(hex);
    return [isHex ? Number.parseInt(hex, 16) : undefined, 1 + digits];
  }
  const octal = body.slice(at, at + 3);
  return [/^[0-3][0-7]{2}$/.test(octal) ? Number.parseInt(octal, 8) : undefined, 3];
}

function isScalar(point: number): boolean {
  return point <= 0x10ffff && !(point >= 0xd800 && point <= 0xdfff);
}
