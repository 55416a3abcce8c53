import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { realClock } from '../env/real.ts';
import { loadKubeconfig } from './kubeconfig.ts';
import { homeDirectory, systemKubeconfigPorts } from './kubeconfig-system.ts';

const never = new AbortController().signal;
const ports = systemKubeconfigPorts(realClock, { PATH: process.env['PATH'], HOME: '/nowhere', TOKEN: 'secret' });
const sh = (script: string, signal = never) =>
  ports.run({ command: 'sh', args: ['-c', script], environment: ports.environment, signal });

it('runs programs with the environment given and nothing to read', async () => {
  expect(await sh('cat; echo "$TOKEN"; echo oops >&2')).toEqual({ exitCode: 0, output: 'secret\n', errors: 'oops\n' });
  expect(await sh('exit 7')).toEqual({ exitCode: 7, output: '', errors: '' });
  expect(await sh('kill -9 $$')).toMatchObject({ exitCode: null });
  await expect(
    ports.run({ command: 'godwit-no-such-program', args: [], environment: {}, signal: never }),
  ).rejects.toMatchObject({
    code: 'ENOENT',
  });
});

it('finds a home for users whom the machine does not know', () => {
  const unknown = (): never => {
    throw new Error('uv_os_homedir returned ENOENT');
  };
  expect(homeDirectory({}, unknown)).toBe(process.cwd());
  expect(homeDirectory({}, () => '/home/known')).toBe('/home/known');
  expect(homeDirectory({ HOME: '/elsewhere' }, unknown)).toBe('/elsewhere');
});

it('ends programs', async () => {
  const stop = new AbortController();
  const running = sh('exec sleep 60', stop.signal);
  stop.abort();
  await expect(running).rejects.toThrow();
});

it('reads a kubeconfig and runs its program', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'godwit-kubeconfig-'));
  try {
    const apiVersion = 'client.authentication.k8s.io/v1';
    const answer = `{"apiVersion":"${apiVersion}","kind":"ExecCredential","status":{"token":"'"$TOKEN"'"}}`;
    const path = join(directory, 'config');
    await writeFile(join(directory, 'login'), `#!/bin/sh\necho '${answer}'\n`, { mode: 0o700 });
    const config = {
      'current-context': 'c',
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
      clusters: [{ name: 'c', cluster: { server: 'https://example.com' } }],
      users: [{ name: 'u', user: { exec: { apiVersion, command: './login' } } }],
    };
    await writeFile(path, JSON.stringify(config));
    const access = await loadKubeconfig({ ports, path });
    expect(await access.credentials(never)).toEqual({ authorization: 'Bearer secret' });
    await expect(loadKubeconfig({ ports })).rejects.toThrow('/nowhere/.kube/config does not exist');
    await expect(loadKubeconfig({ ports, path: directory })).rejects.toThrow(`cannot read ${directory}: EISDIR`);
  } finally {
    await rm(directory, { recursive: true });
  }
});
