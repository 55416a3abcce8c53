import { dnsLabelErrors, dnsSubdomainErrors } from '../../api/names.ts';
import { parseQuantity } from '../../api/quantity.ts';
import { parseGoDuration } from './duration.ts';
import { parseCidr, parseIp } from './ip.ts';
import { parseDate, parseRfc3339 } from './time.ts';
import { parseRequestUri } from './uri.ts';

/**
 * The string formats that Kubernetes checks; others mean nothing to validation. Custom resources know strfmt's
 * formats; built-in kinds are read by Go types, which are stricter (RFC 3339 times, Go durations).
 */

export type FormatCheck = (value: string) => boolean;

const customFormats: ReadonlyMap<string, FormatCheck> = new Map([
  ['bsonobjectid', (value) => /^[0-9a-fA-F]{24}$/.test(value)],
  ['byte', (value) => value !== '' && isBase64(value)],
  ['cidr', (value) => parseCidr(value, true) !== undefined],
  ['creditcard', isCreditCard],
  ['date', (value) => parseDate(value) !== undefined],
  ['datetime', isDateTime],
  ['duration', isDuration],
  ['email', isEmail],
  ['hexcolor', (value) => /^#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})$/.test(value)],
  ['hostname', isHostname],
  ['ipv4', (value) => value.includes('.') && parseIp(value, true) !== undefined],
  ['ipv6', (value) => value.includes(':') && parseIp(value, true)?.zone === ''],
  ['isbn', (value) => isIsbn10(value) || isIsbn13(value)],
  ['isbn10', isIsbn10],
  ['isbn13', isIsbn13],
  ['k8slongname', (value) => dnsSubdomainErrors(value).length === 0],
  ['k8sshortname', (value) => dnsLabelErrors(value).length === 0],
  ['mac', isMac],
  ['rgbcolor', (value) => /^rgb\(\s*\d{1,3}\s*,\s*\d{1,3}\s*,\s*\d{1,3}\s*\)$/.test(value)],
  ['ssn', (value) => /^\d{3}[- ]?\d{2}[- ]?\d{4}$/.test(value)],
  ['uri', (value) => parseRequestUri(value) !== undefined],
  ['uuid', uuidCheck('[0-9a-f]', '[0-9a-f]')],
  ['uuid3', uuidCheck('3', '[0-9a-f]')],
  ['uuid4', uuidCheck('4', '[89ab]')],
  ['uuid5', uuidCheck('5', '[89ab]')],
]);

const builtinFormats: ReadonlyMap<string, FormatCheck> = new Map([
  ...customFormats,
  ['byte', isBase64],
  ['datetime', (value) => parseRfc3339(value) !== undefined],
  ['microtime', (value) => parseRfc3339(value) !== undefined],
  ['duration', (value) => parseGoDuration(value) !== undefined],
  ['quantity', (value) => parseQuantity(value) !== undefined],
]);

/** The check behind a format of strings; undefined where the format is unknown and thus ignored. */
export function formatCheck(format: string, builtin: boolean): FormatCheck | undefined {
  return (builtin ? builtinFormats : customFormats).get(format.replaceAll('-', ''));
}

function uuidCheck(version: string, variant: string): FormatCheck {
  const pattern = new RegExp(
    `^[0-9a-f]{8}-?[0-9a-f]{4}-?${version}[0-9a-f]{3}-?${variant}[0-9a-f]{3}-?[0-9a-f]{12}$`,
    'i',
  );
  return (value) => pattern.test(value);
}

/** Whether a text is base64, with its padding. By hand: secrets are large, and a regular expression with a group per four letters would fill its stack. */
export function isBase64(value: string): boolean {
  const { length } = value;
  if (length % 4 !== 0) return false;
  let end = length;
  while (end > length - 2 && end > 0 && value.charCodeAt(end - 1) === 0x3d) end--;
  for (let index = 0; index < end; index++) {
    const code = value.charCodeAt(index);
    const isLetter = (code >= 0x41 && code <= 0x5a) || (code >= 0x61 && code <= 0x7a);
    if (!isLetter && !(code >= 0x2f && code <= 0x39) && code !== 0x2b) return false;
  }
  return true;
}

/** As strfmt's date-time: the offset's numbers are not checked. */
function isDateTime(value: string): boolean {
  const split = value.search(/[tT]/);
  if (split < 0 || parseDate(value.slice(0, split)) === undefined) return false;
  const match = /^(\d{2}):(\d{2}):(\d{2})(?:.\d+)?(?:z|[+-]\d{2}:\d{2})$/i.exec(value.slice(split + 1));
  return match !== null && Number(match[1]) <= 23 && Number(match[2]) <= 59 && Number(match[3]) <= 59;
}

const SCALA_UNIT = /^(?:ns|nano|us|µs|micro|ms|milli|s|sec|m|min|h|hr|hour|d|day|w|wk|week)/i;

/** Go's durations, and Scala's such as `22 nanoseconds`. */
function isDuration(value: string): boolean {
  if (parseGoDuration(value) !== undefined) return true;
  const match = /\d\s*([A-Za-zµ]+)/.exec(value);
  return match !== null && SCALA_UNIT.test(match[1] ?? '');
}

function isEmail(value: string): boolean {
  const bracketed = /^[^<>]*<([^<>]+)>$/.exec(value);
  const address = bracketed?.[1] ?? value;
  const at = address.lastIndexOf('@');
  const [local, domain] = [address.slice(0, at), address.slice(at + 1)];
  const isQuoted = local.length > 2 && local.startsWith('"') && local.endsWith('"');
  return at > 0 && (isQuoted || isDotAtom(local)) && isDotAtom(domain);
}

function isDotAtom(text: string): boolean {
  return text.split('.').every((atom) => /^(?:[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]|\P{ASCII})+$/u.test(atom));
}

function isHostname(value: string): boolean {
  if (value.length > 255) return false;
  const labels = value.split('.');
  const isFit = labels.every(
    (label) => label.length <= 63 && /^[\p{L}\p{S}0-9](?:[\p{L}\p{S}0-9-]*[\p{L}\p{S}0-9])?$/u.test(label),
  );
  return isFit && (labels.length === 1 || /^\p{L}{2,63}$/u.test(labels.at(-1) ?? ''));
}

function isMac(value: string): boolean {
  const octets = /^[0-9a-fA-F]{2}([:-])(?:[0-9a-fA-F]{2}\1)*[0-9a-fA-F]{2}$/.test(value) ? value.length / 3 + 1 / 3 : 0;
  const dotted = /^[0-9a-fA-F]{4}(?:\.[0-9a-fA-F]{4})+$/.test(value) ? ((value.length + 1) / 5) * 2 : 0;
  return [6, 8, 20].includes(Math.round(octets || dotted));
}

function isCreditCard(value: string): boolean {
  const digits = value.replaceAll(/[^0-9]+/g, '');
  const shape =
    /^(?:4\d{12}(?:\d{3})?|5[1-5]\d{14}|6(?:011|5\d\d)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|(?:2131|1800|35\d{3})\d{11})$/;
  if (!shape.test(digits)) return false;
  let sum = 0;
  for (let place = 0; place < digits.length; place++) {
    const digit = Number(digits[digits.length - 1 - place]);
    const weighted = place % 2 === 0 ? digit : digit * 2;
    sum += weighted > 9 ? weighted - 9 : weighted;
  }
  return sum % 10 === 0;
}

function isIsbn10(value: string): boolean {
  const digits = value.replaceAll(/[\s-]+/g, '');
  if (!/^\d{9}[\dX]$/.test(digits)) return false;
  let sum = 0;
  for (let place = 0; place < 10; place++) sum += (place + 1) * (digits[place] === 'X' ? 10 : Number(digits[place]));
  return sum % 11 === 0;
}

function isIsbn13(value: string): boolean {
  const digits = value.replaceAll(/[\s-]+/g, '');
  if (!/^\d{13}$/.test(digits)) return false;
  let sum = 0;
  for (let place = 0; place < 13; place++) sum += Number(digits[place]) * (place % 2 === 0 ? 1 : 3);
  return sum % 10 === 0;
}
