// What a run of tests may write into, and what is started in it: both end with the run, however that ends.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const GUARD = fileURLToPath(new URL('run-guard.mjs', import.meta.url));

/** A directory for a run, which is to have it as its TMPDIR, and what ends all of that. */
export function openScratch() {
  const directory = mkdtempSync(join(tmpdir(), 'godwit-test-'));
  // In a session of its own: what ends this process, or its group, has the guard begin.
  const guard = spawn(process.execPath, [GUARD, directory], { stdio: ['pipe', 'ignore', 'inherit'], detached: true });
  const ended = once(guard, 'exit');
  const close = async () => {
    guard.stdin.end();
    await ended;
  };
  return { directory, close };
}
