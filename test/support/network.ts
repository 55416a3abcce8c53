import { networkInterfaces } from 'node:os';

/** An address of this machine that is not loopback, which Endpoints may not hold; says so where there is none. */
export function outerAddress(what: string): string | undefined {
  const all = Object.values(networkInterfaces()).flat();
  const address = all.find((each) => each !== undefined && !each.internal && each.family === 'IPv4')?.address;
  // oxlint-disable-next-line no-console -- whoever reads the results should know what was left out
  if (address === undefined) console.log(`left out: ${what} needs an address that is not loopback`);
  return address;
}
