import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { say } from './say.ts';

/** An address of this machine that is not loopback, which Endpoints may not hold; says so where there is none. */
export function outerAddress(what: string): string | undefined {
  const all = Object.values(networkInterfaces()).flat();
  const address = all.find((each) => each !== undefined && !each.internal && each.family === 'IPv4')?.address;
  if (address === undefined) say(`left out: ${what} needs an address that is not loopback`);
  return address;
}

/** A port that nothing listens on; somebody else may still be quicker. */
export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return port;
}

/** So many of them. Where processes have a network of their own, all are free. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map((server) => once(server, 'listening')));
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  for (const server of servers) server.close();
  await Promise.all(servers.map((server) => once(server, 'close')));
  return ports;
}
