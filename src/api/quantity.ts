/**
 * Kubernetes quantities (`500m`, `1.5Gi`, `12e6`) as exact fixed-point numbers. The finest step is 1e-9, as
 * upstream; amounts are bigints because 1Ei in that unit is far beyond what a double holds.
 */

import type { Json } from './meta.ts';

/** An exact amount, and the notation it was written in, which survives arithmetic. */
export interface Quantity {
  /** In units of 1e-9. */
  readonly amount: bigint;
  readonly format: 'BinarySI' | 'DecimalSI' | 'DecimalExponent';
}

type Format = Quantity['format'];

const UNIT = 1_000_000_000n;
const UNIT_EXPONENT = 9;
/** What a binary quantity is capped at, as upstream: the largest int64. */
const BINARY_MAX = (2n ** 63n - 1n) * UNIT;
/** Longer texts are refused: nothing sensible needs them and big integers must not become work for attackers. */
const TEXT_LENGTH_MAX = 256;
/** Exponents beyond this are refused for the same reason; 1e100 is beyond any resource. */
const EXPONENT_MAX = 100;

const DECIMAL_SUFFIXES: ReadonlyMap<string, number> = new Map([
  ['n', -9],
  ['u', -6],
  ['m', -3],
  ['', 0],
  ['k', 3],
  ['M', 6],
  ['G', 9],
  ['T', 12],
  ['P', 15],
  ['E', 18],
]);
const DECIMAL_SUFFIX_BY_EXPONENT: ReadonlyMap<number, string> = new Map(
  [...DECIMAL_SUFFIXES].map(([suffix, exponent]) => [exponent, suffix]),
);
const BINARY_SUFFIXES: readonly string[] = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];

const SHAPE = /^([+-]?)([0-9]*)(?:\.([0-9]*))?([a-zA-Z]*|[eE][+-]?[0-9]+)$/;

/** The quantity of a JSON string or number; undefined for anything that is not one. */
export function parseQuantity(value: Json | undefined): Quantity | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? parseText(String(value)) : undefined;
  return typeof value === 'string' ? parseText(value) : undefined;
}

function parseText(text: string): Quantity | undefined {
  if (text.length > TEXT_LENGTH_MAX) return undefined;
  const match = SHAPE.exec(text);
  if (match === null) return undefined;
  const [, sign = '', whole = '', fraction = '', suffix = ''] = match;
  if (whole === '' && fraction === '') return undefined;
  const digits = BigInt(whole + fraction);
  const scale = -fraction.length;
  const magnitude = interpret(digits, scale, suffix);
  if (magnitude === undefined || sign !== '-') return magnitude;
  return { amount: -magnitude.amount, format: magnitude.format };
}

/** `digits` times ten to the `scale` times what the suffix stands for. */
function interpret(digits: bigint, scale: number, suffix: string): Quantity | undefined {
  const binary = suffix === '' ? -1 : BINARY_SUFFIXES.indexOf(suffix);
  if (binary > 0) {
    const amount = scaled(digits * 1024n ** BigInt(binary), scale + UNIT_EXPONENT);
    if (amount > BINARY_MAX) return { amount: BINARY_MAX, format: 'BinarySI' };
    return { amount, format: amount > 0n && amount < UNIT ? 'DecimalSI' : 'BinarySI' };
  }
  const decimal = DECIMAL_SUFFIXES.get(suffix);
  if (decimal !== undefined) return { amount: scaled(digits, scale + decimal + UNIT_EXPONENT), format: 'DecimalSI' };
  if (!/^[eE][+-]?[0-9]+$/.test(suffix)) return undefined;
  const exponent = Number(suffix.slice(1));
  if (Math.abs(exponent) > EXPONENT_MAX) return undefined;
  return { amount: scaled(digits, scale + exponent + UNIT_EXPONENT), format: 'DecimalExponent' };
}

/** Rounds up what is finer than the unit: who asks for a little gets something. */
function scaled(digits: bigint, exponent: number): bigint {
  if (exponent >= 0) return digits * 10n ** BigInt(exponent);
  const divisor = 10n ** BigInt(-exponent);
  return (digits + divisor - 1n) / divisor;
}

/** Negative, zero or positive as `left` is less than, equal to or more than `right`. */
export function compareQuantities(left: Quantity, right: Quantity): number {
  if (left.amount === right.amount) return 0;
  return left.amount < right.amount ? -1 : 1;
}

/** The sum, in the notation of `left` unless that is zero. */
export function addQuantities(left: Quantity, right: Quantity): Quantity {
  return { amount: left.amount + right.amount, format: formatOf(left, right) };
}

/** The difference, in the notation of `left` unless that is zero. */
export function subtractQuantities(left: Quantity, right: Quantity): Quantity {
  return { amount: left.amount - right.amount, format: formatOf(left, right) };
}

function formatOf(left: Quantity, right: Quantity): Format {
  return left.amount === 0n ? right.format : left.format;
}

/** The canonical form: no fraction, the largest suffix that loses nothing. */
export function formatQuantity(quantity: Quantity): string {
  const { amount } = quantity;
  if (amount === 0n) return '0';
  const magnitude = amount < 0n ? -amount : amount;
  const sign = amount < 0n ? '-' : '';
  // Small and fractional binary amounts are shown in decimal, since they have no exact binary form.
  const isBinary = quantity.format === 'BinarySI' && magnitude >= 1024n * UNIT && magnitude % UNIT === 0n;
  return sign + (isBinary ? formatBinary(magnitude / UNIT) : formatDecimal(magnitude, quantity.format));
}

function formatBinary(magnitude: bigint): string {
  let mantissa = magnitude;
  let power = 0;
  while (power < BINARY_SUFFIXES.length - 1 && mantissa % 1024n === 0n) {
    mantissa /= 1024n;
    power++;
  }
  return `${mantissa}${BINARY_SUFFIXES[power] ?? ''}`;
}

function formatDecimal(magnitude: bigint, format: Format): string {
  const exponentMax = format === 'DecimalExponent' ? Number.POSITIVE_INFINITY : 18;
  let mantissa = magnitude;
  let exponent = -UNIT_EXPONENT;
  while (mantissa % 1000n === 0n && exponent < exponentMax) {
    mantissa /= 1000n;
    exponent += 3;
  }
  if (format === 'DecimalExponent') return exponent === 0 ? `${mantissa}` : `${mantissa}e${exponent}`;
  return `${mantissa}${DECIMAL_SUFFIX_BY_EXPONENT.get(exponent) ?? ''}`;
}

/** The amount as a double, for arithmetic that may be approximate. */
export function quantityToNumber(quantity: Quantity): number {
  const whole = quantity.amount / UNIT;
  const rest = quantity.amount % UNIT;
  return Number(whole) + Number(rest) / Number(UNIT);
}
