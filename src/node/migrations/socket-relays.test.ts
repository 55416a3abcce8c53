import { mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { createConnection, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { realClock, realRandom } from '../../env/real.ts';
import { ManualClock, silentLogger } from '../../env/test.ts';
import type { Admission, Road } from './copy-relays.ts';
import { SocketRelays } from './socket-relays.ts';

/** Real sockets; the machines at both ends are played. */

const RANGE = { host: '127.0.0.1', firstPort: 22_000, lastPort: 22_999 };
const SECRET_BYTES = 32;

let directory: string;
let target: string;
let source: string;
let machine: Server;
/** What came to the target's machine, connection by connection, and how each ended. */
let heard: { socket: Socket; text: string; hasEnded: boolean }[];
let road: Road | undefined;
let admission: Admission;
const sockets: Socket[] = [];

const relays = (clock: ManualClock | typeof realClock = realClock): SocketRelays =>
  new SocketRelays({ clock, random: realRandom, log: silentLogger, user: undefined });
const memoryOf = (count: number) => ({ memory: count, disks: 0 });

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'relays-'));
  // Longer than the name of a socket may be.
  [target, source] = [join(directory, 't'.repeat(100)), join(directory, 's'.repeat(100))];
  mkdirSync(target);
  mkdirSync(source);
  heard = [];
  road = undefined;
  machine = createServer({ allowHalfOpen: true }, (socket) => {
    const one = { socket, text: '', hasEnded: false };
    heard.push(one);
    socket.on('data', (bytes) => (one.text += bytes.toString('latin1')));
    socket.on('end', () => (one.hasEnded = true));
    socket.on('error', () => undefined);
  });
  process.chdir(target);
  await new Promise<void>((resolve) => machine.listen('memory.sock', resolve));
});
afterEach(() => {
  process.chdir('/');
  road?.close();
  admission.close();
  machine.close();
  for (const { socket } of heard) socket.destroy();
  for (const socket of sockets.splice(0)) socket.destroy();
  rmSync(directory, { recursive: true });
});

async function admit(connections = 1, clock?: ManualClock): Promise<void> {
  const waiting = { memory: { path: join(target, 'memory.sock') }, disks: undefined };
  admission = await relays(clock).admit(RANGE, waiting, memoryOf(connections));
}

async function lead(secrets = admission.secrets): Promise<void> {
  road = await relays().lead({ host: RANGE.host, port: admission.port }, secrets, source);
}

/** Somebody who connects, says something, and keeps what it hears. */
function comer(where: { port: number } | { path: string }, text: string | Buffer = ''): Socket & { heard?: string } {
  const socket: Socket & { heard?: string } = createConnection({ host: RANGE.host, ...where });
  sockets.push(socket);
  socket.heard = '';
  socket.on('error', () => undefined);
  socket.on('data', (bytes) => (socket.heard += bytes.toString('latin1')));
  if (text.length > 0) socket.write(text);
  return socket;
}

/** The source's machine connects, as one that was started in its directory does. */
function departs(text: string): Socket & { heard?: string } {
  process.chdir(source);
  const socket = comer({ path: 'outgoing-memory.sock' }, text);
  process.chdir(target);
  return socket;
}

const isOver = (socket: Socket): Promise<unknown> => expect.poll(() => socket.closed, { timeout: 5000 }).toBe(true);
const textIs = (index: number, text: string): Promise<unknown> =>
  expect.poll(() => heard[index]?.text, { timeout: 5000 }).toBe(text);

