import { describe, expect, it } from 'vitest';
import type { HostFiles, Processes } from '../../env/ports.ts';
import { silentLogger } from '../../env/test.ts';
import { realClock } from '../../env/real.ts';
import type { MachineEnd } from '../hypervisor.ts';
import { FakeMonitor } from './fake-monitor.fixture.ts';
import { QemuMachine } from './qemu-machine.ts';
import { runFiles } from './run-files.ts';

const unused = (): never => expect.unreachable();

/** A QEMU of which only the sockets and the process table are known. */
class FakeQemu {
  readonly monitors: FakeMonitor[] = [];
  instance = 'one';
  status = 'running';
  isRunning = true;

  readonly processes: Processes = {
    isRoot: false,
    isRunning: () => Promise.resolve(this.isRunning),
    kill: () => Promise.resolve(this.die()),
    spawnDetached: unused,
    run: unused,
    findByArgument: unused,
  };
  readonly hostFiles: HostFiles = {
    readEnd: () => Promise.resolve('first\nlast\n'),
    makePrivateDirectory: unused,
    writePrivate: unused,
  };

  connect(): Promise<QemuMachine> {
    const { processes, hostFiles } = this;
    return QemuMachine.connect({
      clock: realClock,
      log: silentLogger,
      connector: { connectUnix: (_, handlers) => this.#answering().connectUnix('/monitor', handlers) },
      processes,
      hostFiles,
      run: { directory: '/run/vm', instance: 'one' },
      files: runFiles('/run/vm'),
      process: { pid: 1, startedAt: '1' },
      exited: undefined,
    });
  }

  hangUp(): void {
    for (const monitor of this.monitors) monitor.hangUp();
  }

  die(): void {
    this.isRunning = false;
    this.hangUp();
  }

  #answering(): FakeMonitor {
    const monitor = new FakeMonitor();
    if (!this.isRunning) monitor.connectUnix = () => Promise.reject(new Error('ECONNREFUSED'));
    monitor.onCommand = ({ execute, id }) => {
      if (execute === 'query-chardev') monitor.answer(id, [{ label: `instance-${this.instance}` }]);
      if (execute === 'query-status') monitor.answer(id, { status: this.status });
      if (execute === 'quit') {
        monitor.answer(id);
        this.die();
      }
    };
    this.monitors.push(monitor);
    return monitor;
  }
}

describe('a machine of QEMU', () => {
  it('is called again when its monitors hang up, and commands work again', async () => {
    const qemu = new FakeQemu();
    const machine = await qemu.connect();
    let end: MachineEnd | undefined;
    void machine.ended.then((how) => (end = how));
    qemu.hangUp();
    await expect(machine.status()).rejects.toMatchObject({ code: 'Unreachable' });
    while (qemu.monitors.length < 4) await new Promise((resolve) => setTimeout(resolve, 20));
    await expect.poll(() => machine.status().catch(() => undefined)).toBe('running');
    expect(end).toBeUndefined();
    qemu.die();
    expect(await machine.ended).toMatchObject({ reason: 'Unknown', log: ['first', 'last'] });
  });

  it('is told that its guest shut down while the monitors were gone', async () => {
    const qemu = new FakeQemu();
    const machine = await qemu.connect();
    qemu.status = 'shutdown';
    qemu.hangUp();
    expect(await machine.ended).toMatchObject({ reason: 'GuestShutDown' });
  });

  it('ends when whoever listens has written down that its guest shut down', async () => {
    const qemu = new FakeQemu();
    qemu.status = 'shutdown';
    const machine = await qemu.connect();
    let written = (): void => undefined;
    const heard = new Promise<string>((resolve) => {
      machine.onEvent(({ kind }) => {
        resolve(kind);
        return new Promise<void>((done) => (written = done));
      });
    });
    expect(await heard).toBe('guest-shut-down');
    let hasEnded = false;
    void machine.ended.finally(() => (hasEnded = true));
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(hasEnded).toBe(false);
    written();
    expect(await machine.ended).toMatchObject({ reason: 'GuestShutDown' });
  });

  it('is not taken for another one that listens in its place', async () => {
    const qemu = new FakeQemu();
    qemu.instance = 'two';
    await expect(qemu.connect()).rejects.toThrow('not instance one');
    expect(qemu.monitors.map(({ isOpen }) => isOpen)).toEqual([false]);
  });

  it('is given up at once when it ends before it answers', async () => {
    const qemu = new FakeQemu();
    qemu.isRunning = false;
    await expect(qemu.connect()).rejects.toThrow('QEMU has ended');
  });

  it('leaves nobody waiting who lets go of it', async () => {
    const qemu = new FakeQemu();
    qemu.die = () => undefined;
    const machine = await qemu.connect();
    const ends = [machine.quit(), machine.kill()].map((end) =>
      expect(end).rejects.toMatchObject({ code: 'Unreachable' }),
    );
    await new Promise((resolve) => setTimeout(resolve, 50));
    machine.detach();
    await Promise.all(ends);
  });

  it('tells its own events, and those that everybody understands', async () => {
    const qemu = new FakeQemu();
    const machine = await qemu.connect();
    const heard: string[] = [];
    const forget = machine.onEvent(({ kind }) => heard.push(kind));
    machine.onQmpEvent(({ name }) => heard.push(name));
    const tell = (event: string, data: object = {}): void =>
      qemu.monitors[0]?.say(`${JSON.stringify({ event, data, timestamp: { seconds: 1, microseconds: 0 } })}\n`);
    tell('STOP');
    tell('MIGRATION', { status: 'active' });
    tell('SHUTDOWN', { guest: false, reason: 'host-qmp-quit' });
    forget();
    tell('RESUME');
    expect(heard).toEqual(['STOP', 'stopped', 'MIGRATION', 'SHUTDOWN', 'RESUME']);
    machine.detach();
  });

  it.each([
    ['prelaunch', 'paused'],
    ['inmigrate', 'incoming'],
    ['postmigrate', 'finished-migrate'],
    ['internal-error', 'failed'],
  ])('that QEMU calls %s is %s', async (status, expected) => {
    const qemu = new FakeQemu();
    qemu.status = status;
    const machine = await qemu.connect();
    expect(await machine.status()).toBe(expected);
    machine.detach();
  });
});
