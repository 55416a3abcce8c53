import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { programOf } from '../../src/env/program.fixture.ts';
import { realProcesses } from '../../src/env/real-processes.ts';
import type { MachineRun } from '../../src/hypervisor/hypervisor.ts';
import type { QemuMachine } from '../../src/hypervisor/qemu/qemu-machine.ts';
import { Console } from '../support/console.ts';
import { eventually } from '../support/eventually.ts';
import { PROGRAM, UNPRIVILEGED, Workbench } from '../support/qemu.ts';
import { IS_FULL } from '../support/sample.ts';

/** Whoever starts machines is killed with -9, at whatever moment: no machine goes with it, and none is lost. */

const starter = programOf(fileURLToPath(new URL('starter.ts', import.meta.url)));
const ROUNDS = IS_FULL ? 40 : 6;

let bench: Workbench;
const runs: MachineRun[] = [];
beforeAll(async () => (bench = await Workbench.open()));
afterAll(async () => {
  for (const run of runs) await endOf(run);
  bench.close();
});

async function endOf(run: MachineRun): Promise<void> {
  const left = await realProcesses.findByArgument(`null,id=instance-${run.instance}`);
  if (left) await realProcesses.kill(left, 'SIGKILL');
}

/** Starts a machine in another process, and kills that, with all that belongs to it, some time after it has begun. */
async function startAndDie(run: MachineRun, word: string, afterMs: number): Promise<void> {
  runs.push(run);
  const options = { program: PROGRAM, version: bench.version, user: UNPRIVILEGED };
  const child = spawn(process.execPath, [starter, JSON.stringify({ options, spec: bench.spec(), run })], {
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  const exited = once(child, 'exit');
  let said = '';
  child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()));
  await eventually(() => expect(said).toContain(word));
  await new Promise((resolve) => setTimeout(resolve, afterMs));
  // The whole group, as when a terminal is closed or a service is stopped by force.
  process.kill(-(child.pid ?? 0), 'SIGKILL');
  await exited;
}

async function expectAlive(machine: QemuMachine): Promise<void> {
  const console = await Console.open(machine);
  if ((await machine.status()) === 'paused') await machine.continue();
  const first = await console.next('guest', 'uptime');
  const second = await console.next('guest', 'uptime');
  expect(Number(second.fields.get('count'))).toBeGreaterThan(Number(first.fields.get('count')));
  expect([...console.counts().keys()]).toHaveLength(1);
  await machine.quit();
}

describe('when whoever started a machine is killed', () => {
  it('the machine runs on, and is found again', async () => {
    const run = bench.newRun();
    await startAndDie(run, 'running', 0);
    const machine = await bench.hypervisor.adopt(run);
    expect(await machine?.status()).toBe('running');
    if (machine) await expectAlive(machine);
  });

  it('there is the machine or there is none, but nothing in between', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const run = bench.newRun();
      await startAndDie(run, 'starting', (round * 120) / ROUNDS);
      const machine = await bench.hypervisor.adopt(run);
      if (machine) await expectAlive(machine);
      else expect(await realProcesses.findByArgument(`null,id=instance-${run.instance}`)).toBeUndefined();
      expect(await bench.hypervisor.adopt(run)).toBeUndefined();
    }
  }, 300_000);
});
