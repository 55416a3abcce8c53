import { type Document, isScalar, LineCounter, parseDocument, visit } from 'yaml';
import type { Json } from '../api/meta.ts';
import { ApiError, badRequest } from '../api/status.ts';
import { describeJsonError } from './json-syntax.ts';

/**
 * Bodies into JSON values. What comes out is safe to walk recursively (its depth is bounded), to copy key by key
 * (`__proto__` is refused here, once, rather than guarded against everywhere), and says what the text said: a number
 * that would change by being read is refused rather than stored as another one. Messages quote next to nothing of the
 * body, because they reach logs and a body may hold secrets.
 */

/** Deepest nesting accepted; real objects stay below 50, and recursion stays far from the stack's end. */
export const NESTING_DEPTH_MAX = 512;
/** Enough duplicates to understand the mistake; the rest is noise. */
const DUPLICATES_REPORTED_MAX = 16;
/** Aliases that a YAML document may have, and may expand to: past this it is a bomb, and each costs a walk. */
const YAML_ALIASES_MAX = 100;
/** Reading YAML takes a hundred times as long as reading JSON, which is what nearly all clients send. */
const YAML_BYTES_MAX = 512 * 1024;

export interface Decoded {
  readonly value: Json;
  /** Paths of fields that appear twice in one object; the last one won. */
  readonly duplicates: readonly string[];
  /** The same for a body that was YAML, in the words of Go's parser, which knows lines rather than paths. */
  readonly repeatedLines?: readonly string[];
}

/** Decodes UTF-8 JSON. Throws 400 with the reason, after a word on what was being tried. */
export function decodeJson(body: Uint8Array, prefix = "couldn't get version/kind; json parse error: "): Decoded {
  const text = decodeText(body);
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch (error) {
    // Not the engine's own error, nor as the cause: its message quotes the body.
    if (error instanceof SyntaxError) throw badRequest(`${prefix}${describeJsonError(text)}`);
    throw error;
  }
  return { value, duplicates: scan(text) };
}

/** Decodes one YAML document; JSON is YAML too, and takes the fast path. Throws 400 with the reason. */
export function decodeYaml(body: Uint8Array): Decoded {
  if (looksLikeJson(body)) return decodeJson(body);
  if (body.length > YAML_BYTES_MAX)
    throw new ApiError(
      413,
      'RequestEntityTooLarge',
      `Request entity too large: limit is ${YAML_BYTES_MAX} for YAML; send larger objects as JSON`,
    );
  const text = decodeText(body);
  checkYamlNesting(text);
  const lineCounter = new LineCounter();
  try {
    const document = parseDocument(text, {
      lineCounter,
      version: '1.1',
      uniqueKeys: false,
      merge: true,
      intAsBigInt: true,
      prettyErrors: false,
      customTags: (tags) => tags.filter((tag) => !UNWANTED_TAGS.has(tagName(tag))),
    });
    const failure = document.errors[0];
    if (failure) throw failure;
    checkYamlAliases(document);
    // Through JSON text: what YAML can say and JSON cannot (dates, maps with odd keys) ends here.
    const json = JSON.stringify(document.toJS({ maxAliasCount: YAML_ALIASES_MAX }), exactNumber) ?? 'null';
    return {
      value: JSON.parse(json) as Json,
      duplicates: scan(json),
      repeatedLines: repeatsOf(document, lineCounter),
    };
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw badRequest(`error converting YAML to JSON: ${(error as Error).message.split('\n', 1)[0]}`, error);
  }
}

function repeatsOf(document: Document, lineCounter: LineCounter): string[] {
  const repeats: { line: number; key: string }[] = [];
  visit(document, {
    Map(_key, map) {
      const seen = new Set<unknown>();
      for (const { key } of map.items) {
        if (!isScalar(key) || key.value === '<<') continue;
        if (seen.has(key.value))
          repeats.push({ line: lineCounter.linePos(key.range?.[0] ?? 0).line, key: String(key.value) });
        seen.add(key.value);
      }
      return repeats.length < DUPLICATES_REPORTED_MAX ? undefined : visit.BREAK;
    },
  });
  repeats.sort((a, b) => a.line - b.line);
  return repeats
    .slice(0, DUPLICATES_REPORTED_MAX)
    .map(({ line, key }) => `line ${line}: key ${JSON.stringify(key)} already set in map`);
}

function exactNumber(_key: string, value: unknown): unknown {
  if (typeof value === 'number' && !Number.isFinite(value)) throw inexact(String(value));
  if (typeof value !== 'bigint') return value;
  const number = Number(value);
  if (String(number) !== String(value)) throw inexact(String(value));
  return number;
}

/** Digits of a number that a message shows. */
const SHOWN_LENGTH_MAX = 32;

function inexact(text: string, path = ''): ApiError {
  const shown = text.length > SHOWN_LENGTH_MAX ? `${text.slice(0, SHOWN_LENGTH_MAX)}...` : text;
  return badRequest(`the number ${shown} is out of range${path === '' ? '' : `, at ${path}`}`);
}

const UNWANTED_TAGS: ReadonlySet<string> = new Set([
  'timestamp',
  'tag:yaml.org,2002:timestamp',
  'binary',
  'tag:yaml.org,2002:binary',
]);

function tagName(tag: unknown): string {
  return typeof tag === 'string' ? tag : (tag as { tag: string }).tag;
}

const UTF8 = new TextDecoder('utf-8', { fatal: true });

function decodeText(body: Uint8Array): string {
  try {
    return UTF8.decode(body);
  } catch (error) {
    throw badRequest('the body is not valid UTF-8', error);
  }
}

