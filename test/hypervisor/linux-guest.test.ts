import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, existsSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { realProcesses } from '../../src/env/real-processes.ts';
import type { MachineSpec } from '../../src/hypervisor/machine.ts';
import type { QemuMachine } from '../../src/hypervisor/qemu/qemu-machine.ts';
import { iso9660 } from '../../src/node/cloud-init/iso9660.ts';
import { Console } from '../support/console.ts';
import { eventually } from '../support/eventually.ts';
import { assertNeverDoubled, signsOfLife } from '../support/guests.ts';
import { freePort } from '../support/network.ts';
import { sample, someOf } from '../support/sample.ts';
import { PROGRAM, Workbench } from '../support/qemu.ts';

/** The Linux guest, in machines as the agent would start them. */

vi.setConfig({ testTimeout: 240_000 });

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

async function boot(spec: MachineSpec): Promise<{ machine: QemuMachine; console: Console }> {
  const machine = await bench.hypervisor.start(spec, bench.newRun());
  machines.push(machine);
  const console = await Console.open(machine);
  await machine.continue();
  return { machine, console };
}

/** Every line of a kind that comes before the answer. */
async function list(console: Console, command: string, kind: string): Promise<ReadonlyMap<string, string>[]> {
  const from = console.lines.length;
  await console.ask(command);
  return console.lines
    .slice(from)
    .filter((line) => line.kind === kind)
    .map(({ fields }) => fields);
}

describe.each(sample(['pc-q35-7.2', 'pc-i440fx-7.2'], 1))('the Linux guest in a %s', (machineType) => {
  it('lives, checks itself, answers by HTTP and on its console, and shuts down by its power button', async () => {
    const port = await freePort();
    const disk = bench.newDisk(16);
    const { machine, console } = await boot(bench.linux({ machineType, disks: [disk], forward: port }));
    expect((await console.next('ready')).fields.get('count')).toBe('0');
    const network = (await console.next('network')).fields;
    expect([network.get('address'), network.get('gateway')]).toEqual(['10.0.2.15/24', '10.0.2.2']);

    const text = await eventually(async () => (await fetch(`http://127.0.0.1:${port}/`)).text());
    expect(signsOfLife(text)).toEqual([
      { boot: [...console.counts().keys()][0], count: expect.any(Number) as number, memory: 'ok', disk: 'ok' },
    ]);
    await console.ask('write 1');
    await console.ask('rate 50');
    await eventually(async () => expect(Number((await console.ask('memory')).get('written'))).toBeGreaterThan(2048));
    const [memory, disks] = [await console.ask('memory'), await console.ask('disk')];
    expect([memory.get('memory'), disks.get('disk')]).toEqual(['ok', 'ok']);
    expect(Number(disks.get('written'))).toBeGreaterThan(0);

    await machine.powerDown();
    expect(await machine.ended).toMatchObject({ reason: 'GuestShutDown' });
    await console.over();
    expect(console.lines.some(({ fields }) => fields.get('power') === 'off')).toBe(true);
    expect(assertNeverDoubled([readFileSync(join(machine.run.directory, 'serial.log'), 'latin1')])).toBeGreaterThan(3);
  });
});

const some = someOf(4, 1, describe);

some('the disks of the Linux guest', () => {
  it('are found as they were left, whole; those of others are let alone', async () => {
    const [disk, foreign] = [bench.newDisk(8), bench.newDisk(8)];
    const content = Buffer.alloc(8 * 1024 * 1024, 'somebody else has stored this here\n');
    writeFileSync(foreign, content);
    for (const boots of ['1', '2']) {
      const { machine, console } = await boot(bench.linux({ disks: [disk, foreign], commandLine: 'write=1' }));
      await console.next('guest');
      const found = await list(console, 'disks', 'disk');
      expect(found.map((fields) => [fields.get('serial'), fields.get('use'), fields.get('boots')])).toEqual([
        ['d0', 'checked', boots],
        ['d1', 'none', '0'],
      ]);
      await eventually(async () => expect(Number((await console.ask('disk')).get('written'))).toBeGreaterThan(50));
      expect((await console.ask('status')).get('disk')).toBe('ok');
      // As hard as it gets: nothing is flushed.
      await machine.kill();
    }
    expect(readFileSync(foreign).equals(content)).toBe(true);
  });

  it('are said to be bad when they do not hold what was written', async () => {
    const disk = bench.newDisk(4);
    const { machine, console } = await boot(bench.linux({ disks: [disk], commandLine: 'write=1' }));
    await console.next('guest');
    await eventually(async () => expect(Number((await console.ask('disk')).get('written'))).toBeGreaterThan(200));
    await console.ask('write 0');
    const fd = openSync(disk, 'r+');
    for (let block = 1; block < 1024; block++) writeSync(fd, 'lost', block * 4096 + 100);
    closeSync(fd);
    expect((await console.ask('disk')).get('disk')).toBe('bad');
    expect((await console.next('guest')).fields.get('disk')).toBe('bad');
    await machine.quit();
  });
});

