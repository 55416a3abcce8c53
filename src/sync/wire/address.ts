import { isIP, isIPv6 } from 'node:net';
import { SyncError } from '../channel.ts';

/** KubeVirt's port of the synchronization controller. */
export const SYNCHRONIZATION_PORT = 9185;

export interface Address {
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
  /** `host:port` as URLs have it. */
  readonly authority: string;
}

const ADDRESS =
  /^(?:https:\/\/)?(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?))(?::(\d{1,5}))?\/?$/;

/** An address as users write it: `host:port`, `[v6]:port`, with or without `https://`. Throws `InvalidAddress` otherwise. */
export function parseAddress(text: string): Address {
  const match = ADDRESS.exec(text);
  const host = match?.[1] ?? match?.[2] ?? '';
  const port = Number(match?.[3] ?? SYNCHRONIZATION_PORT);
  const isBroken = match?.[1] !== undefined ? !isIPv6(host) : /^[\d.]+$/.test(host) && isIP(host) === 0;
  if (!match || isBroken || port < 1 || port > 65_535)
    throw new SyncError(
      'InvalidAddress',
      `${JSON.stringify(text)} is no address of a synchronization controller; give host:port, for example sync.example.com:${SYNCHRONIZATION_PORT}`,
    );
  return { host, port, authority: isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}` };
}

/** The host and port of an address in one spelling, by which two can be compared; what is no address stays as it is. */
export function hostAndPort(text: string): string {
  try {
    const { authority, port } = parseAddress(text);
    return `${new URL(`https://${authority}`).hostname}:${port}`;
  } catch {
    // Whoever dials it says what is wrong with it.
    return text;
  }
}
