import { once } from 'node:events';
import { chmodSync, mkdtempSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { leaveSocketTo } from './private-socket.ts';

const directory = mkdtempSync(join(tmpdir(), 'sockets-'));
const own = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
const modeOf = (path: string): number => statSync(path).mode & 0o777;

it('leaves a socket to its user alone, and nothing else that was put in its place', async () => {
  const [socket, elsewhere, link] = ['socket', 'elsewhere', 'link'].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ];
  const server = createServer().listen(socket);
  await once(server, 'listening');
  chmodSync(socket, 0o777);
  writeFileSync(elsewhere, '', { mode: 0o644 });
  for (const to of [socket, elsewhere]) {
    symlinkSync(to, `${link}-${modeOf(to)}`);
    await expect(leaveSocketTo(`${link}-${modeOf(to)}`, own)).rejects.toThrow('no socket');
  }
  await expect(leaveSocketTo(elsewhere, own)).rejects.toThrow('no socket');
  expect([modeOf(socket), modeOf(elsewhere)]).toEqual([0o777, 0o644]);
  await leaveSocketTo(socket, own);
  expect(modeOf(socket)).toBe(0o600);
  server.close();
});