function looksLikeJson(body: Uint8Array): boolean {
  const first = body.find((byte) => byte !== 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d);
  return first === 0x7b || first === 0x5b;
}

/** Each alias makes the library look for its anchor from the beginning, so a document of aliases would take for ever. */
function checkYamlAliases(document: Document.Parsed): void {
  let count = 0;
  visit(document, {
    Alias: () => {
      if (++count > YAML_ALIASES_MAX) throw new Error(`Excessive alias count: more than ${YAML_ALIASES_MAX}`);
    },
  });
}

/** The YAML parser recurses; a bound on brackets and on indentation bounds its depth. */
function checkYamlNesting(text: string): void {
  let brackets = 0;
  let indentation = 0;
  for (let index = 0, column = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === 0x0a) column = 0;
    else if (code === 0x20 || code === 0x2d || code === 0x3f) indentation = Math.max(indentation, ++column);
    else column = Number.NEGATIVE_INFINITY;
    if (code === 0x5b || code === 0x7b) brackets++;
    else if ((code === 0x5d || code === 0x7d) && brackets > 0) brackets--;
    if (brackets > NESTING_DEPTH_MAX || indentation > 2 * NESTING_DEPTH_MAX)
      throw badRequest(`the body is nested deeper than ${NESTING_DEPTH_MAX} levels`);
  }
}

interface Frame {
  readonly keys: Set<string> | undefined;
  key: string;
  index: number;
}

const SURROGATE_ESCAPE = /\\u[dD][89a-fA-F]/;
/** With the `u` flag, halves that belong to a pair do not match. */
const LONE_SURROGATE = /\p{Surrogate}/u;

/**
 * One pass over text that JSON.parse has accepted: finds duplicate keys and refuses excessive depth, `__proto__`,
 * numbers that a double cannot hold and text that UTF-8 cannot. JSON.parse tells of none of these.
 */
function scan(text: string): string[] {
  const duplicates: string[] = [];
  const stack: Frame[] = [];
  const hasSurrogates = SURROGATE_ESCAPE.test(text);
  for (let index = 0; index < text.length; index++) {
    switch (text.charCodeAt(index)) {
      case 0x7b: // {
        stack.push({ keys: new Set(), key: '', index: 0 });
        break;
      case 0x5b: // [
        stack.push({ keys: undefined, key: '', index: 0 });
        break;
      case 0x7d: // }
      case 0x5d: // ]
        stack.pop();
        break;
      case 0x2c: {
        // ,
        const frame = stack.at(-1);
        if (frame) frame.index++;
        break;
      }
      case 0x22: {
        const end = endOfString(text, index);
        const frame = stack.at(-1);
        if (frame?.keys && isKey(text, end)) noteKey(frame, frame.keys, text, index, end, stack, duplicates);
        if (hasSurrogates && LONE_SURROGATE.test(JSON.parse(text.slice(index, end + 1)) as string))
          throw badRequest(`half a surrogate pair is no text, at ${pathOf(stack)}`);
        index = end;
        break;
      }
      default:
        if (isDigit(text.charCodeAt(index))) index = skipNumber(text, index, stack);
    }
    if (stack.length > NESTING_DEPTH_MAX)
      throw badRequest(`the body is nested deeper than ${NESTING_DEPTH_MAX} levels`);
  }
  return duplicates;
}

function noteKey(
  frame: Frame,
  keys: Set<string>,
  text: string,
  start: number,
  end: number,
  stack: readonly Frame[],
  duplicates: string[],
): void {
  const raw = text.slice(start + 1, end);
  frame.key = raw.includes('\\') ? (JSON.parse(text.slice(start, end + 1)) as string) : raw;
  if (frame.key === '__proto__') throw badRequest(`the key "__proto__" is not accepted, at ${pathOf(stack)}`);
  if (keys.has(frame.key) && duplicates.length < DUPLICATES_REPORTED_MAX) duplicates.push(pathOf(stack));
  keys.add(frame.key);
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

/** The most digits that every double holds. */
const EXACT_DIGITS = 15;

/** From the first digit to the last character. Throws where the number would become another one. */
function skipNumber(text: string, start: number, stack: readonly Frame[]): number {
  let end = start;
  let isInteger = true;
  for (; ; end++) {
    const code = text.charCodeAt(end);
    if (isDigit(code)) continue;
    // . + - e E
    if (code !== 0x2e && code !== 0x2b && code !== 0x2d && code !== 0x65 && code !== 0x45) break;
    isInteger = false;
  }
  if (!isInteger || end - start > EXACT_DIGITS) {
    const digits = text.slice(start, end);
    const number = Number(digits);
    // A fraction is rounded by everyone; a whole number is an identity, a size or a time, and has to stay itself.
    const isExact = isInteger ? String(number) === digits : Number.isFinite(number);
    if (!isExact) throw inexact(digits, pathOf(stack));
  }
  return end - 1;
}

/** The closing quote: the first one behind an even number of backslashes. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); ; end = text.indexOf('"', end + 1)) {
    let escapes = end;
    while (text.charCodeAt(escapes - 1) === 0x5c) escapes--;
    if ((end - escapes) % 2 === 0) return end;
  }
}

function isKey(text: string, end: number): boolean {
  for (let index = end + 1; ; index++) {
    const code = text.charCodeAt(index);
    if (code === 0x3a) return true;
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return false;
  }
}

function pathOf(stack: readonly Frame[]): string {
  let path = '';
  for (const frame of stack) path += frame.keys ? (path === '' ? frame.key : `.${frame.key}`) : `[${frame.index}]`;
  return path;
}