describe('a plain copy', () => {
  it('goes both ways, all of it, and ends where it ended', async () => {
    await admit();
    await lead();
    const large = 'x'.repeat(5_000_000);
    const machineThere = departs(large);
    await textIs(0, large);
    heard[0]?.socket.write('thanks');
    await expect.poll(() => machineThere.heard).toBe('thanks');
    machineThere.end('bye');
    await expect.poll(() => heard[0]?.hasEnded).toBe(true);
    expect(heard[0]?.text).toBe(`${large}bye`);
    heard[0]?.socket.end();
    await isOver(machineThere);
  });

  it('keeps its connections in order, whichever comes first', async () => {
    await admit(3);
    const [one = '', two = '', three = ''] = admission.secrets.memory.map((secret) =>
      Buffer.from(secret, 'base64').toString('latin1'),
    );
    comer({ port: admission.port }, Buffer.from(`${three}third`, 'latin1'));
    comer({ port: admission.port }, Buffer.from(`${two}second`, 'latin1'));
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(heard).toEqual([]);
    comer({ port: admission.port }, Buffer.from(`${one}first`, 'latin1'));
    await textIs(2, 'third');
    expect(heard.map(({ text }) => text)).toEqual(['first', 'second', 'third']);
  });

  it('breaks on both sides when it breaks', async () => {
    await admit();
    await lead();
    const machineThere = departs('hello');
    await textIs(0, 'hello');
    heard[0]?.socket.destroy();
    await isOver(machineThere);
  });

  it('has a socket at its source that nobody else may use, as long as it is needed', async () => {
    await admit();
    await lead();
    expect(statSync(join(source, 'outgoing-memory.sock')).mode & 0o777).toBe(0o600);
    departs('hello');
    await textIs(0, 'hello');
    await expect.poll(() => statSync(join(source, 'outgoing-memory.sock'), { throwIfNoEntry: false })).toBeUndefined();
  });
});

describe('who is not let in', () => {
  const secretOf = (index = 0): Buffer => Buffer.from(admission.secrets.memory[index] ?? '', 'base64');

  it('knows no secret, half of one, or one that was used; and whoever knows one comes in all the same', async () => {
    await admit(2);
    const wrong = comer({ port: admission.port }, Buffer.alloc(SECRET_BYTES, 7));
    const half = comer({ port: admission.port });
    half.end(secretOf().subarray(0, 7));
    const silent = comer({ port: admission.port });
    await Promise.all([isOver(wrong), isOver(half)]);
    comer({ port: admission.port }, Buffer.concat([secretOf(), Buffer.from('hello')]));
    await textIs(0, 'hello');
    const again = comer({ port: admission.port }, Buffer.concat([secretOf(), Buffer.from('hello')]));
    await isOver(again);
    comer({ port: admission.port }, Buffer.concat([secretOf(1), Buffer.from('more')]));
    await textIs(1, 'more');
    expect(heard).toHaveLength(2);
    expect([wrong, half, again, silent].map((socket) => socket.heard)).toEqual(['', '', '', '']);
    // Nobody is left who could be let in.
    await isOver(silent);
    await isOver(comer({ port: admission.port }, 'anybody there?'));
  });

  it('says nothing for too long', async () => {
    const clock = new ManualClock();
    await admit(1, clock);
    const silent = comer({ port: admission.port }, 'a few bytes');
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(silent.closed).toBe(false);
    clock.advance(5000);
    await isOver(silent);
    comer({ port: admission.port }, Buffer.concat([secretOf(), Buffer.from('hello')]));
    await textIs(0, 'hello');
  });

  it('is one of too many that say nothing: the first of them go', async () => {
    await admit();
    const crowd = Array.from({ length: 80 }, () => comer({ port: admission.port }));
    await isOver(crowd[0] as Socket);
    comer({ port: admission.port }, Buffer.concat([secretOf(), Buffer.from('hello')]));
    await textIs(0, 'hello');
  });

  it('comes when nothing is expected any more', async () => {
    await admit();
    admission.close();
    await isOver(comer({ port: admission.port }, secretOf()));
    expect(heard).toEqual([]);
  });

  it('connects to the machine of a source more often than was agreed on', async () => {
    await admit(2);
    await lead({ ...admission.secrets, memory: admission.secrets.memory.slice(0, 1) });
    departs('hello');
    await textIs(0, 'hello');
    process.chdir(source);
    const late = createConnection('outgoing-memory.sock');
    await new Promise((resolve) => late.once('error', resolve));
    expect(heard).toHaveLength(1);
  });
});

describe('secrets', () => {
  it('are long, and no two are the same', async () => {
    await admit(8);
    const { memory } = admission.secrets;
    expect(new Set(memory).size).toBe(8);
    for (const secret of memory) expect(Buffer.from(secret, 'base64')).toHaveLength(SECRET_BYTES);
  });

  it('are no use where there is no port', async () => {
    await admit();
    const taken = { ...RANGE, firstPort: admission.port, lastPort: admission.port };
    const waiting = { memory: { path: join(target, 'memory.sock') }, disks: undefined };
    await expect(relays().admit(taken, waiting, memoryOf(1))).rejects.toThrow(/no port from \d+ to \d+ is free/);
  });
});
