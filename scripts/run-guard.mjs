// `node scripts/run-guard.mjs SCRATCH`: waits until its standard input ends, as it does when whoever started it has ended in any way, and
// then ends all that is left of a run and removes what it has written. Agents and machines are made to outlive who started them,
// and would starve the next run.
import { existsSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

const AGAIN_MS = 50;
/** Something that starts others faster than this ends them would never be over. */
const ROUNDS_MAX = 100;
/** What other links lead to is not the run's own. */
const PASSAGE = /^\/tmp\/gw-\w{6}$/;
const scratch = process.argv[2] ?? '';
// With less of a name, what all processes of the machine say would have it in it.
if (!/\/godwit-test-\w{6}$/.test(scratch)) throw new Error(`not the directory of a run: ${scratch}`);

function readOf(read, file) {
  try {
    return read(file, 'latin1');
  } catch {
    // It has ended meanwhile, or is none of ours.
    return '';
  }
}

/** Where the run has written: what has to have a short name is elsewhere, and linked from here (`test/support/passage.ts`). */
function places() {
  const names = existsSync(scratch) ? readdirSync(scratch) : [];
  const links = names.map((name) => readOf(readlinkSync, join(scratch, name)));
  return [scratch, ...links.filter((path) => PASSAGE.test(path))];
}

/** Whose environment, arguments or directory name a place that nobody else has. A zombie has none of them. */
function leftOvers(own) {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
  return pids.filter((pid) => {
    const [environment, words] = ['environ', 'cmdline'].map((name) => readOf(readFileSync, `/proc/${pid}/${name}`));
    const said = `${environment}${words}${readOf(readlinkSync, `/proc/${pid}/cwd`)}`;
    return own.some((place) => said.includes(place));
  });
}

function end(pid) {
  try {
    process.kill(Number(pid), 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}

process.stdin.resume();
await new Promise((resolve) => process.stdin.once('close', resolve));
for (let round = 0; round < ROUNDS_MAX; round++) {
  const pids = leftOvers(places());
  if (pids.length === 0) break;
  for (const pid of pids) end(pid);
  await setTimeout(AGAIN_MS);
}
// Links go, and not what they lead to: what a test has mounted there may be the host's own.
rmSync(scratch, { recursive: true, force: true, maxRetries: 3 });
