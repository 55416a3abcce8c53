import { networkInterfaces } from 'node:os';
import { say } from './say.ts';

/** An address of this machine that is not loopback, which Endpoints may not hold; says so where there is none. */
export function outerAddress(what: string): string | undefined {
  const all = Object.values(networkInterfaces()).flat();
  const address = all.find((each) => each !== undefined && !each.internal && each.family === 'IPv4')?.address;
  if (address === undefined) say(`left out: ${what} needs an address that is not loopback`);
  return address;
}
