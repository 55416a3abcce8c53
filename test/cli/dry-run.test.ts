import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { type Finished, runCli } from '../support/cli.ts';
import { Cluster } from '../support/cluster.ts';

/** What would be done, for programs. */

let cluster: Cluster;
beforeAll(async () => {
  cluster = await Cluster.start();
  await cluster.create('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } });
});
afterAll(() => cluster.close());

const godwit = (...args: readonly string[]): Promise<Finished> =>
  runCli([...args, '--data-dir', cluster.godwit.directory], { KUBECONFIG: '' });

describe('drain --dry-run', () => {
  it('prints for programs, and fails where the node would not become empty', async () => {
    const empty = await godwit('drain', 'n1', '--dry-run', '-o', 'json');
    expect(empty).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(empty.stdout)).toEqual({ machines: [], pods: [] });
    const containers = [{ name: 'c', image: 'x' }];
    const spec = { nodeName: 'n1', containers };
    await cluster.create('/api/v1/namespaces/default/pods', {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'bare' },
      spec,
    });
    const { code, stdout, stderr } = await godwit('drain', 'n1', '--dry-run', '-o', 'yaml');
    expect(parse(stdout)).toMatchObject({ machines: [], pods: [{ pod: 'default/bare', kind: 'refuse' }] });
    expect(stderr).toContain('n1 would not become empty; nothing was changed: see to pod default/bare first');
    expect(code).toBe(1);
  });

  it('is the only one that does', async () => {
    expect(await godwit('drain', 'n1', '-o', 'json')).toEqual({
      code: 2,
      stdout: '',
      stderr: 'godwit: -o prints what would be done: give --dry-run with it\n',
    });
  });
});

it('why takes -o wide, which says no more', async () => {
  const [plain, wide] = [await godwit('why', 'node', 'n1'), await godwit('why', 'node', 'n1', '-o', 'wide')];
  expect(wide.code).toBe(0);
  expect(wide.stdout.split('\n')[0]).toBe(plain.stdout.split('\n')[0]);
});
