import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { realProcesses } from '../../src/env/real-processes.ts';
import { FULL_MACHINE } from '../../src/hypervisor/machine.fixture.ts';
import type { MachineEvent } from '../../src/hypervisor/hypervisor.ts';
import type { QemuMachine } from '../../src/hypervisor/qemu/qemu-machine.ts';
import { Console } from '../support/console.ts';
import { eventually } from '../support/eventually.ts';
import { UNPRIVILEGED, Workbench } from '../support/qemu.ts';

let bench: Workbench;
const machines: QemuMachine[] = [];
beforeAll(async () => (bench = await Workbench.open()));
afterAll(async () => {
  for (const machine of machines) {
    const left = await realProcesses.findByArgument(`null,id=instance-${machine.run.instance}`);
    if (left) await realProcesses.kill(left, 'SIGKILL');
  }
  bench.close();
});

async function start(spec = bench.spec(), run = bench.newRun()): Promise<QemuMachine> {
  const machine = await bench.hypervisor.start(spec, run);
  machines.push(machine);
  return machine;
}

async function pidOf(machine: QemuMachine): Promise<number> {
  const found = await realProcesses.findByArgument(`null,id=instance-${machine.run.instance}`);
  return found?.pid ?? 0;
}

describe.each(['microvm', 'pc-q35-7.2', 'pc-i440fx-7.2'])('a machine of type %s', (machineType) => {
  it('starts paused, runs, stops, goes on, and ends when its power button is pressed', async () => {
    const machine = await start(bench.spec({ machineType, disk: bench.newDisk() }));
    const events: MachineEvent['kind'][] = [];
    machine.onEvent(({ kind }) => events.push(kind));
    expect(await machine.status()).toBe('paused');
    const console = await Console.open(machine);
    await machine.continue();
    expect(await machine.status()).toBe('running');
    expect((await console.next('ready')).fields.get('count')).toBe('0');
    const first = Number((await console.next('guest')).fields.get('count'));
    const later = await console.next('guest');
    expect(Number(later.fields.get('count'))).toBeGreaterThan(first);
    expect([later.fields.get('memory'), later.fields.get('disk')]).toEqual(['ok', 'ok']);
    expect((await console.ask('disk')).get('disk')).toBe('ok');

    await machine.stop();
    expect(await machine.status()).toBe('paused');
    const heard = console.lines.length;
    await machine.continue();
    await eventually(() => expect(console.lines.length).toBeGreaterThan(heard));

    await machine.powerDown();
    expect(await machine.ended).toMatchObject({ reason: 'GuestShutDown', message: 'the guest shut down' });
    expect(events).toEqual(expect.arrayContaining(['resumed', 'stopped', 'guest-shut-down']));
    expect([...console.counts().keys()]).toHaveLength(1);
  });
});

