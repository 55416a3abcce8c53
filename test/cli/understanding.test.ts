import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { parse, stringify } from 'yaml';
import type { Anything } from '../support/api.ts';
import { type Finished, runCli } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { probe } from '../support/guest-manifests.ts';
import { MovingGuests } from '../support/moving-guests.ts';
import { someOf } from '../support/sample.ts';

/** `godwit status`, `queue`, `why` and `migrate --watch` on a real cluster with two real guests, and as a plugin of kubectl. */

vi.setConfig({ testTimeout: 300_000, hookTimeout: 240_000 });

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const PATIENCE_MS = 90_000;
const scratch = mkdtempSync(join(tmpdir(), 'godwit-test-'));

let guests: MovingGuests;
beforeAll(async () => {
  guests = await MovingGuests.start({ nodes: 2 });
  await guests.policy('slow', { pace: 'slow' }, { bandwidthPerMigration: '2Mi' });
  await guests.create('web', probe({ memory: '48Mi', arguments: 'mib=24', evictionStrategy: 'LiveMigrate' }), {
    pace: 'slow',
  });
  await guests.create('db', probe({ evictionStrategy: 'LiveMigrate' }));
  await eventually(async () => expect(await godwit('why', 'web')).toContain('can be live-migrated'), PATIENCE_MS);
});
afterAll(async () => {
  await guests.stop();
  rmSync(scratch, { recursive: true, force: true });
});

const run = (...args: readonly string[]): Promise<Finished> => guests.host.runCli(...args);

/** What a command prints that succeeds. */
const godwit = (...args: readonly string[]): Promise<string> => guests.host.cli(...args);

const json = async (...args: readonly string[]): Promise<Anything> => JSON.parse(await godwit(...args, '-o', 'json'));

const isOver = (name: string): Promise<void> =>
  eventually(async () => {
    const own = (await guests.migrations()).filter(({ spec }) => spec.vmiName === name);
    expect(own.filter(({ status }) => !['Succeeded', 'Failed'].includes(status?.phase))).toEqual([]);
  }, PATIENCE_MS);

describe('a cluster', () => {
  it('is shown in one picture, without colours in a pipe', async () => {
    const text = await godwit('status');
    expect(text).toMatch(/^2 nodes, 2 virtual machines \(2 running\), 0 moving, 0 waiting to move\n/);
    expect(text).toMatch(/^● node-1 {3}Ready/m);
    expect(text).toMatch(/^ {4}default\/web {3}Running$/m);
    expect(text).not.toContain('\u001b');
    const { nodes } = await json('status');
    expect(nodes.map(({ name, isReady }: Anything) => [name, isReady])).toEqual([
      ['node-1', true],
      ['node-2', true],
    ]);
    expect(parse(await godwit('status', '-o', 'yaml')).nodes).toEqual(nodes);
    expect(await godwit('status', '-n', 'kubevirt')).toContain('0 virtual machines (0 running)');
  });

  it('is explained, and nobody is asked to guess', async () => {
    const { node } = await guests.holder('web');
    expect(await godwit('why', 'web')).toMatch(
      new RegExp(`^Virtual machine default/web\nState {4}It runs on ${node}, and can be live-migrated.\n`),
    );
    expect(await godwit('why', `node/${node}`)).toContain('would move');
    expect(await run('why', 'nobody')).toMatchObject({
      code: 1,
      stdout: '',
      stderr:
        "godwit: there is no virtual machine, migration or node nobody in namespace default; 'godwit status' shows all there are\n",
    });
    expect(await run('why', 'pod', 'web')).toMatchObject({ code: 2, stderr: expect.stringContaining('is none of vm') });
    expect(await run('why')).toMatchObject({ code: 2, stderr: expect.stringContaining("(see 'godwit why --help')") });
  });
});

