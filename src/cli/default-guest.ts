import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Env } from '../env/ports.ts';
import { importImage } from './images.ts';
import { PACKAGE_ROOT } from './package-root.ts';

/** What the examples call it. */
const NAME = 'godwit/linux-guest:latest';
/** Where `npm start` leaves it when it has built it. */
const BUILT = fileURLToPath(new URL('dist/guest/linux', PACKAGE_ROOT));

/** Takes the small Linux guest in that was built beside this program, if one was, and it is not there yet. */
export async function importDefaultGuest(
  dataDirectory: string,
  env: Env,
  print: (line: string) => void,
): Promise<void> {
  const stamp = join(BUILT, 'stamp');
  if (!existsSync(stamp)) return;
  const marker = join(dataDirectory, 'images', 'default-guest');
  const built = readFileSync(stamp, 'utf8');
  if (existsSync(marker) && readFileSync(marker, 'utf8') === built) return;
  const sources = { file: undefined, kernel: join(BUILT, 'vmlinux'), initrd: join(BUILT, 'initramfs') };
  try {
    await importImage(NAME, sources, { dataDir: dataDirectory }, env, print);
    writeFileSync(marker, built);
  } catch (error) {
    // Everything else works without it.
    print(`The guest of the examples cannot be had: ${(error as Error).message}`);
  }
}