describe('the process of a machine', () => {
  it('has no rights, and private files', async () => {
    const machine = await start();
    const pid = await pidOf(machine);
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    expect(status).toMatch(/^Seccomp:\t2$/m);
    if (UNPRIVILEGED) {
      expect(status).toMatch(/^Uid:\t64801\t64801\t64801\t64801$/m);
      expect(status).toMatch(/^Gid:\t64801\t64801\t64801\t64801$/m);
      expect(status).toMatch(/^Groups:\t\s*$/m);
      expect(status).toMatch(/^CapEff:\t0{16}$/m);
    }
    expect(statSync(machine.run.directory).mode & 0o777).toBe(0o700);
    await machine.quit();
  });

  it('starts below a directory that is closed to it, as the home of root is, and is found there again', async () => {
    const home = join(bench.directory, 'home');
    const data = join(home, 'data');
    mkdirSync(data, { recursive: true });
    chmodSync(data, 0o711);
    chmodSync(home, 0o700);
    const { kernel } = bench.spec();
    const path = join(data, 'kernel');
    cpSync(kernel?.path ?? '', path);
    chmodSync(path, 0o644);
    const run = { ...bench.newRun(), directory: join(data, 'run') };
    const machine = await start({ ...bench.spec(), kernel: { ...kernel, path } }, run);
    const console = await Console.open(machine);
    await machine.continue();
    await console.next('ready');
    machine.detach();
    const found = await Workbench.hypervisor(bench.version).adopt(run);
    expect(await found?.status()).toBe('running');
    expect(readFileSync(join(data, 'run', 'qemu.pid'), 'utf8')).toBe(`${await pidOf(machine)}\n`);
    expect(await found?.quit()).toMatchObject({ reason: 'Quit' });
  });

  it('quits when told to, in order', async () => {
    const machine = await start();
    expect(await machine.quit()).toMatchObject({ reason: 'Quit' });
    await expect(machine.status()).rejects.toMatchObject({ code: 'Unreachable' });
    expect(await machine.quit()).toMatchObject({ reason: 'Quit' });
  });

  it('is reported with its reason and last words when it dies', async () => {
    const [killed, terminated] = [await start(), await start()];
    process.kill(await pidOf(killed), 'SIGKILL');
    expect(await killed.ended).toMatchObject({ reason: 'Killed', message: 'QEMU was killed by SIGKILL' });
    process.kill(await pidOf(terminated), 'SIGTERM');
    const end = await terminated.ended;
    expect(end.reason).toBe('Killed');
    expect(end.log.at(-1)).toContain('terminating on signal 15');
  });

  it('that cannot start says why, and leaves nothing behind', async () => {
    const spec = bench.spec();
    const run = bench.newRun();
    const missing = { ...spec, kernel: { path: '/no/such/kernel' } };
    await expect(bench.hypervisor.start(missing, run)).rejects.toMatchObject({
      code: 'StartFailed',
      message: expect.stringContaining('/no/such/kernel') as string,
    });
    expect(await bench.hypervisor.adopt(run)).toBeUndefined();
  });

  it('does not start when the program is not the one that it was taken for', async () => {
    if (bench.version.major >= 9) return;
    const run = bench.newRun();
    const mistaken = Workbench.hypervisor({ ...bench.version, major: 9 });
    await expect(mistaken.start(bench.spec(), run)).rejects.toMatchObject({
      code: 'StartFailed',
      message: expect.stringContaining('would corrupt a guest') as string,
    });
    expect(await bench.hypervisor.adopt(run)).toBeUndefined();
  });

  it('shows what was said to it', async () => {
    const machine = await start();
    await machine.status();
    expect(machine.version).toEqual(bench.version);
    expect(machine.transcript().map(({ text }) => text)).toEqual(
      expect.arrayContaining([expect.stringContaining('query-status'), expect.stringContaining('prelaunch')]),
    );
    await machine.quit();
    expect(machine.transcript()).toEqual([]);
  });

  it('is refused what it refuses', async () => {
    const machine = await start();
    await expect(machine.execute('no-such-command')).rejects.toMatchObject({ code: 'Refused' });
    expect(
      await machine.execute('migrate-pause', undefined, { isOutOfBand: true }).catch((error: Error) => error),
    ).toMatchObject({
      code: 'Refused',
    });
    await machine.quit();
  });

  it('is out of reach once it was let go of', async () => {
    const machine = await start();
    machine.detach();
    for (const command of [machine.status(), machine.quit(), machine.kill()])
      await expect(command).rejects.toMatchObject({ code: 'Unreachable' });
    await (await bench.hypervisor.adopt(machine.run))?.quit();
  });

  it('ends by force when the guest ignores its power button', async () => {
    const machine = await start(bench.spec({ commandLine: 'tick=20 button=ignore' }));
    const console = await Console.open(machine);
    await machine.continue();
    await console.next('guest');
    await machine.powerDown();
    await console.next('guest');
    await console.next('guest');
    expect(await machine.status()).toBe('running');
    expect(await machine.kill()).toMatchObject({ reason: 'Killed' });
  });
});

