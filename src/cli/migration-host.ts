import { once } from 'node:events';
import { createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { type Cidr, type IpAddress, parseCidr, parseIp } from '../machinery/schema/ip.ts';
import { UserError } from './failure.ts';

const ONE = 'give one such as 10.1.0.7 or 10.1.0.0/16';

/** The address that an agent was told to have migrations arrive at. Rejects with a sentence where there is no such one. */
export async function migrationHostOf(wanted: string): Promise<string> {
  const all = Object.values(networkInterfaces()).flatMap((each) => (each ?? []).map(({ address }) => address));
  // Several devices may have the same.
  const own = [...new Set(all)];
  const host = chosenAddress(wanted, own);
  const server = createServer();
  try {
    server.listen({ host, port: 0 });
    await once(server, 'listening');
  } catch (error) {
    const has = `this machine has ${own.join(', ')}`;
    throw wrong(`nobody can listen at ${host} here (${(error as Error).message}); ${has}`, error);
  } finally {
    server.close();
  }
  return host;
}

/** The address that is meant, of a machine that has these. */
export function chosenAddress(wanted: string, own: readonly string[]): string {
  const network = parseCidr(wanted);
  if (!network) {
    const address = parseIp(wanted);
    if (address?.octets.every((octet) => octet === 0))
      throw wrong(`${wanted} is no address that other nodes reach; ${ONE}`);
    if (address) return wanted;
    throw wrong(`${wanted} is neither an address nor a network; ${ONE}`);
  }
  const inside = own.filter((address) => {
    const ip = parseIp(address);
    return ip !== undefined && isWithin(ip, network);
  });
  const [host, ...others] = inside;
  if (host === undefined) throw wrong(`this machine has no address in ${wanted}, only ${own.join(', ')}`);
  if (others.length > 0) throw wrong(`this machine has ${inside.join(' and ')} in ${wanted}; give one of them`);
  return host;
}

function isWithin({ family, octets }: IpAddress, { address, prefixLength }: Cidr): boolean {
  if (family !== address.family) return false;
  return octets.every((octet, index) => {
    const bits = Math.min(8, Math.max(0, prefixLength - index * 8));
    const mask = (0xff << (8 - bits)) & 0xff;
    return (octet & mask) === ((address.octets[index] ?? 0) & mask);
  });
}

function wrong(message: string, cause?: unknown): UserError {
  return new UserError(`--migration-address: ${message}`, { exitCode: 2, cause });
}
