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
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
