import { type Cidr, formatIp, type IpAddress, isIpv4Mapped, parseCidr, parseIp } from '../schema/ip.ts';
import { parseRequestUri, type RequestUri } from '../schema/uri.ts';
import { evaluationError } from './budget.ts';
import { type Overload, overload } from './functions.ts';
import { ArrayList, EntryMap, OpaqueValue, type Value } from './values.ts';

/** URLs, IP addresses and networks. */

class UrlValue extends OpaqueValue {
  readonly typeName = 'kubernetes.URL';
  readonly text: string;
  readonly uri: RequestUri;

  constructor(text: string, uri: RequestUri) {
    super();
    this.text = text;
    this.uri = uri;
  }

  equals(other: OpaqueValue): boolean {
    return other instanceof UrlValue && other.text === this.text;
  }
}

class IpValue extends OpaqueValue {
  readonly typeName = 'net.IP';
  readonly address: IpAddress;

  constructor(address: IpAddress) {
    super();
    this.address = address;
  }

  equals(other: OpaqueValue): boolean {
    return other instanceof IpValue && formatIp(other.address) === formatIp(this.address);
  }
}

class CidrValue extends OpaqueValue {
  readonly typeName = 'net.CIDR';
  readonly cidr: Cidr;

  constructor(cidr: Cidr) {
    super();
    this.cidr = cidr;
  }

  equals(other: OpaqueValue): boolean {
    return other instanceof CidrValue && formatCidr(other.cidr) === formatCidr(this.cidr);
  }
}

function parseUrl(text: string): UrlValue | undefined {
  // The fragment is no part of what is asked for, and would end up in the path or the query.
  const hash = text.indexOf('#');
  const uri = parseRequestUri(hash < 0 ? text : text.slice(0, hash));
  return uri && new UrlValue(text, uri);
}

function urlOf(value: Value | undefined): RequestUri {
  return (value as UrlValue).uri;
}

function queryOf(uri: RequestUri): EntryMap {
  const values = new Map<string, string[]>();
  for (const [name, value] of new URLSearchParams(uri.query)) {
    const list = values.get(name) ?? [];
    list.push(value);
    values.set(name, list);
  }
  const map = new EntryMap();
  for (const [name, list] of values) map.set(name, new ArrayList(list));
  return map;
}

/** Addresses in one spelling only: no zones, and IPv4 not dressed up as IPv6. */
function strictIp(text: string): IpAddress | undefined {
  const address = parseIp(text);
  return address && address.zone === '' && !isIpv4Mapped(address) ? address : undefined;
}

function strictCidr(text: string): Cidr | undefined {
  const cidr = parseCidr(text);
  return cidr && !isIpv4Mapped(cidr.address) ? cidr : undefined;
}

function ipOf(text: string): IpValue {
  const address = strictIp(text);
  if (!address) throw evaluationError(`IP Address ${JSON.stringify(text)} parse error during conversion from string`);
  return new IpValue(address);
}

function cidrOf(text: string): CidrValue {
  const cidr = strictCidr(text);
  if (!cidr) throw evaluationError('network address parse error during conversion from string');
  return new CidrValue(cidr);
}

function formatCidr(cidr: Cidr): string {
  return `${formatIp(cidr.address)}/${cidr.prefixLength}`;
}

/** The address with all bits after the prefix cleared. */
function masked(address: IpAddress, prefixLength: number): IpAddress {
  const octets = address.octets.map((octet, index) => {
    const bits = Math.min(8, Math.max(0, prefixLength - index * 8));
    return octet & (0xff << (8 - bits));
  });
  return { ...address, octets };
}

function containsIp(cidr: Cidr, address: IpAddress): boolean {
  if (cidr.address.family !== address.family) return false;
  return formatIp(masked(cidr.address, cidr.prefixLength)) === formatIp(masked(address, cidr.prefixLength));
}

function containsCidr(outer: Cidr, inner: Cidr): boolean {
  return outer.prefixLength <= inner.prefixLength && containsIp(outer, inner.address);
}

