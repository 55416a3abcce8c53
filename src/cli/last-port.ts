import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The port that a data directory was last served on, so that kubeconfigs given out keep working. */

/** Undefined on a first start, or where the file is unreadable: then the default will do. */
export function readLastPort(directory: string): number | undefined {
  try {
    const port = Number(readFileSync(join(directory, 'port'), 'utf8'));
    return Number.isInteger(port) && port > 0 && port < 65_536 ? port : undefined;
  } catch {
    // Nothing was remembered.
    return undefined;
  }
}

export function rememberPort(directory: string, port: number): void {
  writeFileSync(join(directory, 'port'), `${port}\n`, { mode: 0o600 });
}
