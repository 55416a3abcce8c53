import { chmodSync, mkdtempSync, symlinkSync } from 'node:fs';
import { basename, join } from 'node:path';

/**
 * Makes a directory that others than we may pass through, as QEMU has to, which runs as somebody else; short to name, as sockets demand.
 * It is linked from where the run of this test has its own, whose guard ends what is left in both.
 */
export function passageDirectory(): string {
  const directory = mkdtempSync('/tmp/gw-');
  chmodSync(directory, 0o711);
  const scratch = process.env['GODWIT_TEST_SCRATCH'];
  if (scratch !== undefined) symlinkSync(directory, join(scratch, basename(directory)));
  return directory;
}
