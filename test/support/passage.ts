import { chmodSync, mkdtempSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

const SHORT = '/tmp';

/**
 * Makes a directory that others than we may pass through, as QEMU has to, which runs as somebody else; short to name, as sockets demand.
 * It is linked from where the run has its own, whose guard ends what is left in both.
 */
export function passageDirectory(): string {
  const directory = mkdtempSync(join(SHORT, 'gw-'));
  chmodSync(directory, 0o711);
  if (tmpdir() !== SHORT) symlinkSync(directory, join(tmpdir(), basename(directory)));
  return directory;
}
