import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { eventually } from './eventually.ts';

const scratchModule = new URL('../../scripts/scratch.mjs', import.meta.url).href;
/** What a run is: it opens its scratch, starts what outlives it, says who that is, and goes on until somebody ends it. */
const RUN = `
  import { spawn } from 'node:child_process';
  import { openScratch } from '${scratchModule}';
  const { directory, close } = openScratch();
  const start = (options) => spawn('sleep', ['600'], { stdio: 'ignore', detached: true, ...options }).pid;
  const pids = [start({ env: { ...process.env, TMPDIR: directory } }), start({ env: {}, cwd: directory })];
  console.log(JSON.stringify({ directory, pids }));
  process.stdin.resume();
  process.stdin.once('end', async () => {
    await close();
    process.exit();
  });
`;

async function startRun() {
  const run = spawn(process.execPath, ['--input-type=module', '--eval', RUN], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [line] = (await once(run.stdout, 'data')) as [Buffer];
  return { run, ...(JSON.parse(line.toString()) as { directory: string; pids: number[] }) };
}

function isThere(pid: number): boolean {
  return existsSync(`/proc/${pid}/cwd`);
}

describe('what a run of tests leaves behind', () => {
  it('is ended at its end, and what it wrote is removed', async () => {
    const bystander = spawn('sleep', ['600'], { stdio: 'ignore' });
    const { run, directory, pids } = await startRun();
    expect(pids.map(isThere)).toEqual([true, true]);
    run.stdin.end();
    await once(run, 'exit');
    expect([...pids.map(isThere), existsSync(directory)]).toEqual([false, false, false]);
    expect(bystander.kill()).toBe(true);
  });

  it('is ended also where the run was killed', async () => {
    const { run, directory, pids } = await startRun();
    run.kill('SIGKILL');
    await eventually(() => expect([...pids.map(isThere), existsSync(directory)]).toEqual([false, false, false]));
  });
});
