import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../../test/support/eventually.ts';
import { DirectoryInUse, DirectoryLock, holderOf, inherit } from './data-directory.ts';

let directory = '';
beforeEach(() => {
  directory = join(mkdtempSync(join(tmpdir(), 'godwit-')), 'data');
});
afterEach(() => rmSync(join(directory, '..'), { recursive: true, force: true }));

const ticksOf = (pid: number): string =>
  readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ')[19] ?? '';

describe('the data directory', () => {
  it('is private and held by one process at a time, whose name a second one learns', () => {
    const lock = DirectoryLock.acquire(directory, 0, 'control-plane');
    lock.announce('https://127.0.0.1:1');
    // Nobody may look; where we are root, QEMU's user may pass.
    expect(statSync(directory).mode & 0o766).toBe(0o700);
    expect(() => DirectoryLock.acquire(directory, 0, 'control-plane')).toThrow(DirectoryInUse);
    expect(() => DirectoryLock.acquire(directory, 0, 'control-plane')).toThrow(
      `process ${process.pid} (running since 1970-01-01T00:00:00.000Z, serving https://127.0.0.1:1)`,
    );
    lock.release();
    expect(holderOf(directory)).toBeUndefined();
    DirectoryLock.acquire(directory, 0, 'control-plane').release();
  });

  it('goes from a dead holder to one of all who come then', () => {
    const dead = JSON.stringify({ pid: process.pid, startTicks: 'another boot', since: '' });
    DirectoryLock.acquire(directory, 0, 'control-plane').release();
    const lock = join(directory, 'lock');
    writeFileSync(lock, dead);
    const me = { pid: process.pid, startTicks: ticksOf(process.pid), since: 'now' };
    expect(inherit(lock, dead, me)).toBe(me);
    // Who saw the dead one, too, and comes a moment later, finds another there, and leaves it.
    expect(inherit(lock, dead, { ...me, since: 'later' })).toBeUndefined();
    expect(holderOf(directory)).toEqual(me);
    expect(readdirSync(directory)).toEqual(['lock']);
  });

  it('is not taken by who comes while another one is about to take it, and by the next where that one has died', () => {
    const dead = JSON.stringify({ pid: process.pid, startTicks: 'another boot', since: '' });
    DirectoryLock.acquire(directory, 0, 'control-plane').release();
    writeFileSync(join(directory, 'lock'), dead);
    const claim = join(directory, `lock.${createHash('sha256').update(dead).digest('hex').slice(0, 16)}`);
    const parent = { pid: process.ppid, startTicks: ticksOf(process.ppid), since: '' };
    writeFileSync(claim, JSON.stringify(parent));
    expect(() => DirectoryLock.acquire(directory, 0, 'control-plane')).toThrow(`process ${process.ppid} `);
    expect(readFileSync(join(directory, 'lock'), 'utf8')).toBe(dead);
    writeFileSync(claim, JSON.stringify({ ...parent, startTicks: 'another boot' }));
    DirectoryLock.acquire(directory, 0, 'control-plane');
    expect(holderOf(directory)).toMatchObject({ pid: process.pid });
    expect(readdirSync(directory)).toEqual(['lock']);
  });

  it('is inherited once, also by those who found that who was about to take it has died', () => {
    const dead = (since: string): string => JSON.stringify({ pid: process.pid, startTicks: 'another boot', since });
    DirectoryLock.acquire(directory, 0, 'control-plane').release();
    const lock = join(directory, 'lock');
    writeFileSync(lock, dead('first'));
    const claim = `${lock}.${createHash('sha256').update(dead('first')).digest('hex').slice(0, 16)}`;
    const heir = { pid: process.ppid, startTicks: ticksOf(process.ppid), since: '' };
    writeFileSync(claim, JSON.stringify(heir));
    // Who comes late has seen a dead one's claim, where there is a living one's by now.
    expect(inherit(claim, dead('second'), { ...heir, since: 'late' })).toBeUndefined();
    expect(JSON.parse(readFileSync(claim, 'utf8'))).toEqual(heir);
    writeFileSync(claim, dead('second'));
    const me = { pid: process.pid, startTicks: ticksOf(process.pid), since: 'now' };
    expect(inherit(lock, dead('first'), me)).toBe(me);
    expect(holderOf(directory)).toEqual(me);
    expect(readdirSync(directory)).toEqual(['lock']);
  });

  it('is let go of by nobody but who has it', () => {
    const lock = DirectoryLock.acquire(directory, 0, 'control-plane');
    writeFileSync(
      join(directory, 'lock'),
      JSON.stringify({ pid: process.ppid, startTicks: ticksOf(process.ppid), since: '' }),
    );
    lock.release();
    expect(holderOf(directory)).toMatchObject({ pid: process.ppid });
  });

  it('is taken over from a process that was killed', async () => {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
    const lock = DirectoryLock.acquire(directory, 0, 'control-plane');
    lock.release();
    writeFileSync(join(directory, 'lock'), JSON.stringify({ pid: child.pid, startTicks: 'another boot', since: '' }));
    child.kill('SIGKILL');
    await once(child, 'exit');
    DirectoryLock.acquire(directory, 0, 'control-plane').release();
  });

  it('is taken over from a process that was killed, though its parent does not care', async () => {
    const parent = spawn('sh', ['-c', 'sleep 1000 & echo $!; exec sleep 1000']);
    try {
      const pid = Number(String((await once(parent.stdout, 'data'))[0]));
      // A shell might still bury its child; what it has become does not.
      await eventually(() => expect(readFileSync(`/proc/${parent.pid}/comm`, 'utf8')).toBe('sleep\n'));
      const startTicks = readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ')[21];
      DirectoryLock.acquire(directory, 0, 'control-plane').release();
      writeFileSync(join(directory, 'lock'), JSON.stringify({ pid, startTicks, since: '' }));
      expect(holderOf(directory)).toMatchObject({ pid });
      process.kill(pid, 'SIGKILL');
      await eventually(() => expect(holderOf(directory)).toBeUndefined());
      expect(readFileSync(`/proc/${pid}/stat`, 'utf8')).toContain(') Z ');
      DirectoryLock.acquire(directory, 0, 'control-plane').release();
    } finally {
      parent.kill('SIGKILL');
    }
  });

  it('is taken over from a lock whose process id belongs to somebody else now, or that is torn', () => {
    DirectoryLock.acquire(directory, 0, 'control-plane').release();
    writeFileSync(join(directory, 'lock'), JSON.stringify({ pid: process.pid, startTicks: '1', since: '' }));
    DirectoryLock.acquire(directory, 0, 'control-plane').release();
    writeFileSync(join(directory, 'lock'), '{"pid":');
    DirectoryLock.acquire(directory, 0, 'control-plane').release();
  });
});
