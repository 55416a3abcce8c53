import { describe, expect, it } from 'vitest';
import type { MachineEnd } from '../hypervisor.ts';
import { FakeQemu } from './fake-qemu.fixture.ts';

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

  it('is reached though a connection begins with what was left of a former one', async () => {
    const qemu = new FakeQemu();
    qemu.spoilt = 2;
    expect(await (await qemu.connect()).status()).toBe('running');
  });

  it('is adopted though its monitor is of no use, and is called until it is', async () => {
    const qemu = new FakeQemu();
    qemu.spoilt = 3;
    const machine = await qemu.adopt();
    await expect(machine?.status()).rejects.toMatchObject({ code: 'Unreachable' });
    await expect.poll(() => machine?.status().catch(() => undefined), { timeout: 10_000 }).toBe('running');
    machine?.detach();
  });

  it('can be ended that was adopted and does not answer', async () => {
    const qemu = new FakeQemu();
    qemu.spoilt = 1000;
    const machine = await qemu.adopt();
    await expect(machine?.status()).rejects.toMatchObject({ code: 'Unreachable' });
    expect(await machine?.kill()).toMatchObject({ reason: 'Unknown' });
    expect(qemu.isRunning).toBe(false);
  });

  it('is not adopted where it has ended', async () => {
    const qemu = new FakeQemu();
    qemu.isRunning = false;
    expect(await qemu.adopt()).toBeUndefined();
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
    const tell = (event: string, data: object = {}): void => qemu.tell(event, data);
    tell('STOP');
    tell('MIGRATION', { status: 'active' });
    tell('SHUTDOWN', { guest: false, reason: 'host-qmp-quit' });
    forget();
    tell('RESUME');
    expect(heard).toEqual(['STOP', 'stopped', 'MIGRATION', 'migration', 'SHUTDOWN', 'RESUME']);
    machine.detach();
  });

  it.each([
    ['inmigrate', 'setup', false],
    ['finish-migrate', 'pre-switchover', false],
    ['finish-migrate', 'postcopy-active', false],
    ['finish-migrate', 'failed', true],
    ['postmigrate', 'completed', true],
    ['paused', 'postcopy-active', true],
  ])('continues its guest only where all of it is: %s, %s', async (status, migration, isDone) => {
    const qemu = new FakeQemu();
    [qemu.status, qemu.migration] = [status, { status: migration }];
    qemu.answers.set('cont', () => ({}));
    const machine = await qemu.connect();
    if (isDone) await machine.continue();
    else await expect(machine.continue()).rejects.toMatchObject({ code: 'Refused' });
    expect(qemu.commands.some(([name]) => name === 'cont')).toBe(isDone);
    machine.detach();
  });

  it('has a guest back that had gone, and leaves it no time to run', async () => {
    const qemu = new FakeQemu();
    [qemu.status, qemu.migration] = ['postmigrate', { status: 'completed' }];
    for (const command of ['cont', 'stop']) qemu.answers.set(command, () => ({}));
    const machine = await qemu.connect();
    await machine.hold();
    expect(qemu.commands.slice(-2).map(([name]) => name)).toEqual(['cont', 'stop']);
    machine.detach();
  });

  it('has not let its guest go when QEMU says so after a post-copy that failed', async () => {
    const qemu = new FakeQemu();
    [qemu.status, qemu.migration] = ['postmigrate', { status: 'failed' }];
    const machine = await qemu.connect();
    expect(await machine.status()).toBe('paused');
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
