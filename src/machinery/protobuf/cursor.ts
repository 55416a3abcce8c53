import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { type ApiError, badRequest } from '../../api/status.ts';

/** Messages within messages; the deepest built-in kind stays below 20. */
export const MESSAGE_DEPTH_MAX = 64;
/** Values in one body. An empty message takes two bytes on the wire but an object in memory. */
export const VALUES_MAX = 500_000;

/**
 * A position in the wire bytes that knows which field it stands in. Everything wrong with the bytes becomes a 400
 * that names both; nothing else is thrown.
 */
export class Cursor {
  readonly #reader: BinaryReader;
  readonly #baseOffset: number;
  readonly #path: (string | number)[] = [];
  #valuesLeft = VALUES_MAX;
  #depth = 0;

  /** `baseOffset` is where these bytes begin in the body, for messages. */
  constructor(bytes: Uint8Array, baseOffset: number) {
    this.#reader = new BinaryReader(bytes);
    this.#baseOffset = baseOffset;
  }

  get position(): number {
    return this.#reader.pos;
  }

  get length(): number {
    return this.#reader.len;
  }

  /** The next tag, which has to lie before `end`. Groups do not occur in Kubernetes and are refused. */
  tag(end: number): [number: number, wireType: WireType] {
    if (--this.#valuesLeft < 0) throw this.malformed(`more than ${VALUES_MAX} values`);
    const tag = this.#attempt(() => this.#reader.tag(), end);
    if (tag[1] === WireType.StartGroup || tag[1] === WireType.EndGroup) throw this.malformed('groups are not accepted');
    return tag;
  }

  skip(wireType: WireType, end: number): void {
    this.#attempt(() => this.#reader.skip(wireType), end);
  }

  string(end: number): string {
    return this.#attempt(() => this.#reader.string(true), end);
  }

  bytes(end: number): Uint8Array {
    return this.#attempt(() => this.#reader.bytes(), end);
  }

  int32(end: number): number {
    return this.#attempt(() => this.#reader.int32(), end);
  }

  int64(end: number): bigint {
    return BigInt(this.#attempt(() => this.#reader.int64(), end));
  }

  bool(end: number): boolean {
    return this.#attempt(() => this.#reader.bool(), end);
  }

  double(end: number): number {
    return this.#attempt(() => this.#reader.double(), end);
  }

  /** Reads a length and runs `read` with the end that it gives; `read` has to arrive there. */
  within<T>(end: number, read: (innerEnd: number) => T): T {
    const length = this.#attempt(() => this.#reader.uint32(), end);
    const innerEnd = this.position + length;
    if (innerEnd > end) throw this.malformed(`a length of ${length} bytes, with ${end - this.position} left`);
    if (++this.#depth > MESSAGE_DEPTH_MAX) throw this.malformed(`nested deeper than ${MESSAGE_DEPTH_MAX} messages`);
    const value = read(innerEnd);
    this.#depth--;
    return value;
  }

  /** Runs `read` inside a field or an item, so that errors name it. */
  at<T>(step: string | number, read: () => T): T {
    this.#path.push(step);
    const value = read();
    this.#path.pop();
    return value;
  }

  /** The refusal of these bytes, at this position. */
  malformed(reason: string, cause?: unknown): ApiError {
    const offset = this.#baseOffset + Math.min(this.position, this.length);
    const path = this.#path.map((step, index) =>
      typeof step === 'number' ? `[${step}]` : index > 0 ? `.${step}` : step,
    );
    const place = path.length === 0 ? '' : `, in ${path.join('')}`;
    return badRequest(`the protobuf body is malformed at byte ${offset}${place}: ${reason}`, cause);
  }

  #attempt<T>(read: () => T, end: number): T {
    let value: T;
    try {
      value = read();
    } catch (error) {
      throw this.malformed(error instanceof RangeError ? 'it ends too early' : messageOf(error), error);
    }
    if (this.position > end) throw this.malformed('it ends too early');
    return value;
  }
}

function messageOf(error: unknown): string {
  if (error instanceof TypeError) return 'a text is not valid UTF-8';
  return error instanceof Error ? error.message : String(error);
}
