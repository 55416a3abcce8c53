/** IP addresses and CIDRs, read as Go's net and netip packages read them. */

export interface IpAddress {
  readonly family: 4 | 6;
  /** 4 or 16 octets. */
  readonly octets: Uint8Array;
  readonly zone: string;
}

export interface Cidr {
  readonly address: IpAddress;
  readonly prefixLength: number;
}

/** Parses an address. Leading zeros of IPv4 octets are accepted only where old objects may carry them (`sloppy`). */
export function parseIp(text: string, sloppy = false): IpAddress | undefined {
  if (!text.includes(':')) {
    const octets = parseIpv4(text, sloppy);
    return octets && { family: 4, octets, zone: '' };
  }
  const percent = text.indexOf('%');
  const zone = percent < 0 ? '' : text.slice(percent + 1);
  if (percent >= 0 && zone === '') return undefined;
  const octets = parseIpv6(percent < 0 ? text : text.slice(0, percent), sloppy);
  return octets && { family: 6, octets, zone };
}

/** Parses `address/length`; zones are refused. */
export function parseCidr(text: string, sloppy = false): Cidr | undefined {
  const slash = text.lastIndexOf('/');
  if (slash < 0) return undefined;
  const address = parseIp(text.slice(0, slash), sloppy);
  const length = text.slice(slash + 1);
  if (!address || address.zone !== '' || !/^(0|[1-9][0-9]{0,2})$/.test(length)) return undefined;
  const prefixLength = Number(length);
  return prefixLength <= address.octets.length * 8 ? { address, prefixLength } : undefined;
}

/** The address in its one canonical spelling (RFC 5952 for IPv6). */
export function formatIp(address: IpAddress): string {
  if (address.family === 4) return address.octets.join('.');
  const groups: number[] = [];
  for (let index = 0; index < 16; index += 2) {
    groups.push(((address.octets[index] ?? 0) << 8) | (address.octets[index + 1] ?? 0));
  }
  const zone = address.zone === '' ? '' : `%${address.zone}`;
  if (isIpv4Mapped(address)) return `::ffff:${address.octets.slice(12).join('.')}${zone}`;
  const [start, length] = longestZeros(groups);
  const spelled = groups.map((group) => group.toString(16));
  if (length < 2) return spelled.join(':') + zone;
  return `${spelled.slice(0, start).join(':')}::${spelled.slice(start + length).join(':')}${zone}`;
}

/** Whether this is an IPv4 address written as IPv6 (`::ffff:1.2.3.4`). */
export function isIpv4Mapped(address: IpAddress): boolean {
  if (address.family === 4) return false;
  return address.octets.every((octet, index) => index >= 12 || octet === (index < 10 ? 0 : 0xff));
}

function parseIpv4(text: string, sloppy: boolean): Uint8Array | undefined {
  const parts = text.split('.', 5);
  if (parts.length !== 4) return undefined;
  const octets = new Uint8Array(4);
  for (const [index, part] of parts.entries()) {
    if (!/^[0-9]+$/.test(part) || Number(part) > 255) return undefined;
    if (!sloppy && part.length > 1 && part.startsWith('0')) return undefined;
    octets[index] = Number(part);
  }
  return octets;
}

function parseIpv6(text: string, sloppy: boolean): Uint8Array | undefined {
  const gap = text.indexOf('::');
  if (gap < 0) {
    const octets = parseGroups(text, sloppy);
    return octets?.length === 16 ? Uint8Array.from(octets) : undefined;
  }
  const head = parseGroups(text.slice(0, gap), sloppy, gap === 0);
  const tailText = text.slice(gap + 2);
  const tail = parseGroups(tailText, sloppy, tailText === '');
  // The gap stands for at least one group.
  if (!head || !tail || head.length + tail.length > 14) return undefined;
  const octets = new Uint8Array(16);
  octets.set(head, 0);
  octets.set(tail, 16 - tail.length);
  return octets;
}

function parseGroups(text: string, sloppy: boolean, mayBeEmpty = false): number[] | undefined {
  if (text === '') return mayBeEmpty ? [] : undefined;
  const octets: number[] = [];
  const groups = text.split(':', 9);
  for (const [index, group] of groups.entries()) {
    if (index === groups.length - 1 && group.includes('.')) {
      const ipv4 = parseIpv4(group, sloppy);
      if (!ipv4) return undefined;
      octets.push(...ipv4);
    } else {
      if (!/^[0-9a-fA-F]{1,4}$/.test(group)) return undefined;
      const value = Number.parseInt(group, 16);
      octets.push(value >> 8, value & 0xff);
    }
  }
  return octets;
}

function longestZeros(groups: readonly number[]): [start: number, length: number] {
  let best: [number, number] = [0, 0];
  let start = 0;
  for (let index = 0; index <= groups.length; index++) {
    if (groups[index] === 0) continue;
    if (index - start > best[1]) best = [start, index - start];
    start = index + 1;
  }
  return best;
}
