/** Addresses, as far as validation needs to understand them. */

import { type FieldError, invalid } from '../../field-error.ts';

/** 4 or 6 for a well-formed address, undefined otherwise. */
export function ipFamily(text: string): 4 | 6 | undefined {
  if (isIpv4(text)) return 4;
  return isIpv6(text) ? 6 : undefined;
}

function isIpv4(text: string): boolean {
  const octets = text.split('.');
  return octets.length === 4 && octets.every((octet) => /^(0|[1-9][0-9]{0,2})$/.test(octet) && Number(octet) <= 255);
}

function isIpv6(text: string): boolean {
  const halves = text.split('::');
  if (halves.length > 2 || text.length > 45) return false;
  const groups = halves.map((half) => (half === '' ? [] : half.split(':')));
  const last = groups.at(-1)?.at(-1);
  let count = groups.reduce((total, group) => total + group.length, 0);
  if (last !== undefined && isIpv4(last)) {
    groups.at(-1)?.pop();
    count += 1;
  }
  const isHex = groups.flat().every((group) => /^[0-9a-fA-F]{1,4}$/.test(group));
  return isHex && (halves.length === 2 ? count <= 7 : count === 8);
}

/** What is wrong with an address at `path`. */
export function ipErrors(address: string, path: string): FieldError[] {
  if (ipFamily(address) !== undefined) return [];
  return [invalid(path, address, 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)')];
}

/** 4 or 6 for a well-formed range such as 10.0.0.0/8, undefined otherwise. */
export function cidrFamily(text: string): 4 | 6 | undefined {
  const [address = '', bits = '', ...rest] = text.split('/');
  const family = ipFamily(address);
  if (family === undefined || rest.length > 0 || !/^(0|[1-9][0-9]{0,2})$/.test(bits)) return undefined;
  return Number(bits) <= (family === 4 ? 32 : 128) ? family : undefined;
}

/** What is wrong with a range at `path`. */
export function cidrErrors(range: string, path: string): FieldError[] {
  if (cidrFamily(range) !== undefined) return [];
  return [invalid(path, range, 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)')];
}

/** Refuses more than one of a family, and more than two in all; `values` are families of well-formed ones. */
export function isOnePerFamily(families: readonly (4 | 6 | undefined)[]): boolean {
  return families.length < 2 || (families.length === 2 && families[0] !== families[1]);
}
