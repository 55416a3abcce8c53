import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';

/** Where there can be no tour. What it is like where there can is in `test/newcomer`. */

const start = fileURLToPath(new URL('../../scripts/start.mjs', import.meta.url));

describe('a tour', () => {
  it('is of a cluster that is up', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'godwit-test-'));
    try {
      const { code, stdout, stderr } = await runCli(['tour', '--data-dir', directory]);
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toBe(
        `godwit: nothing serves ${directory}; start it with 'godwit up', or say with --data-dir where it is\n`,
      );
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  });

  it.each([
    [['--exit-after-tour', '--no-tour'], '--no-tour and --exit-after-tour exclude each other'],
    [['--exit-after-tour', '--nodes', '1'], 'a tour needs two nodes or more: leave out --nodes'],
    [['--nodes=0', '--exit-after-tour'], 'a tour needs two nodes or more: leave out --nodes'],
  ])('cannot be asked for with %s', (args, reason) => {
    const { status, stderr } = spawnSync(process.execPath, [start, ...args], { encoding: 'utf8' });
    expect([status, stderr]).toEqual([2, `godwit: ${reason}\n`]);
  });
});