function isIn(address: IpAddress, ...networks: readonly string[]): boolean {
  return networks.some((network) => containsIp(cidrOf(network).cidr, address));
}

function isGlobalUnicast(address: IpAddress): boolean {
  const text = formatIp(address);
  return (
    text !== '255.255.255.255' &&
    !isIn(
      address,
      '0.0.0.0/32',
      '::/128',
      '127.0.0.0/8',
      '::1/128',
      '224.0.0.0/4',
      'ff00::/8',
      '169.254.0.0/16',
      'fe80::/10',
    )
  );
}

function urls(): Overload[] {
  return [
    overload('url(string): URL', ([text]) => {
      const url = parseUrl(text as string);
      if (!url) throw evaluationError(`URL parse error during conversion from string: parse ${JSON.stringify(text)}`);
      return url;
    }),
    overload('isURL(string): bool', ([text]) => parseUrl(text as string) !== undefined),
    overload('URL.getScheme(): string', ([url]) => urlOf(url).scheme),
    overload('URL.getHost(): string', ([url]) => urlOf(url).host),
    overload('URL.getHostname(): string', ([url]) => urlOf(url).hostname),
    overload('URL.getPort(): string', ([url]) => urlOf(url).port),
    overload('URL.getEscapedPath(): string', ([url]) => urlOf(url).path),
    overload('URL.getQuery(): map(string, list(string))', ([url]) => queryOf(urlOf(url))),
  ];
}

function addresses(): Overload[] {
  const test = (name: string, decide: (address: IpAddress) => boolean): Overload =>
    overload(`IP.${name}(): bool`, ([ip]) => decide((ip as IpValue).address));
  return [
    overload('ip(string): IP', ([text]) => ipOf(text as string)),
    overload('isIP(string): bool', ([text]) => strictIp(text as string) !== undefined),
    overload('ip.isCanonical(string): bool', ([text]) => formatIp(ipOf(text as string).address) === text),
    overload('IP.family(): int', ([ip]) => BigInt((ip as IpValue).address.family)),
    test('isUnspecified', (address) => isIn(address, '0.0.0.0/32', '::/128')),
    test('isLoopback', (address) => isIn(address, '127.0.0.0/8', '::1/128')),
    test('isLinkLocalMulticast', (address) => isIn(address, '224.0.0.0/24', 'ff02::/16')),
    test('isLinkLocalUnicast', (address) => isIn(address, '169.254.0.0/16', 'fe80::/10')),
    test('isGlobalUnicast', isGlobalUnicast),
    overload('string(IP): string', ([ip]) => formatIp((ip as IpValue).address)),
  ];
}

function networks(): Overload[] {
  const of = (value: Value | undefined): Cidr => (value as CidrValue).cidr;
  return [
    overload('cidr(string): CIDR', ([text]) => cidrOf(text as string)),
    overload('isCIDR(string): bool', ([text]) => strictCidr(text as string) !== undefined),
    overload('CIDR.containsIP(string): bool', ([cidr, ip]) => containsIp(of(cidr), ipOf(ip as string).address)),
    overload('CIDR.containsIP(IP): bool', ([cidr, ip]) => containsIp(of(cidr), (ip as IpValue).address)),
    overload('CIDR.containsCIDR(string): bool', ([cidr, other]) =>
      containsCidr(of(cidr), cidrOf(other as string).cidr),
    ),
    overload('CIDR.containsCIDR(CIDR): bool', ([cidr, other]) => containsCidr(of(cidr), of(other))),
    overload('CIDR.ip(): IP', ([cidr]) => new IpValue(of(cidr).address)),
    overload('CIDR.prefixLength(): int', ([cidr]) => BigInt(of(cidr).prefixLength)),
    overload('CIDR.masked(): CIDR', ([value]) => {
      const cidr = of(value);
      return new CidrValue({ ...cidr, address: masked(cidr.address, cidr.prefixLength) });
    }),
    overload('string(CIDR): string', ([cidr]) => formatCidr(of(cidr))),
  ];
}

export const networkFunctions: readonly Overload[] = [...urls(), ...addresses(), ...networks()];
