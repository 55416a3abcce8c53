import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { stringify } from 'yaml';
import { withPlainBooleans } from '../../src/cli/boolean-arguments.ts';
import { UserError } from '../../src/cli/failure.ts';
import { withOptionsBehind } from '../../src/cli/leading-options.ts';
import { program } from '../../src/cli/program.ts';
import { type Finished, runCli } from '../support/cli.ts';
import { RecordingServer } from '../support/recording-server.ts';

/** virtctl's verbs with virtctl's arguments: what is asked of the API server, and what is said of it. */

const SUBRESOURCES = '/apis/subresources.kubevirt.io/v1/namespaces/default';
const MACHINE = `PUT ${SUBRESOURCES}/virtualmachines/web`;
const GUEST = `PUT ${SUBRESOURCES}/virtualmachineinstances/web`;
const MIGRATIONS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstancemigrations';
const GUESTS = '/apis/kubevirt.io/v1/virtualmachineinstances';
const DRY = { dryRun: ['All'] };
const DELETION = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid: 'u1' } };
const ALL = 'Dry Run execution\n';

let server: RecordingServer;
const directory = mkdtempSync(join(tmpdir(), 'godwit-virtctl-'));
const kubeconfig = join(directory, 'kubeconfig');
beforeAll(async () => {
  server = await RecordingServer.start();
  writeFileSync(join(directory, 'ca.crt'), server.authorityPem);
  const cluster = { server: server.url, 'certificate-authority': 'ca.crt' };
  const named = { clusters: [{ name: 'c', cluster }], contexts: [{ name: 'c', context: { cluster: 'c' } }] };
  writeFileSync(kubeconfig, stringify({ ...named, 'current-context': 'c' }));
  const metadata = { name: 'm1', namespace: 'default', uid: 'u1' };
  const migration = { metadata, spec: { vmiName: 'web' }, status: { phase: 'Running' } };
  const list = { apiVersion: 'kubevirt.io/v1', metadata: { resourceVersion: '1' } };
  server.answers.set(`GET ${MIGRATIONS}`, { body: { ...list, items: [migration] } });
  const guest = (name: string, evacuationNodeName?: string): object => ({
    metadata: { name, namespace: 'default' },
    spec: {},
    status: { evacuationNodeName },
  });
  server.answers.set(`GET ${GUESTS}`, { body: { ...list, items: [guest('web', 'n1'), guest('other')] } });
  server.answers.set(`GET ${GUESTS.replace('/v1/', '/v1/namespaces/default/')}/web`, { body: guest('web') });
});
beforeEach(() => void (server.requests.length = 0));
afterAll(async () => {
  await server.stop();
  rmSync(directory, { recursive: true });
});

/** What a command prints, which runs in this process: there are many. */
async function printed(...args: readonly string[]): Promise<string> {
  const written: string[] = [];
  const spy = vi.spyOn(process.stdout, 'write').mockImplementation((text) => written.push(String(text)) > 0);
  try {
    const typed = withOptionsBehind([...args, '--kubeconfig', kubeconfig], program);
    await program.parseAsync(withPlainBooleans(typed, program), { from: 'user' });
    return written.join('');
  } finally {
    spy.mockRestore();
  }
}

/** A command of somebody who has no kubeconfig. */
const godwit = (...args: readonly string[]): Promise<Finished> =>
  runCli([...args, '-s', server.url, '--certificate-authority', join(directory, 'ca.crt')], {
    KUBECONFIG: '',
    GODWIT_DATA_DIR: join(directory, 'none'),
    HOME: directory,
  });

type Asked = readonly (readonly [request: string, body?: unknown])[];