describe('adopting a machine', () => {
  /** What a process that died left behind: a machine, and the note of its run. */
  async function orphan(spec = bench.spec()): Promise<QemuMachine> {
    const machine = await start(spec);
    const console = await Console.open(machine);
    await machine.continue();
    await console.next('guest');
    console.close();
    machine.detach();
    return machine;
  }

  it('finds the same guest, which never noticed', async () => {
    const { run } = await orphan();
    const adopted = await bench.hypervisor.adopt(run);
    if (!adopted) throw new Error('the machine is gone');
    expect(await adopted.status()).toBe('running');
    const console = await Console.open(adopted);
    await console.next('guest');
    const [before] = readFileSync(join(run.directory, 'serial.log'), 'latin1').split('\n');
    expect([...console.counts().keys()]).toEqual([/boot=([0-9a-f]+)/.exec(before ?? '')?.[1]]);
    await adopted.powerDown();
    expect(await adopted.ended).toMatchObject({ reason: 'GuestShutDown' });
    expect(await bench.hypervisor.adopt(run)).toBeUndefined();
  });

  it('learns that the guest shut down while nobody listened', async () => {
    const machine = await orphan();
    const console = await Console.open(machine);
    await console.ask('ping x');
    console.tell('poweroff');
    await console.next('guest', 'power');
    console.close();
    const adopted = await bench.hypervisor.adopt(machine.run);
    expect(await adopted?.ended).toMatchObject({ reason: 'GuestShutDown' });
  });

  it('learns that it was killed, though not how', async () => {
    const machine = await orphan();
    const adopted = await bench.hypervisor.adopt(machine.run);
    process.kill(await pidOf(machine), 'SIGKILL');
    expect(await adopted?.ended).toMatchObject({ reason: 'Unknown' });
  });

  it('takes over no other machine, even when it is in the place of the one that is looked for', async () => {
    const { run } = await orphan();
    const other = { ...run, instance: 'another' };
    expect(await bench.hypervisor.adopt(other)).toBeUndefined();
    await (await bench.hypervisor.adopt(run))?.kill();
  });

  it('works again when the connection is lost, but not the machine', async () => {
    const machine = await start();
    const status = await machine.status();
    // A second adoption has to wait: a monitor serves one at a time. Once the first lets go, it is served.
    const waiting = bench.hypervisor.adopt(machine.run);
    machine.detach();
    expect(await (await waiting)?.status()).toBe(status);
    await (await waiting)?.quit();
  });
});

describe('the machines of the golden files', () => {
  it.each(['pc-q35-7.2', 'pc-i440fx-7.2'])('are taken by the real QEMU: %s', async (machineType) => {
    const { kernel: _, networks = [], disks = [], ...rest } = FULL_MACHINE;
    const machine = await start({
      ...rest,
      machineType,
      accelerator: 'tcg',
      memoryBytes: 64 * 1024 * 1024,
      cpu: { ...rest.cpu, model: 'qemu64' },
      disks: disks.map((disk) => ({ ...disk, format: 'raw', cache: 'writeback', path: bench.newDisk(1) })),
      cdroms: [{ port: 1, path: bench.newDisk(1), bootOrder: 2 }],
      // A tap device is for the host to make.
      networks: networks.slice(0, 1).map((network) => ({ ...network, backend: { kind: 'user', forwards: [] } })),
    });
    expect(await machine.status()).toBe('paused');
    const pci = JSON.stringify(await machine.execute('query-pci'));
    expect(pci).toContain('network-virtio-8-device');
    await machine.quit();
  });
});

describe('what is left behind', () => {
  it('is nothing', () => {
    const running = execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' });
    expect(running.split('\n').filter((line) => line.includes(`id=instance-t${process.pid}-`))).toEqual([]);
  });
});
