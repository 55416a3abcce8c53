import { SANDBOX } from '../qemu/command-line.ts';

/**
 * Whoever reaches a launcher can have a machine started, and nothing else: QEMU starts no other program from its sandbox, and gets
 * none of the options that load code, read more options, or change who it runs as; pure.
 */

const FLAGS: ReadonlySet<string> = new Set(['-S', '-nodefaults', '-no-user-config']);

/** Options of our machines, each followed by a value. */
const OPTIONS: ReadonlySet<string> = new Set([
  '-name',
  '-uuid',
  '-smbios',
  '-display',
  '-action',
  '-sandbox',
  '-machine',
  '-accel',
  '-cpu',
  '-smp',
  '-m',
  '-object',
  '-msg',
  '-chardev',
  '-mon',
  '-serial',
  '-kernel',
  '-initrd',
  '-append',
  '-device',
  '-blockdev',
  '-netdev',
  '-incoming',
]);

/** Of these, the one value that each has. */
const VALUES: ReadonlyMap<string, string> = new Map([
  ['-sandbox', SANDBOX],
  ['-incoming', 'defer'],
]);

/** Throws unless these are the arguments of a machine of ours. */
export function checkArguments(args: readonly string[]): void {
  const used = new Set<string>();
  for (let index = 0; index < args.length; index++) {
    const option = args[index] ?? '';
    if (FLAGS.has(option)) continue;
    const value = args[++index];
    if (!OPTIONS.has(option) || value === undefined) throw new Error(`QEMU is not started with ${option}`);
    if (value !== (VALUES.get(option) ?? value)) throw new Error(`QEMU is not started with ${option} ${value}`);
    used.add(option);
  }
  if (!used.has('-sandbox')) throw new Error('QEMU is not started without -sandbox');
}