describe('godwit, as virtctl', () => {
  it.each<[argv: string, asked: Asked, words: string]>([
    ['start web', [[`${MACHINE}/start`, {}]], 'VM web was scheduled to start\n'],
    ['start web --paused', [[`${MACHINE}/start`, { paused: true }]], 'VM web was scheduled to start\n'],
    [
      'start --paused=true web --dry-run',
      [[`${MACHINE}/start`, { paused: true, ...DRY }]],
      `${ALL}VM web was scheduled to start\n`,
    ],
    ['stop web', [[`${MACHINE}/stop`, {}]], 'VM web was scheduled to stop\n'],
    ['stop web --force --grace-period 0', [[`${MACHINE}/stop`, { gracePeriod: 0 }]], 'VM web was scheduled to stop\n'],
    ['stop web --dry-run=true', [[`${MACHINE}/stop`, DRY]], `${ALL}VM web was scheduled to stop\n`],
    ['restart web', [[`${MACHINE}/restart`, {}]], 'VM web was scheduled to restart\n'],
    [
      'restart web --force --grace-period=0',
      [[`${MACHINE}/restart`, { gracePeriodSeconds: 0 }]],
      'VM web was scheduled to restart\n',
    ],
    ['restart web --dry-run', [[`${MACHINE}/restart`, DRY]], `${ALL}VM web was scheduled to restart\n`],
    ['pause vm web', [[`${GUEST}/pause`, {}]], 'VMI web was scheduled to pause\n'],
    ['pause vmi web', [[`${GUEST}/pause`, {}]], 'VMI web was scheduled to pause\n'],
    ['pause vm web --dry-run', [[`${GUEST}/pause`, DRY]], `${ALL}VMI web was scheduled to pause\n`],
    ['unpause vm web', [[`${GUEST}/unpause`, {}]], 'VMI web was scheduled to unpause\n'],
    ['unpause vmi web --dry-run', [[`${GUEST}/unpause`, DRY]], `${ALL}VMI web was scheduled to unpause\n`],
    ['migrate web', [[`${MACHINE}/migrate`, {}]], 'VM web was scheduled to migrate\n'],
    [
      'migrate web --addedNodeSelector zone=b,disk=ssd',
      [[`${MACHINE}/migrate`, { addedNodeSelector: { zone: 'b', disk: 'ssd' } }]],
      'VM web was scheduled to migrate\n',
    ],
    ['migrate web --dry-run', [[`${MACHINE}/migrate`, DRY]], `${ALL}VM web was scheduled to migrate\n`],
    [
      'migrate-cancel web',
      [[`GET ${MIGRATIONS}`], [`DELETE ${MIGRATIONS}/m1`, DELETION]],
      'VM web was scheduled to migrate-cancel\n',
    ],
    [
      'migrate-cancel web --dry-run',
      [[`GET ${MIGRATIONS}`], [`DELETE ${MIGRATIONS}/m1`, { ...DELETION, ...DRY }]],
      `${ALL}VM web was scheduled to migrate-cancel\n`,
    ],
    ['evacuate-cancel vm web', [[`${MACHINE}/evacuate/cancel`, {}]], 'VM default/web was canceled evacuation\n'],
    ['evacuate-cancel vmi web', [[`${GUEST}/evacuate/cancel`, {}]], 'VMI default/web was canceled evacuation\n'],
    [
      'evacuate-cancel vm web --dry-run',
      [[`${MACHINE}/evacuate/cancel`, DRY]],
      `${ALL}VM default/web was canceled evacuation\n`,
    ],
    [
      'evacuate-cancel node n1',
      [[`GET ${GUESTS}`], [`${GUEST}/evacuate/cancel`, { evacuationNodeName: 'n1' }]],
      'VMI default/web was canceled evacuation\n',
    ],
    [
      'evacuate-cancel node n1 --dry-run',
      [[`GET ${GUESTS}`], [`${GUEST}/evacuate/cancel`, { ...DRY, evacuationNodeName: 'n1' }]],
      `${ALL}VMI default/web was canceled evacuation\n`,
    ],
  ])('%s', async (argv, asked, words) => {
    expect(await printed(...argv.split(' '))).toBe(words);
    const seen = server.requests.map(({ method, path, body }) => [`${method} ${path}`, body]);
    expect(seen).toEqual(
      asked.map(([request, body]) => [request.startsWith('GET') ? expect.stringContaining(request) : request, body]),
    );
  });

  it.each<[argv: string, code: number, message: string, words: string]>([
    [
      'evacuate-cancel vm web',
      409,
      'its pod p is terminating: it has to move, or is shut down with it',
      "its pod p is terminating: it has to move, or is shut down with it; 'godwit why web' says how far that is",
    ],
    [
      'evacuate-cancel node n1',
      409,
      'it has to leave node "n2", not "n1"',
      'VMI default/web: it has to leave node "n2", not "n1"; \'godwit why web\' says which one it has to leave, and why',
    ],
    [
      'evacuate-cancel node n1',
      500,
      'no',
      'VMI default/web: no; try again, and look at the log of the API server if it stays so',
    ],
    [
      'migrate-cancel other',
      200,
      '',
      "Found no migration to cancel for other; 'godwit why other -n default' says where it is, and how",
    ],
  ])('%s, refused with %i', async (argv, code, message, words) => {
    server.answers.set('PUT ', { code, body: { kind: 'Status', code, message } });
    await expect(printed(...argv.split(' '))).rejects.toThrow(new UserError(words));
    server.answers.delete('PUT ');
  });

  it('console --timeout 1 web', async () => {
    const { code, stderr } = await godwit('console', '--timeout', '1', 'web');
    expect(stderr).toContain('Successfully connected to web console. Press Ctrl+] or Ctrl+5 to exit console.');
    expect(code).toBe(0);
    expect(server.requests.map(({ method, path }) => `${method} ${path}`)).toContain(
      `${GUEST.replace('PUT', 'GET')}/console`,
    );
  });
});

describe("kubectl's options", () => {
  it('say who asks, and as whom', async () => {
    const flags = ['--token', 'abc', '--as', 'jane', '--as-group', 'a', '--as-group', 'b', '--as-uid', '7'];
    expect(await godwit(...flags, 'start', 'web')).toMatchObject({ code: 0, stderr: '' });
    expect(server.requests[0]?.headers).toMatchObject({
      authorization: 'Bearer abc',
      'impersonate-user': 'jane',
      'impersonate-group': 'a, b',
      'impersonate-uid': '7',
    });
  });

  it('say how the server is recognised', async () => {
    const place = ['--server', server.url];
    const environment = { KUBECONFIG: '', GODWIT_DATA_DIR: join(directory, 'none'), HOME: directory };
    expect((await runCli(['start', 'web', ...place], environment)).stderr).toContain('cannot talk to the API server');
    const insecure = await runCli(['start', 'web', ...place, '--insecure-skip-tls-verify'], environment);
    expect(insecure).toMatchObject({ code: 0, stderr: '' });
    const other = await godwit('start', 'web', '--tls-server-name', 'elsewhere');
    expect(other.stderr).toContain('elsewhere');
  });

  it('are printed once', async () => {
    const { stdout } = await runCli(['options']);
    expect(stdout).toMatch(/^ {2}-s, --server <url> {2,}where the API server is$/m);
    const { stdout: help } = await runCli(['start', '--help']);
    expect(help).toContain("see 'godwit options'");
    expect(help).not.toContain('--as-uid');
  });
});
