import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  constants,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { programOf } from './program.fixture.ts';
import { realFiles } from './real-files.ts';
import { realProcesses } from './real-processes.ts';

const directory = mkdtempSync(join(tmpdir(), 'processes-'));

describe('real processes', () => {
  const user = undefined;

  it('are found by what they were started with, and told from others of their number', async () => {
    const mark = `mark-${process.pid}-${Math.random()}`;
    const outputPath = join(directory, 'sleep.log');
    const { identity, exited } = await realProcesses.spawnDetached({
      command: '/bin/sh',
      arguments: ['-c', 'while :; do sleep 1; done', mark],
      directory: '/',
      outputPath,
      user,
    });
    expect(await realProcesses.findByArgument(mark)).toEqual(identity);
    expect(await realProcesses.findByArgument(mark, undefined, identity.pid)).toEqual(identity);
    expect(await realProcesses.findByArgument(mark.slice(1))).toBeUndefined();
    const another = { ...identity, startedAt: '1' };
    expect(await realProcesses.isRunning(another)).toBe(false);
    await realProcesses.kill(another, 'SIGKILL');
    expect(await realProcesses.isRunning(identity)).toBe(true);
    await realProcesses.kill(identity, 'SIGKILL');
    expect(await exited).toEqual({ code: undefined, signal: 'SIGKILL' });
    expect(await realProcesses.isRunning(identity)).toBe(false);
    expect(await realProcesses.findByArgument(mark)).toBeUndefined();
    await realProcesses.kill(identity, 'SIGKILL');
  });

  it('are told from strangers that show the same arguments', async () => {
    const mark = String(600 + Math.random());
    const [own, strange] = [join(directory, 'own'), join(directory, 'strange')];
    for (const place of [own, strange]) mkdirSync(place, { mode: 0o700 });
    const start = async (place: string) => {
      const outputPath = join(directory, 'stranger.log');
      const spec = { command: '/bin/sleep', arguments: [mark], directory: place, outputPath, user };
      return (await realProcesses.spawnDetached(spec)).identity;
    };
    const stranger = await start(strange);
    const identity = await start(own);
    // Also where the number that was written down is the stranger's by now.
    expect(await realProcesses.findByArgument(mark, own, stranger.pid)).toEqual(identity);
    // Who is in a directory that is gone nobody knows: neither is taken for the other, nor for gone.
    const gone = join(directory, 'gone');
    await expect(realProcesses.findByArgument(mark, gone)).rejects.toThrow('nothing tells which');
    await realProcesses.kill(identity, 'SIGKILL');
    await expect.poll(() => realProcesses.findByArgument(mark, own)).toBeUndefined();
    expect(await realProcesses.findByArgument(mark, gone)).toEqual(stranger);
    await realProcesses.kill(stranger, 'SIGKILL');
  });

  it('leave what they print, for their owner alone, and their exit code', async () => {
    const outputPath = join(directory, 'echo.log');
    const spec = {
      command: '/bin/sh',
      arguments: ['-c', 'echo out; echo err >&2; exit 3'],
      directory: '/',
      outputPath,
      user,
    };
    expect(await (await realProcesses.spawnDetached(spec)).exited).toEqual({ code: 3, signal: undefined });
    expect(readFileSync(outputPath, 'utf8')).toBe('out\nerr\n');
    expect(statSync(outputPath).mode & 0o777).toBe(0o600);
    expect(await realFiles.readEnd(outputPath, 4)).toBe('err\n');
  });

  it('say when they cannot be started', async () => {
    const spec = {
      command: '/no/such/command',
      arguments: [],
      directory: '/',
      outputPath: join(directory, 'none.log'),
      user,
    };
    await expect(realProcesses.spawnDetached(spec)).rejects.toThrow('ENOENT');
    const log = join(directory, 'log');
    symlinkSync(join(directory, 'nowhere'), log);
    const own = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
    await expect(realProcesses.spawnDetached({ ...spec, outputPath: log, user: own })).rejects.toThrow('ELOOP');
    const pipe = join(directory, 'pipe');
    spawnSync('mkfifo', [pipe]);
    const toPipe = { ...spec, outputPath: pipe, user: own };
    await expect(realProcesses.spawnDetached(toPipe)).rejects.toThrow('ENXIO');
    const reader = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
    await expect(realProcesses.spawnDetached(toPipe)).rejects.toThrow('is no file');
    closeSync(reader);
    await expect(realProcesses.run('/bin/false', [])).rejects.toThrow('failed');
    expect(await realProcesses.run('/bin/echo', ['a', 'b'])).toBe('a b\n');
  });
});

describe('real files', () => {
  it('make directories private, also those that were not', async () => {
    const path = join(directory, 'a', 'b');
    await realFiles.makePrivateDirectory(path, undefined);
    expect(statSync(path).mode & 0o777).toBe(0o700);
    const open = join(directory, 'open');
    mkdirSync(open);
    chmodSync(open, 0o777);
    await realFiles.makePrivateDirectory(open, undefined);
    expect(statSync(open).mode & 0o777).toBe(0o700);
  });

  it('write for their owner alone, also over what others could read', async () => {
    const path = join(directory, 'secret');
    writeFileSync(path, 'a longer text than the new one', { mode: 0o666 });
    await realFiles.writePrivate(path, Buffer.from('new'), undefined);
    expect(readFileSync(path, 'utf8')).toBe('new');
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it('take the place of a link, and leave what that leads to as it is', async () => {
    const [elsewhere, path] = [join(directory, 'elsewhere'), join(directory, 'link')];
    writeFileSync(elsewhere, 'theirs', { mode: 0o644 });
    symlinkSync(elsewhere, path);
    await realFiles.writePrivate(path, Buffer.from('own'), undefined);
    expect(readFileSync(path, 'utf8')).toBe('own');
    expect(readFileSync(elsewhere, 'utf8')).toBe('theirs');
    expect(statSync(elsewhere).mode & 0o777).toBe(0o644);
  });

  it('give the end of a file, or nothing where there is none', async () => {
    const path = join(directory, 'text');
    writeFileSync(path, 'abc');
    expect(await realFiles.readEnd(path, 10)).toBe('abc');
    expect(await realFiles.readEnd(path, 1)).toBe('c');
    expect(await realFiles.readEnd(join(directory, 'missing'), 10)).toBe('');
  });

  it('are not taken for gone when they cannot be looked at', () => {
    const module = programOf(fileURLToPath(new URL('real-processes.ts', import.meta.url)));
    const script = `
      import { openSync } from 'node:fs';
      import { realProcesses } from '${module}';
      const pid = process.ppid;
      const identity = await realProcesses.findByArgument('marked-by-the-test', undefined, process.pid);
      try { for (;;) openSync('/dev/null', 'r'); } catch {}
      for (const look of [() => realProcesses.isRunning(identity), () => realProcesses.findByArgument('x', undefined, pid)])
        await look().then((answer) => console.log('answered', answer), ({ code }) => console.log(code));
    `;
    const limited = `ulimit -n 60; exec ${process.execPath} --input-type=module -e "$1" marked-by-the-test`;
    const { stdout, stderr } = spawnSync('bash', ['-c', limited, 'bash', script], { encoding: 'utf8' });
    expect(stderr).toBe('');
    expect(stdout).toBe('EMFILE\nEMFILE\n');
  });
});