some('volumes of files', () => {
  const USER_DATA =
    '#cloud-config\npassword: swallow\nhostname: "tern"\nwrite_files: [{path: /x, content: "hostname: no"}]\n';
  const META_DATA = '{ "instance-id": "i-6f1c", "local-hostname": "curlew" }\n';

  function volume(label: string, files: Readonly<Record<string, string>>): string {
    const path = bench.newDisk(0);
    const contents = Object.entries(files).map(([name, text]): [string, Buffer] => [name, Buffer.from(text)]);
    writeFileSync(path, iso9660({ label, files: new Map(contents), modifiedMs: 0 }));
    return path;
  }

  function sha256(text: string): string {
    return createHash('sha256').update(text).digest('hex');
  }

  it('are read as cloud-init would, and told of by name and content', async () => {
    const long = `${'long-'.repeat(40)}name.conf`;
    const settings = { 'app.properties': 'a=b\n'.repeat(5000), [long]: '', [`x${'y'.repeat(62)}`]: '0'.repeat(55) };
    const disks = [
      volume('cidata', { 'meta-data': META_DATA, 'user-data': USER_DATA }),
      volume('cfgdata', settings),
      bench.newDisk(4),
    ];
    const { machine, console } = await boot(bench.linux({ disks }));
    expect((await console.next('cloud-init')).text.trim()).toBe(
      `cloud-init instance-id=i-6f1c hostname=tern user-data-sha256=${sha256(USER_DATA)}`,
    );
    const uses = (await list(console, 'disks', 'disk')).map((fields) => `${fields.get('use')} ${fields.get('label')}`);
    expect(uses).toEqual(['iso9660 cidata', 'iso9660 cfgdata', 'checked ']);
    const files = await list(console, 'ls', 'file');
    expect(
      files.map((fields) => `${fields.get('volume')}/${fields.get('path')} ${fields.get('sha256')}`).sort(),
    ).toEqual(
      [
        `cidata/meta-data ${sha256(META_DATA)}`,
        `cidata/user-data ${sha256(USER_DATA)}`,
        ...Object.entries(settings).map(([name, text]) => `cfgdata/${name} ${sha256(text)}`),
      ].sort(),
    );
    await machine.quit();
  });

  it('name the guest by their meta-data where nothing else does', async () => {
    const metaData = 'instance-id: i-1\nlocal-hostname: curlew # a bird\n';
    const { machine, console } = await boot(
      bench.linux({ disks: [volume('cidata', { 'meta-data': metaData, 'user-data': '#!/bin/sh\nhostname: no\n' })] }),
    );
    const { fields } = await console.next('cloud-init');
    expect([fields.get('instance-id'), fields.get('hostname')]).toEqual(['i-1', 'curlew']);
    await machine.quit();
  });
});

some('the Linux guest', () => {
  it('reboots into another boot, in the same machine', async () => {
    const { machine, console } = await boot(bench.linux());
    const first = (await console.next('guest')).fields.get('boot');
    console.tell('reboot');
    await console.next('guest', 'power');
    const again = await console.next('ready');
    expect(again.fields.get('boot')).not.toBe(first);
    expect(await machine.status()).toBe('running');
    await machine.quit();
  });

  it('goes on when its power button is to be ignored', async () => {
    const { machine, console } = await boot(bench.linux({ commandLine: 'tick=20 button=ignore' }));
    await console.next('guest');
    await machine.powerDown();
    for (let i = 0; i < 10; i++) await console.next('guest');
    await console.ask('button off');
    await machine.powerDown();
    expect(await machine.ended).toMatchObject({ reason: 'GuestShutDown' });
  });
});

some('the guest agent in the Linux guest', () => {
  it('is there, says what it is, and shuts the guest down', async () => {
    const { kernel, memoryBytes } = bench.linux();
    const path = join(bench.directory, 'agent');
    const machine = `-M pc-q35-7.2 -accel tcg -cpu qemu64,+rdrand -m ${memoryBytes / 1024 + 8}k -nodefaults -display none
      -no-user-config -device virtio-serial-pci -device virtserialport,chardev=agent,name=org.qemu.guest_agent.0
      -chardev socket,id=agent,path=${path},server=on,wait=off -kernel ${kernel?.path} -initrd ${kernel?.initrdPath}`;
    const qemu = spawn(PROGRAM, [...machine.split(/\s+/), '-append', kernel?.commandLine ?? '']);
    const ended = once(qemu, 'exit');
    try {
      await eventually(() => expect(existsSync(path)).toBe(true));
      const agent = new AgentClient(path);
      // Nobody hears what is said before the guest is up.
      await eventually(async () => expect(await agent.ask('guest-sync-delimited', { id: 41 }, 500)).toBe(41), 60_000);
      expect(await agent.ask('guest-sync', { id: 42 })).toBe(42);
      expect(await agent.ask('guest-ping')).toEqual({});
      expect(await agent.ask('guest-get-osinfo')).toMatchObject({ id: 'godwit-guest', machine: 'x86_64' });
      expect(await agent.ask('guest-info')).toMatchObject({ version: expect.any(String) as string });
      expect(await agent.ask('guest-no-such-thing')).toMatchObject({ class: 'CommandNotFound' });
      agent.tell('guest-shutdown');
      expect(await ended).toEqual([0, null]);
    } finally {
      qemu.kill('SIGKILL');
    }
  });
});

/** Asks a guest agent by its socket. */
class AgentClient {
  readonly #socket: Socket;
  readonly #answers: string[] = [];

  constructor(path: string) {
    this.#socket = connect(path);
    createInterface(this.#socket).on('line', (line) => this.#answers.push(line));
  }

  tell(execute: string, args: object = {}): void {
    this.#socket.write(`${JSON.stringify({ execute, arguments: args })}\n`);
  }

  /** What is returned, or the error; what was said earlier is passed over. */
  async ask(execute: string, args: object = {}, timeoutMs = 20_000): Promise<unknown> {
    this.#answers.length = 0;
    this.tell(execute, args);
    const line = await eventually(() => {
      expect(this.#answers).not.toEqual([]);
      return this.#answers.at(-1) ?? '';
    }, timeoutMs);
    const answer = JSON.parse(line.replace('\ufffd', '')) as { return?: unknown; error?: unknown };
    return answer.error ?? answer.return;
  }
}