describe('a migration', () => {
  const some = someOf(3, 1);

  some('that waits is in the queue, with what would let it go', async () => {
    await guests.configure({ parallelMigrationsPerCluster: 0 });
    const watching = guests.host.startCli('migrate', 'web', '--watch');
    await watching.printed('default/web: Pending');
    expect(await godwit('queue')).toContain('migrations are paused: parallelMigrationsPerCluster is 0');
    const { limits, waiting } = await json('queue');
    expect(limits.perCluster).toBe(0);
    expect(waiting).toMatchObject([
      { place: 1, virtualMachine: 'default/web', class: 'user-triggered', causes: ['User'] },
    ]);
    expect(await godwit('why', 'web')).toContain('It waits for its turn: it is number 1 in line.');
    expect(await godwit('why', 'migration', waiting[0].migration.split('/')[1])).toContain('Migrations are paused');
    expect(await godwit('status')).toContain('waits to move: migrations are paused');
    watching.child.kill('SIGINT');
    const { code, stderr } = await watching.finished;
    expect(code).toBe(130);
    expect(stderr).toContain("'godwit migrate-cancel web -n default' calls it off");
    await godwit('migrate-cancel', 'web');
    await isOver('web');
    expect(await godwit('queue')).toMatch(/^Nobody waits: /);
  });

  some('is watched to its end, and who waits behind it says so', async () => {
    await guests.configure({ parallelMigrationsPerCluster: 1 });
    const before = await guests.holder('web');
    const watching = guests.host.startCli('migrate', 'web', '--watch');
    await watching.printed(`default/web: Running, ${before.node} → `);
    await godwit('migrate', 'db');
    const { waiting, moving } = await eventually(async () => {
      const queue = await json('queue');
      expect(queue.waiting).toHaveLength(1);
      return queue;
    });
    expect(moving).toMatchObject([{ virtualMachine: 'default/web' }]);
    expect(waiting[0]).toMatchObject({
      virtualMachine: 'default/db',
      why: expect.stringContaining('may move at once in the cluster'),
    });
    expect(waiting[0].behind.join()).toContain('default/web');
    expect(await godwit('why', 'web')).toContain('The guest is being copied');
    expect(await godwit('status')).toMatch(/default\/web {3}\S+ {3}→ node-\d /);
    const { code, stdout } = await watching.finished;
    expect(code).toBe(0);
    expect(stdout).toMatch(/^default\/web: Running, .*\d+%.*\/s, dirtied .*\/s/m);
    expect(stdout).toMatch(/^VM web was migrated to node-\d: the guest stood still for \d+ ms, the copy took \d+s$/m);
    expect((await guests.holder('web')).node).not.toBe(before.node);
    await isOver('db');
    await guests.isWhole('web');
    await guests.isWhole('db');
  });

  some('that fails is an error with its fix', async () => {
    await guests.configure({ parallelMigrationsPerCluster: 1 });
    const watching = guests.host.startCli('migrate', 'db', '--watch', '--addedNodeSelector', 'zone=moon');
    await watching.printed('default/db: Scheduling');
    expect(await godwit('why', 'db')).toContain('No node takes it');
    await godwit('migrate-cancel', 'db');
    const { code, stderr } = await watching.finished;
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^godwit: the migration of db (failed: Migration failed due to being canceled|was called off)/,
    );
  });
});

describe('whoever may see only one namespace', () => {
  it('sees that, and is told what is left out', async () => {
    const { kubectl, godwit: server } = guests.host;
    await kubectl.ok('create rolebinding jane --clusterrole=kubevirt.io:view --user=jane');
    const config = parse(readFileSync(server.kubeconfig, 'utf8')) as { users: { user: Record<string, string> }[] };
    for (const { user } of config.users) user['as'] = 'jane';
    const kubeconfig = join(scratch, 'jane');
    writeFileSync(kubeconfig, stringify(config));
    const { code, stdout } = await runCli(['status', '--kubeconfig', kubeconfig]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^ {4}default\/web {3}Running$/m);
    expect(stdout).toContain('You may not look at nodes');
    const why = await runCli(['why', 'web', '--kubeconfig', kubeconfig]);
    expect(why).toMatchObject({ code: 0, stdout: expect.stringContaining('It runs on node-') });
  });
});

describe('as a plugin of kubectl', () => {
  it('does the same, by the other name, against the cluster of kubectl', async () => {
    const plugin = join(scratch, 'kubectl-godwit');
    writeFileSync(plugin, `#!${process.execPath}\nimport(${JSON.stringify(MAIN)});\n`);
    chmodSync(plugin, 0o755);
    const env = { PATH: `${scratch}:${process.env['PATH'] ?? ''}` };
    const { kubectl } = guests.host;
    expect(await kubectl.ok(['godwit', 'status'], { env })).toContain('2 nodes');
    expect(await kubectl.ok(['godwit', 'migrate', '--help'], { env })).toContain('kubectl godwit migrate myvm --watch');
    expect(await kubectl.fails(['godwit', 'why', 'nobody'], { env })).toContain("'kubectl godwit status' shows all");
    expect(await kubectl.fails(['godwit', 'migrate'], { env })).toContain(
      "kubectl godwit: missing required argument 'vm'\n(see 'kubectl godwit migrate --help')",
    );
  });
});
