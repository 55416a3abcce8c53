import { QmpError } from './qmp-error.ts';

/** What QEMU tells unasked. */
export interface QmpEvent {
  readonly name: string;
  readonly data: Readonly<Record<string, unknown>>;
  /** When it happened, by the clock of QEMU's host, in milliseconds with microseconds as the fraction; undefined where QEMU could not tell. */
  readonly atMs: number | undefined;
}

/** The version of a QEMU, as in its greeting. */
export interface QemuVersion {
  readonly major: number;
  readonly minor: number;
  readonly micro: number;
}

/** One line of QEMU's. */
export type QmpMessage =
  | { readonly kind: 'greeting'; readonly version: QemuVersion; readonly capabilities: readonly string[] }
  | { readonly kind: 'result'; readonly id: number; readonly value: unknown }
  | {
      readonly kind: 'error';
      /** Undefined when QEMU could not make out which command it answers. */
      readonly id: number | undefined;
      readonly errorClass: string;
      readonly description: string;
    }
  | { readonly kind: 'event'; readonly event: QmpEvent };

/** How much of a wrong line is worth repeating. */
const EXCERPT_LENGTH = 200;

function wrong(what: string, line: string, cause?: unknown): QmpError {
  return new QmpError('Protocol', `${what}: ${JSON.stringify(line.slice(0, EXCERPT_LENGTH))}`, { cause });
}

/** True for what JSON calls an object. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function own(object: unknown, key: string): unknown {
  return isRecord(object) && Object.hasOwn(object, key) ? object[key] : undefined;
}

/** Understands a line of QEMU's. Throws a QmpError with code `Protocol` for what cannot be one. */
export function parseMessage(line: string): QmpMessage {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    throw wrong('the monitor sent what is no JSON', line, error);
  }
  if (!isRecord(value)) throw wrong('the monitor sent JSON that is no object', line);
  const message = Object.hasOwn(value, 'QMP')
    ? parseGreeting(value)
    : Object.hasOwn(value, 'event')
      ? parseEvent(value)
      : Object.hasOwn(value, 'error')
        ? parseError(value)
        : parseResult(value);
  if (!message) throw wrong('the monitor sent no message of QMP', line);
  return message;
}

function parseGreeting(value: unknown): QmpMessage | undefined {
  const greeting = own(value, 'QMP');
  const version = own(own(greeting, 'version'), 'qemu');
  const [major, minor, micro] = [own(version, 'major'), own(version, 'minor'), own(version, 'micro')];
  const capabilities = own(greeting, 'capabilities');
  if (typeof major !== 'number' || typeof minor !== 'number' || typeof micro !== 'number') return undefined;
  if (!Array.isArray(capabilities)) return undefined;
  const known = capabilities.filter((each): each is string => typeof each === 'string');
  return { kind: 'greeting', version: { major, minor, micro }, capabilities: known };
}

function parseEvent(value: unknown): QmpMessage | undefined {
  const [name, data = {}, timestamp] = [own(value, 'event'), own(value, 'data'), own(value, 'timestamp')];
  if (typeof name !== 'string' || !isRecord(data)) return undefined;
  const [seconds, microseconds] = [own(timestamp, 'seconds'), own(timestamp, 'microseconds')];
  if (typeof seconds !== 'number' || typeof microseconds !== 'number') return undefined;
  // QEMU says -1 when it has no time.
  const atMs = seconds < 0 || microseconds < 0 ? undefined : seconds * 1000 + microseconds / 1000;
  return { kind: 'event', event: { name, data, atMs } };
}

function parseError(value: unknown): QmpMessage | undefined {
  const error = own(value, 'error');
  const [id, errorClass, description] = [own(value, 'id'), own(error, 'class'), own(error, 'desc')];
  if (typeof errorClass !== 'string' || typeof description !== 'string') return undefined;
  if (id !== undefined && typeof id !== 'number') return undefined;
  return { kind: 'error', id, errorClass, description };
}

function parseResult(value: unknown): QmpMessage | undefined {
  const id = own(value, 'id');
  if (!isRecord(value) || !Object.hasOwn(value, 'return') || typeof id !== 'number') return undefined;
  return { kind: 'result', id, value: value['return'] };
}
