import { BlockList, isIP } from 'node:net';
import type { Address } from './address.ts';

/**
 * Which addresses are dialed, as administrators list them, one a line: a name, `*.` and a domain, an IP address, or a
 * subnet (`10.2.0.0/16`), each perhaps with a port (`:9185`, `[fd00::1]:9185`); `#` begins a comment.
 */

const RULE =
  /^(?:\[([0-9a-fA-F:.]+(?:\/\d{1,3})?)\]|([^\s:[\]]+)|([0-9a-fA-F:.]*:[0-9a-fA-F:.]*:[0-9a-fA-F:./]*))(?::(\d{1,5}))?$/;
const NAME = /^(?:\*\.)?[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?$/;

type Rule = (address: Address) => boolean;

export interface AddressRules {
  /** Whether one of the rules allows it. */
  allow(address: Address): boolean;
  /** What was listed and makes no sense; it allows nothing. */
  readonly broken: readonly string[];
}

/** The rules of a list. An empty one allows nothing. */
export function parseAddressRules(text: string): AddressRules {
  const lines = text.split(/[\n,]/).map((line) => line.replace(/#.*$/, '').trim());
  const [rules, broken]: [Rule[], string[]] = [[], []];
  for (const line of lines) {
    if (line === '') continue;
    const rule = ruleOf(line);
    if (rule) rules.push(rule);
    else broken.push(line);
  }
  return { broken, allow: (address) => rules.some((rule) => rule(address)) };
}

function ruleOf(line: string): Rule | undefined {
  const match = RULE.exec(line);
  const host = match?.[1] ?? match?.[2] ?? match?.[3] ?? '';
  const port = match?.[4] === undefined ? undefined : Number(match[4]);
  const isHost = match?.[1] === undefined || isIP(host.split('/', 1)[0] ?? '') === 6 ? hostRule(host) : undefined;
  if (!isHost || (port !== undefined && (port < 1 || port > 65_535))) return undefined;
  return (address) => isHost(address.host) && (port === undefined || port === address.port);
}

function hostRule(host: string): ((other: string) => boolean) | undefined {
  const [start = '', prefix] = host.split('/');
  const version = isIP(start);
  if (version !== 0) return subnetRule(start, version === 6 ? 'ipv6' : 'ipv4', prefix);
  // What looks like an address and is none is not taken for a name.
  if (!NAME.test(host) || /^[\d.]+$/.test(host)) return undefined;
  const name = host.toLowerCase();
  if (!name.startsWith('*.')) return (other) => other.toLowerCase() === name;
  return (other) => isIP(other) === 0 && other.toLowerCase().endsWith(name.slice(1)) && other.length > name.length - 1;
}

function subnetRule(
  start: string,
  family: 'ipv4' | 'ipv6',
  prefix: string | undefined,
): ((other: string) => boolean) | undefined {
  const most = family === 'ipv6' ? 128 : 32;
  const bits = prefix === undefined ? most : Number(prefix);
  if (!Number.isInteger(bits) || bits < 0 || bits > most || prefix === '') return undefined;
  const list = new BlockList();
  list.addSubnet(start, bits, family);
  return (other) => isIP(other) !== 0 && list.check(other, isIP(other) === 6 ? 'ipv6' : 'ipv4');
}
