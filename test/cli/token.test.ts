import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { Cluster } from '../support/cluster.ts';
import { type Finished, runCli } from '../support/cli.ts';
import { HttpClient } from '../support/http-client.ts';

/** `godwit token`: what is made is what the server accepts, until it ends or is deleted. */

const TOKENS = '/api/v1/namespaces/kube-system/secrets';

let cluster: Cluster;
beforeAll(async () => {
  cluster = await Cluster.start();
});
afterAll(() => cluster.close());

const token = (...args: readonly string[]): Promise<Finished> =>
  runCli(['token', ...args, '--data-dir', cluster.godwit.directory], { KUBECONFIG: '' });

/** What the server says to whoever shows this. */
async function statusOf(shown: string): Promise<number> {
  const { url, ca } = cluster.godwit.access();
  const client = new HttpClient({ url, ca, token: shown });
  const { status } = await client.request('GET', '/api');
  client.close();
  return status;
}

async function made(...args: readonly string[]): Promise<{ shown: string; stdout: string }> {
  const { code, stdout, stderr } = await token('create', ...args);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return { shown: /--token (\S+)/.exec(stdout)?.[1] ?? '', stdout };
}

describe('godwit token', () => {
  it('makes a token, and says how a machine joins with it', async () => {
    const { shown, stdout } = await made('--description', 'rack 7');
    const { url } = cluster.godwit.access();
    const command = stdout.split('\n').find((line) => line.includes('godwit agent'));
    expect(command).toMatch(
      new RegExp(
        `^  godwit agent --name \\S+ --server ${url} --token [a-z0-9]{6}\\.[a-z0-9]{16} --ca-hash sha256:[0-9a-f]{64}$`,
      ),
    );
    expect(stdout).toContain('Only this machine can reach');
    expect(await statusOf(shown)).toBe(200);
    const { stdout: list } = await token('list');
    expect(list).toMatch(new RegExp(`^TOKEN +ENDS IN +DESCRIPTION\n${shown} +(23h|24h)\\S* +rack 7$`, 'm'));
  });

  it('is made and listed for programs, and with more for people', async () => {
    const { stdout } = await token('create', '--description', 'rack 8', '-o', 'json');
    const value = JSON.parse(stdout) as { token: string; expiration: string; command: string };
    const { url } = cluster.godwit.access();
    expect(value).toMatchObject({ description: 'rack 8', server: url });
    expect(value.command).toContain(`--server ${url} --token ${value.token} --ca-hash sha256:`);
    expect(await statusOf(value.token)).toBe(200);
    const yaml = parse((await token('create', '--ttl', '0', '-o', 'yaml')).stdout) as { token: string };
    expect(yaml).not.toHaveProperty('expiration');
    const json = JSON.parse((await token('list', '-o', 'json')).stdout) as { token: string; endsIn: string }[];
    expect(json).toContainEqual(expect.objectContaining({ token: value.token, expiration: value.expiration }));
    expect(json).toContainEqual(expect.objectContaining({ token: yaml.token, endsIn: '<never>' }));
    const again = parse((await token('list', '-o', 'yaml')).stdout) as { token: string }[];
    expect(again.map((each) => each.token)).toEqual(json.map((each) => each.token));
    const { stdout: wide } = await token('list', '-o', 'wide');
    expect(wide).toMatch(/^TOKEN +ENDS IN +DESCRIPTION +ENDS AT +GROUPS$/m);
    expect(wide).toContain(value.expiration);
    expect(wide).toMatch(new RegExp(`^${value.token} .* system:bootstrappers:godwit$`, 'm'));
    expect((await token('create', '-o', 'wide')).stdout).toMatch(/^To join a machine/);
  });

  it('ends when it was to end, and goes', async () => {
    const { shown, stdout } = await made('--ttl', '0', '--server', 'https://api.example.com:6443');
    expect(stdout).toMatch(
      /^  godwit agent --name \S+ --address \$\(hostname .*\) --server https:\/\/api\.example\.com:6443 /m,
    );
    expect(stdout).not.toContain('Only this machine');
    const path = `${TOKENS}/bootstrap-token-${shown.slice(0, 6)}`;
    expect((await cluster.get(path)).data.expiration).toBeUndefined();
    await cluster.merge(path, { stringData: { expiration: '2020-01-01T00:00:00Z' } });
    expect(await statusOf(shown)).toBe(401);
    await expect.poll(async () => (await cluster.api.request('GET', path)).status).toBe(404);
  });

  it('deletes tokens, whole or by their beginning', async () => {
    const [{ shown: one }, { shown: two }] = [await made(), await made('--ttl', '90m')];
    expect(await token('delete', one)).toMatchObject({ code: 0, stdout: `Deleted the token ${one.slice(0, 6)}.\n` });
    expect(await token('delete', two.slice(0, 6))).toMatchObject({ code: 0 });
    expect(await statusOf(one)).toBe(401);
    expect(await token('delete', one)).toMatchObject({
      code: 1,
      stderr: `godwit: there is no token ${one.slice(0, 6)}; see 'godwit token list'\n`,
    });
  });

  it.each<[string, string[], number, RegExp]>([
    ['a lifetime that is none', ['create', '--ttl', 'soon'], 2, /give a duration such as 24h/],
    ['what is no token', ['delete', 'x'], 2, /is no token/],
    ['nothing to do', ['delete'], 2, /missing required argument/],
  ])('refuses %s', async (_, args, code, complaint) => {
    const outcome = await token(...args);
    expect(outcome.code).toBe(code);
    expect(outcome.stderr).toMatch(complaint);
  });
});
