import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, rmSync } from 'node:fs';
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
  const cwds = [directory, passage].map((cwd) => start({ env: {}, cwd }));
  const pids = [start({ env: { ...process.env, TMPDIR: directory } }), ...cwds];
  console.log(JSON.stringify({ directory, passage, pids }));
  process.stdin.resume();
  process.stdin.once('end', async () => {
    await close();
    process.exit();
  });
`;

async function startRun() {
  const run = spawn(process.execPath, ['--input-type=module', '--eval', RUN], { stdio: ['pipe', 'pipe', 'inherit'] });
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
    const bystander = spawn('sleep', ['600'], { stdio: 'ignore' });
    const { run, isLeft } = await startRun();
    expect(new Set(isLeft())).toEqual(new Set([true]));
    run.stdin.end();
    await once(run, 'exit');
    expect(new Set(isLeft())).toEqual(new Set([false]));
    expect(bystander.kill()).toBe(true);
  });

  it('is ended also where the run was killed', async () => {
    const { run, isLeft } = await startRun();
    run.kill('SIGKILL');
    await eventually(() => expect(new Set(isLeft())).toEqual(new Set([false])));
  });
});
