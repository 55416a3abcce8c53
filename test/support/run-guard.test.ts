import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { eventually } from './eventually.ts';

const scratchModule = new URL('../../scripts/scratch.mjs', import.meta.url).href;
/** What a run is: it opens its scratch, starts what outlives it, says who that is, and goes on until somebody ends it. */
const RUN = `
  import { spawn } from 'node:child_process';
  import { mkdtempSync, symlinkSync } from 'node:fs';
  import { openScratch } from '${scratchModule}';
  const { directory, close } = openScratch();
  const start = (options) => spawn('sleep', ['600'], { stdio: 'ignore', detached: true, ...options }).pid;
  const passage = mkdtempSync('/tmp/gw-');
  symlinkSync(passage, directory + '/passage');
  symlinkSync(process.argv[1], directory + '/foreign');
  const cwds = [directory, passage].map((cwd) => start({ env: {}, cwd }));
  const pids = [start({ env: { ...process.env, TMPDIR: directory } }), ...cwds];
  console.log(JSON.stringify({ directory, passage, pids }));
  process.stdin.resume();
  process.stdin.once('end', async () => {
    await close();
    process.exit();
  });
`;

async function startRun(foreign = tmpdir()) {
  const args = ['--input-type=module', '--eval', RUN, foreign];
  const run = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const [line] = (await once(run.stdout, 'data')) as [Buffer];
  const { directory, passage, pids } = JSON.parse(line.toString()) as {
    directory: string;
    passage: string;
    pids: number[];
  };
  // It may be the host's that is mounted in there: nobody but the test removes it.
  onTestFinished(() => rmSync(passage, { recursive: true }));
  const isLeft = (): boolean[] => [...pids.map((pid) => `/proc/${pid}/cwd`), directory].map((path) => existsSync(path));
  return { run, isLeft };
}

describe('what a run of tests leaves behind', () => {
  it('is ended at its end, and what it wrote is removed', async () => {
    const another = mkdtempSync('/tmp/gw-');
    const foreign = mkdtempSync(join(tmpdir(), 'foreign-'));
    const bystanders = [undefined, another, foreign].map((cwd) => spawn('sleep', ['600'], { stdio: 'ignore', cwd }));
    onTestFinished(() => {
      for (const bystander of bystanders) bystander.kill();
      for (const directory of [another, foreign]) rmSync(directory, { recursive: true });
    });
    const { run, isLeft } = await startRun(foreign);
    expect(new Set(isLeft())).toEqual(new Set([true]));
    run.stdin.end();
    await once(run, 'exit');
    expect(new Set(isLeft())).toEqual(new Set([false]));
    // What another run has, and what a link leads to that is none of a passage, is not the run's.
    expect(bystanders.map(({ pid }) => existsSync(`/proc/${pid}/cwd`))).toEqual([true, true, true]);
  });

  it('is ended also where the run was killed', async () => {
    const { run, isLeft } = await startRun();
    run.kill('SIGKILL');
    await eventually(() => expect(new Set(isLeft())).toEqual(new Set([false])));
  });
});
