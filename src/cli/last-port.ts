import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';

/** The ports that a data directory was last served on, so that what was told of them stays true. */

const API_FILE = 'port';

/** Undefined on a first start, or where the file is unreadable: then the default will do. */
export function readLastPort(directory: string, file = API_FILE): number | undefined {
  try {
    const port = Number(readFileSync(join(directory, file), 'utf8'));
    return Number.isInteger(port) && port > 0 && port < 65_536 ? port : undefined;
  } catch {
    // Nothing was remembered.
    return undefined;
  }
}

export function rememberPort(directory: string, port: number, file = API_FILE): void {
  writeFileSync(join(directory, file), `${port}\n`, { mode: 0o600 });
}

/** A port of this machine that is free: the one that was used before, if it is, or else the one that would be best. */
export async function usualPort(directory: string, file: string, best = 0): Promise<number> {
  const port = (await freePort(readLastPort(directory, file) ?? best)) ?? (await freePort(0)) ?? 0;
  rememberPort(directory, port, file);
  return port;
}

async function freePort(wanted: number): Promise<number | undefined> {
  const server = createServer().listen(wanted, '127.0.0.1');
  try {
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  } catch {
    // Somebody else has it.
    return undefined;
  } finally {
    server.close();
  }
}
