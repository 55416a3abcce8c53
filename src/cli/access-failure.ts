import { readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { UserError } from './failure.ts';

/** Files of other users: what cannot be had is told in a sentence that says whose it is. */

const DENIED: ReadonlySet<unknown> = new Set(['EACCES', 'EPERM']);
/** An error is wrapped now and then, and not for ever. */
const CAUSES_MAX = 8;

/** The sentence to tell where an error, or what caused it, is that a file may not be used; undefined for all others. */
export function accessFailure(error: unknown): UserError | undefined {
  let cause: unknown = error;
  for (let depth = 0; depth < CAUSES_MAX && cause instanceof Error; depth++) {
    const { code, path } = cause as NodeJS.ErrnoException;
    if (DENIED.has(code) && path !== undefined) return new UserError(sentence(path), { cause: error });
    ({ cause } = cause);
  }
  return undefined;
}

function sentence(path: string): string {
  const owner = ownerOf(path);
  const own = process.geteuid?.();
  if (owner === undefined || owner === own)
    return `permission denied: ${path}; let yourself have it (see 'ls -ld ${path}'), or choose another --data-dir`;
  return `permission denied: ${path} is ${nameOf(owner)}'s, and you are ${nameOf(own)}; do this as ${nameOf(owner)}, or choose another --data-dir`;
}

/** Who owns a file, or the next directory above it that can be looked at. */
function ownerOf(path: string): number | undefined {
  for (let each = path; ; each = dirname(each)) {
    try {
      return statSync(each).uid;
    } catch {
      // It is not there, or cannot be looked at: whoever owns what is above it decides.
      if (each === dirname(each)) return undefined;
    }
  }
}

function nameOf(id: number | undefined): string {
  try {
    const line = readFileSync('/etc/passwd', 'utf8')
      .split('\n')
      .find((each) => each.split(':')[2] === String(id));
    return line?.split(':')[0] || `user ${id}`;
  } catch {
    // Not all systems keep names there.
    return `user ${id}`;
  }
}
