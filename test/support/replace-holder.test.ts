import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { eventually } from './eventually.ts';
import { HERE } from './godwit.ts';
import { commandLineOf } from './processes-in.ts';
import { replaceHolder } from './replace-holder.ts';

/** Who was spawned; the one that comes in its place is told by its id. */
const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

function sleeper(): ChildProcess {
  const child = spawn('sleep', ['60']);
  children.push(child);
  return child;
}

it('does not mind that one has ended by itself, and kills whoever comes next', async () => {
  const { pid: ended } = spawnSync('true');
  const next = sleeper();
  const gone = once(next, 'exit');
  const holders = [undefined, ended, next.pid];
  const spawned: (readonly string[])[] = [];
  const outputPath = join(mkdtempSync(join(tmpdir(), 'godwit-replace-')), 'log');
  await replaceHolder(() => holders.shift(), {
    wrap: (command, args) => {
      spawned.push([command, ...args]);
      return HERE.wrap('echo', ['here']);
    },
    patienceMs: 20_000,
    outputPath,
  });
  await gone;
  expect(next.signalCode).toBe('SIGKILL');
  expect(spawned).toEqual([['sleep', '60']]);
  await eventually(() => expect(readFileSync(outputPath, 'utf8')).toBe('here\n'));
});

it('lets nobody begin for as long as anything is left of who was killed', async () => {
  const { pid } = sleeper();
  let looks = 0;
  let looksAtBegin = 0;
  await replaceHolder(
    // It holds for three more looks.
    () => (looks++ < 4 ? pid : undefined),
    {
      wrap: () => {
        looksAtBegin = looks;
        return HERE.wrap('true', []);
      },
      patienceMs: 20_000,
      outputPath: '/dev/null',
    },
  );
  expect(looksAtBegin).toBe(5);
  await eventually(() => expect(commandLineOf(pid ?? 0)).toBe(''));
});
