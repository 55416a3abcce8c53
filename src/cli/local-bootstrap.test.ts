import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { bootstrapTokenEndMs } from '../api/bootstrap-token.ts';
import { testEnv } from '../env/test.ts';
import type { Client } from '../kube/client.ts';
import { LocalBootstrap } from './local-bootstrap.ts';

let directory = '';
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'godwit-test-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const ADMIN = stringify({
  clusters: [{ name: 'godwit', cluster: { server: 'https://127.0.0.1:6443' } }],
  users: [{ name: 'admin', user: { 'client-key-data': 'very secret' } }],
});

interface Applied {
  readonly type: string;
  readonly data: Readonly<Record<string, string>>;
}

function scene() {
  const env = testEnv();
  const applied: Applied[] = [];
  const patch = (...[, , , { body }]: Parameters<Client['patch']>): Promise<unknown> => {
    applied.push(body as unknown as Applied);
    return Promise.resolve();
  };
  const find = (): Promise<unknown> => Promise.resolve(applied.length > gone.count ? {} : undefined);
  const gone = { count: 0 };
  const path = join(directory, 'bootstrap-kubeconfig');
  const client = { patch, find } as unknown as Client;
  const tokens = new LocalBootstrap({ env, client, adminKubeconfig: ADMIN, path });
  const dataOf = (key: string): string => Buffer.from(applied.at(-1)?.data[key] ?? '', 'base64').toString();
  const tokenInFile = (): string => parse(readFileSync(path, 'utf8')).users[0].user.token;
  const forget = (): void => void (gone.count = applied.length);
  return { env, applied, path, forget, renew: () => tokens.renew(new AbortController().signal), dataOf, tokenInFile };
}

describe('what the nodes of this machine join with', () => {
  it('is a token that ends soon, in a kubeconfig without the rights of an admin', async () => {
    const { env, renew, dataOf, path, tokenInFile } = scene();
    await renew();
    expect(tokenInFile()).toBe(`${dataOf('token-id')}.${dataOf('token-secret')}`);
    expect(bootstrapTokenEndMs(dataOf('expiration')) - env.clock.now()).toBeLessThanOrEqual(15 * 60_000);
    expect(readFileSync(path, 'utf8')).not.toContain('very secret');
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });
  it('is made once for agents that start together, and anew once it is about to end', async () => {
    const { env, applied, renew, tokenInFile } = scene();
    await Promise.all([renew(), renew(), renew()]);
    await renew();
    expect(applied).toHaveLength(1);
    const first = tokenInFile();
    env.clock.advance(11 * 60_000);
    await renew();
    expect(applied).toHaveLength(2);
    expect(tokenInFile()).not.toBe(first);
  });
  it('is made anew when somebody has deleted it', async () => {
    const { applied, renew, forget } = scene();
    await renew();
    forget();
    await renew();
    await renew();
    expect(applied).toHaveLength(2);
  });
});
