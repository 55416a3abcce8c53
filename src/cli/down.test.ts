import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { realClock } from '../env/real.ts';
import { AGENT_ID_FILE } from './data-directory.ts';
import { down } from './down.ts';

/** What `godwit down` says of what it has stopped. */

let directory: string;
let child: ChildProcess;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'godwit-down-'));
});
afterEach(() => {
  child.kill('SIGKILL');
  rmSync(directory, { recursive: true });
});

/** A process that has the directory, and does nothing else. */
async function hold(what: string | undefined): Promise<void> {
  child = spawn('sleep', ['600'], { stdio: 'ignore' });
  await once(child, 'spawn');
  const stat = readFileSync(`/proc/${child.pid}/stat`, 'utf8');
  const startTicks = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  writeFileSync(join(directory, 'lock'), JSON.stringify({ pid: child.pid, startTicks, since: '', what }));
}

it.each([
  ['control-plane', 'control plane'],
  ['controllers', 'controllers'],
  ['extension', 'extension'],
  ['agent', 'agent'],
  ['synchronization', 'synchronization controller'],
  [undefined, 'control plane'],
])('calls what has a lock of %s the %s', async (what, name) => {
  await hold(what);
  const printed: string[] = [];
  await down({ dataDir: directory }, realClock, (line) => void printed.push(line));
  expect(printed).toEqual([`Stopped the ${name} in ${directory} (process ${child.pid}).`]);
});

it('knows the agents of older versions by what they have left', async () => {
  writeFileSync(join(directory, AGENT_ID_FILE), '');
  await hold(undefined);
  const printed: string[] = [];
  await down({ dataDir: directory }, realClock, (line) => void printed.push(line));
  expect(printed[0]).toContain('Stopped the agent in');
});
