/** A double as Go's strconv writes it with 'g': exponents below 1e-4 and from 1e6 on, of two digits at least. */
export function formatDouble(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf';
  if (Object.is(value, -0)) return '-0';
  const magnitude = Math.abs(value);
  if (magnitude !== 0 && (magnitude < 1e-4 || magnitude >= 1e6)) return widenExponent(value.toExponential());
  return String(value);
}

/** JavaScript's `1e-7` as Go's `1e-07`. */
export function widenExponent(text: string): string {
  return text.replace(/e([+-])([0-9])$/, 'e$10$2');
}

/** A finite double without an exponent, however large or small. */
export function plainDouble(value: number): string {
  const text = String(value);
  if (!text.includes('e')) return text;
  const [mantissa = '', exponent = '0'] = text.split('e');
  const sign = mantissa.startsWith('-') ? '-' : '';
  const [whole = '', fraction = ''] = mantissa.replace('-', '').split('.');
  const shift = Number(exponent);
  if (shift < 0) return `${sign}0.${'0'.repeat(-shift - 1)}${whole}${fraction}`;
  return `${sign}${whole}${fraction}${'0'.repeat(shift - fraction.length)}`;
}

/** `%f`: a fixed number of digits, ties to even, thousands apart as Kubernetes' formatting has them. */
export function fixedDouble(value: number, digits: number): string {
  if (!Number.isFinite(value)) return spellInfinite(value);
  const [whole = '', fraction] = roundedToEven(value, digits).split('.');
  const grouped = whole.replaceAll(/\B(?=(?:[0-9]{3})+$)/g, ',');
  return fraction === undefined ? grouped : `${grouped}.${fraction}`;
}

function roundedToEven(value: number, digits: number): string {
  const scaled = value * 10 ** digits;
  const isTie = digits <= 15 && Math.abs(scaled) < 2 ** 52 && Math.abs(scaled % 1) === 0.5;
  if (!isTie) return value.toFixed(digits);
  const floor = Math.floor(scaled);
  return ((floor % 2 === 0 ? floor : floor + 1) / 10 ** digits).toFixed(digits);
}

const SUPERSCRIPTS = '⁰¹²³⁴⁵⁶⁷⁸⁹';

/** `%e`: a mantissa and a power of ten, as Kubernetes' formatting writes it (`1.5×10⁰³`). */
export function scientificDouble(value: number, digits: number): string {
  if (!Number.isFinite(value)) return spellInfinite(value);
  const [mantissa = '', exponent = ''] = value.toExponential(digits).split('e');
  const power = exponent.replace(/^[+-]/, '').padStart(2, '0');
  const raised = power.replaceAll(/[0-9]/g, (digit) => SUPERSCRIPTS[Number(digit)] ?? digit);
  return `${mantissa}×10${exponent.startsWith('-') ? '⁻' : ''}${raised}`;
}

function spellInfinite(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  return value > 0 ? '∞' : '-∞';
}
