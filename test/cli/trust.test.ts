import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { Cluster } from '../support/cluster.ts';
import { type Finished, runCli } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';

/** `godwit trust`, as users of two clusters type it; what it leads to is tested beside its code. */

let east: Cluster;
let west: Cluster;
beforeAll(async () => {
  [east, west] = await Promise.all([Cluster.start(), Cluster.start()]);
});
afterAll(() => Promise.all([east.close(), west.close()]));

const trust = (cluster: Cluster, ...args: readonly string[]): Promise<Finished> =>
  runCli(['trust', ...args, '--data-dir', cluster.godwit.directory], { KUBECONFIG: '' });

/** What a cluster exports, in a file. */
async function exported(cluster: Cluster, name: string): Promise<string> {
  const finished = await trust(cluster, 'export', '--name', name);
  expect(finished).toMatchObject({ code: 0, stderr: '' });
  const { stdout } = finished;
  const file = join(cluster.godwit.directory, `${name}.yaml`);
  writeFileSync(file, stdout);
  return file;
}

describe('godwit trust', () => {
  it('is exchanged between two clusters, shown, renewed and revoked', async () => {
    const file = await exported(east, 'east');
    expect((await trust(west, 'list')).stdout).toMatch(/^No cluster is trusted/);
    const imported = await trust(west, 'import', file);
    expect(imported).toMatchObject({ code: 0, stderr: '' });
    expect(imported.stdout).toMatch(
      /^The cluster east \([0-9a-f-]{36}\) is trusted now\.\nFingerprint \(SHA-256\): [0-9A-F:]{95}\n/,
    );
    expect((await trust(west, 'list')).stdout).toMatch(
      /^NAME +CLUSTER +STATE +ENDS IN\neast +[0-9a-f-]{36} +Trusted +36\dd\n$/,
    );
    expect((await trust(west, 'import', file)).stdout).toContain('was trusted already');
    expect(JSON.parse((await trust(west, 'list', '-o', 'json')).stdout)).toMatchObject([
      { name: 'east', state: 'Trusted' },
    ]);
    expect(parse((await trust(west, 'list', '-o', 'yaml')).stdout)).toMatchObject([{ name: 'east', state: 'Trusted' }]);
    expect((await trust(west, 'list', '-o', 'wide')).stdout).toMatch(
      /^NAME +CLUSTER +STATE +ENDS IN +FINGERPRINTS \(SHA-256\)\neast .* [0-9A-F:]{95}\n$/,
    );
    const revoked = await trust(west, 'revoke', 'east');
    expect(revoked).toMatchObject({ code: 0, stderr: '' });
    expect(revoked.stdout).toMatch(/^Nothing new begins with east /);
    // Nothing is on the way to or from it.
    await eventually(async () => expect((await trust(west, 'list')).stdout).toMatch(/^No cluster is trusted/), 30_000);
  });

  it('says what is wrong in a sentence', async () => {
    const file = await exported(east, 'east');
    for (const [args, message] of [
      [['import', file], /^godwit: this is what this very cluster exports/],
      [['import', join(east.godwit.directory, 'none')], /^godwit: cannot read .*ENOENT/],
      [['import', join(east.godwit.directory, 'kubeconfig')], /^godwit: .* cannot be imported: it is no ClusterTrust/],
      [['revoke', 'west'], /^godwit: no cluster that is trusted is called west/],
      [['export', '--name', 'No Name'], /^godwit: "No Name" is no name for a cluster/],
    ] as const) {
      const { code, stdout, stderr } = await trust(east, ...args);
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toMatch(message);
    }
    expect((await runCli(['trust', 'import'])).code).toBe(2);
  });
});
