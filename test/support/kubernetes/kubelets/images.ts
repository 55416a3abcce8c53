import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { layerOf, ociArchive } from '../../oci-archive.ts';
import { PAUSE_IMAGE } from './settings.ts';

const run = promisify(execFile);
const script = fileURLToPath(new URL('../../../../scripts/image.mjs', import.meta.url));

/** Waits for signals, of which any ends it, and leaves nobody behind whom it inherits. */
const PAUSE = `
  #include <signal.h>
  #include <unistd.h>
  static void end(int signal) { _exit(0); }
  int main(void) {
    signal(SIGTERM, end);
    signal(SIGINT, end);
    signal(SIGCHLD, SIG_IGN);
    for (;;) pause();
  }`;

/** Makes the image of all components, as an admin does it; answers what the script says of it. */
export async function buildImage(archive: string, name: string): Promise<string> {
  return (await run(process.execPath, [script, archive, '--name', name])).stdout;
}

/** Makes the image of what holds a pod's namespaces; answers the path of its archive. */
export async function buildPauseImage(directory: string): Promise<string> {
  const below = mkdtempSync(join(directory, 'pause-'));
  const files = join(below, 'files');
  mkdirSync(files);
  writeFileSync(join(below, 'pause.c'), PAUSE);
  await run('gcc', ['-static', '-Os', '-o', join(files, 'pause'), join(below, 'pause.c')]);
  const archive = join(below, 'pause.tar');
  const image = { name: PAUSE_IMAGE, layers: [layerOf(files)], config: { Cmd: ['/pause'] }, createdBy: 'a test' };
  writeFileSync(archive, ociArchive(join(below, 'image'), image));
  return archive;
}
