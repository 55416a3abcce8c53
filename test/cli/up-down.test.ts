import { createHash } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Anything } from '../support/api.ts';
import { type Running, runCli, startCli, type Wrap } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { HttpClient } from '../support/http-client.ts';
import { configMap } from '../support/objects.ts';
import { sample, someOf } from '../support/sample.ts';

/** `godwit up` and `godwit down` as processes: what they print, leave behind and end with. */

/** Who owns what others may not use. */
const NOBODY = 65_534;

let scratch = '';
const running: Running[] = [];
const clients: HttpClient[] = [];

beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), 'godwit-test-'));
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  for (const each of running.splice(0)) {
    each.child.kill('SIGKILL');
    await each.finished;
  }
  rmSync(scratch, { recursive: true, force: true });
});

/** Starts, and waits until it serves. */
async function up(directory: string, ...args: string[]): Promise<Running> {
  const started = startCli(['up', '--nodes', '0', '--data-dir', directory, ...args]);
  running.push(started);
  await started.printed('kubectl get namespaces');
  return started;
}

interface Kubeconfig {
  readonly url: string;
  readonly ca: string;
  readonly certificate: string;
  readonly key: string;
}

function kubeconfig(directory: string): Kubeconfig {
  const { clusters, users } = parse(readFileSync(join(directory, 'kubeconfig'), 'utf8'));
  const decode = (text: string): string => Buffer.from(text, 'base64').toString('utf8');
  return {
    url: clusters[0].cluster.server,
    ca: decode(clusters[0].cluster['certificate-authority-data']),
    certificate: decode(users[0].user['client-certificate-data']),
    key: decode(users[0].user['client-key-data']),
  };
}

function client(directory: string): HttpClient {
  const made = new HttpClient(kubeconfig(directory));
  clients.push(made);
  return made;
}

const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';

describe('godwit up', () => {
  it('says where it serves and where the kubeconfig is, and keeps its files to itself', async () => {
    const directory = join(scratch, 'data');
    const { output } = await up(directory, '--listen', '127.0.0.1:0');
    expect(output()).toMatch(/^Godwit serves the Kubernetes API at https:\/\/127\.0\.0\.1:\d+$/m);
    expect(output()).toContain(`Admin kubeconfig: ${directory}/kubeconfig`);
    expect(output()).toContain(`Try: KUBECONFIG=${directory}/kubeconfig kubectl get namespaces`);
    for (const entry of ['', ...readdirSync(directory, { recursive: true })] as string[]) {
      const { mode } = statSync(join(directory, entry));
      const isDirectory = (mode & 0o170_000) === 0o040_000;
      // Through the outermost QEMU's user may pass, where that is somebody else.
      const mask = entry === '' ? 0o766 : 0o777;
      expect([entry, (mode & mask).toString(8)]).toEqual([entry, isDirectory ? '700' : '600']);
    }
    expect((await client(directory).request('GET', '/api/v1/namespaces/default')).status).toBe(200);
  });

  const some = someOf(6, 2);
  some('runs what places pods, and counts what that does', async () => {
    const directory = join(scratch, 'data');
    await up(directory, '--listen', '127.0.0.1:0');
    const body = { metadata: { name: 'homeless' }, spec: { containers: [{ name: 'main', image: 'none' }] } };
    const pods = '/api/v1/namespaces/default/pods';
    (await client(directory).request('POST', pods, { body: { apiVersion: 'v1', kind: 'Pod', ...body } })).expect(201);
    await eventually(async () => {
      const { json } = await client(directory).request('GET', `${pods}/homeless`);
      expect(json.status.conditions).toMatchObject([
        {
          type: 'PodScheduled',
          status: 'False',
          reason: 'Unschedulable',
          message: 'no nodes available to schedule pods',
        },
      ]);
    });
    const metrics = (await client(directory).request('GET', '/metrics')).text;
    expect(metrics).toMatch(/^controller_runtime_reconcile_total\{controller="scheduler",result="success"\} [1-9]/m);
    expect(metrics).toMatch(/^kubevirt_workqueue_adds_total\{name="scheduler"\} [1-9]/m);
    expect(metrics).toMatch(/^apiserver_request_total\{.*verb="POST".*resource="pods"/m);
    const host = String.raw`127\.0\.0\.1:\d+`;
    for (const series of [
      String.raw`requests_total\{code="200",method="GET",host="${host}",resource="nodes",verb="WATCH"\} [1-9]`,
      String.raw`request_latency_seconds_count\{verb="[A-Z]+",url="https://${host}/api/v1/[^"]+"\} [1-9]`,
    ])
      expect(metrics).toMatch(new RegExp(`^kubevirt_rest_client_${series}`, 'm'));
  });

  it.each(sample(['SIGTERM', 'SIGINT'] as const, 1))(
    'stops cleanly on %s, and starts again with all it had',
    async (signal) => {
      const directory = join(scratch, 'data');
      const first = await up(directory, '--listen', '127.0.0.1:0');
      const before = kubeconfig(directory);
      const made = (await client(directory).request('POST', CONFIG_MAPS, { body: configMap('kept') })).expect(201).json;
      first.child.kill(signal);
      const { code, stdout, stderr } = await first.finished;
      expect([code, stderr]).toEqual([0, '']);
      expect(stdout.trimEnd().split('\n').at(-1)).toBe('Stopped.');
      expect(readdirSync(directory)).not.toContain('lock');

      await up(directory);
      expect(kubeconfig(directory)).toEqual(before);
      expect((await client(directory).request('GET', `${CONFIG_MAPS}/kept`)).expect(200).json).toEqual(made);
    },
  );

  some('puts everything away also where it is told to stop twice, as members of a group of processes are', async () => {
    const directory = join(scratch, 'data');
    const { child, finished } = await up(directory, '--listen', '127.0.0.1:0');
    for (let times = 0; times < 2; times++) {
      child.kill('SIGTERM');
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    const { code, stdout } = await finished;
    expect([code, stdout.trimEnd().split('\n').at(-1)]).toEqual([0, 'Stopped.']);
    expect(readdirSync(directory)).not.toContain('lock');
  });

  some('is refused on a directory in use, by the name of the holder', async () => {
    const directory = join(scratch, 'data');
    const { child } = await up(directory, '--listen', '127.0.0.1:0');
    const { url } = kubeconfig(directory);
    const { code, stdout, stderr } = await runCli([
      'up',
      '--nodes',
      '0',
      '--data-dir',
      directory,
      '--listen',
      '127.0.0.1:0',
    ]);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain(`${directory} is in use by process ${child.pid} (running since `);
    expect(stderr).toContain(`serving ${url})`);
    expect(stderr).toContain('godwit down');
    expect(stderr.trimEnd().split('\n')).toHaveLength(1);
    expect((await client(directory).request('GET', '/healthz')).text).toBe('ok');
  });

  some('listens on IPv6', async () => {
    const directory = join(scratch, 'data');
    await up(directory, '--listen', '[::1]:0');
    expect(kubeconfig(directory).url).toMatch(/^https:\/\/\[::1\]:\d+$/);
    expect((await client(directory).request('GET', '/version')).status).toBe(200);
  });

  some('takes the default directory from the environment', async () => {
    const started = startCli(['up', '--nodes', '0', '--listen', '127.0.0.1:0'], {
      GODWIT_DATA_DIR: join(scratch, 'other'),
    });
    running.push(started);
    await started.printed(`Admin kubeconfig: ${join(scratch, 'other')}/kubeconfig`);
  });

  some('writes an audit log of one line per request, without secrets', async () => {
    const directory = join(scratch, 'data');
    const log = join(scratch, 'audit.log');
    const { child, finished } = await up(directory, '--listen', '127.0.0.1:0', '--audit-log', log);
    const api = client(directory);
    const secret = createHash('sha256').update(directory).digest('hex');
    await api.request('POST', '/api/v1/namespaces/default/secrets', {
      body: { metadata: { name: 's' }, stringData: { password: secret } },
    });
    await api.request('GET', '/api/v1/namespaces/default/secrets/s');
    await api.request('GET', '/api/v1/namespaces/default/secrets/none?token=' + secret);
    await new HttpClient({ ...kubeconfig(directory), certificate: undefined, key: undefined, token: secret }).request(
      'GET',
      '/api/v1/pods',
    );
    const stream = await api.watch('/api/v1/namespaces/default/secrets?watch=1&timeoutSeconds=1');
    await stream.ended();
    child.kill('SIGTERM');
    await finished;
    expect((statSync(log).mode & 0o777).toString(8)).toBe('600');
    const text = readFileSync(log, 'utf8');
    expect(text).not.toContain(secret);
    expect(text).not.toContain(Buffer.from(secret).toString('base64'));
    const events = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    for (const event of events)
      expect(event).toMatchObject({ kind: 'Event', apiVersion: 'audit.k8s.io/v1', level: 'Metadata' });
    // The cluster's own loops make requests too.
    const ended = events.filter(({ stage, userAgent }) => stage === 'ResponseComplete' && userAgent === 'test');
    expect(ended.map(({ verb, responseStatus, user }) => `${verb} ${responseStatus.code} ${user.username}`)).toEqual([
      'create 201 kubernetes-admin',
      'get 200 kubernetes-admin',
      'get 404 kubernetes-admin',
      'list 401 system:anonymous',
      'watch 200 kubernetes-admin',
    ]);
    expect(ended[0]).toMatchObject({
      requestURI: '/api/v1/namespaces/default/secrets',
      objectRef: { resource: 'secrets', namespace: 'default', apiVersion: 'v1' },
      sourceIPs: ['127.0.0.1'],
      userAgent: 'test',
      annotations: { 'authorization.k8s.io/decision': 'allow' },
    });
  });
});

describe('output', () => {
  const fromShell = (script: string): Wrap => {
    return (command, args) => ['bash', ['-c', script, 'bash', command, ...args]];
  };

  it('is whole where a pipe takes but a part of it at a time', async () => {
    const whole = join(scratch, 'whole');
    await startCli(['manifests'], {}, fromShell(`exec "$@" > ${whole}`)).finished;
    const { code, stdout } = await startCli(['manifests'], {}, fromShell('set -o pipefail; "$@" | cat')).finished;
    // Pipes hold 64 KiB.
    expect([code, stdout.length > 100_000, stdout]).toEqual([0, true, readFileSync(whole, 'utf8')]);
  });

  it('that nobody reads any more ends a command quietly, and what cannot be written does not', async () => {
    const unread = await startCli(['manifests'], {}, fromShell('set -o pipefail; "$@" | head -n 1')).finished;
    expect(unread).toEqual({ code: 141, stdout: 'apiVersion: apiextensions.k8s.io/v1\n', stderr: '' });
    const { code, stderr } = await startCli(['manifests'], {}, fromShell('exec "$@" > /dev/full')).finished;
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^godwit: not all of it could be printed \(ENOSPC: .*\); make room, or print it elsewhere\n$/,
    );
  });

  it('that nobody reads, and logs that cannot be written, do not end what serves', async () => {
    const directory = join(scratch, 'data');
    const args = ['up', '--nodes', '0', '--data-dir', directory, '--listen', '127.0.0.1:0', '--log-level', 'debug'];
    const started = startCli(args, {}, fromShell('exec "$@" > >(true) 2> /dev/full'));
    running.push(started);
    await eventually(async () => {
      expect(readdirSync(directory)).toContain('kubeconfig');
      expect((await client(directory).request('GET', '/readyz')).text).toBe('ok');
    }, 30_000);
    started.child.kill('SIGTERM');
    expect((await started.finished).code).toBe(0);
  });
});

describe('a port that is taken', () => {
  let holder: Server | undefined;
  const hold = async (port: number): Promise<number> => {
    const server = createServer();
    holder = server;
    return new Promise((resolve) => {
      // Whoever has the default port already serves the purpose as well.
      server.once('error', () => resolve(port));
      server.listen(port, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
    });
  };
  afterEach(() => void holder?.close());

  const some = someOf(3, 1);
  some('is given up when it is only the default', async () => {
    await hold(6443);
    const directory = join(scratch, 'data');
    const { output } = await up(directory);
    expect(output()).toContain('Port 6443 is taken; using a free one.');
    expect(kubeconfig(directory).url).not.toContain(':6443');
    expect((await client(directory).request('GET', '/healthz')).text).toBe('ok');
  });

  some('is an error when it was asked for', async () => {
    const port = await hold(0);
    const { code, stdout, stderr } = await runCli([
      'up',
      '--nodes',
      '0',
      '--data-dir',
      join(scratch, 'data'),
      '--listen',
      `127.0.0.1:${port}`,
    ]);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toBe(
      `godwit: 127.0.0.1:${port} is taken by another program; choose another --listen, or port 0 for a free one\n`,
    );
    expect(readdirSync(join(scratch, 'data'))).not.toContain('lock');
  });

  some('is an error when there is no such address', async () => {
    const { code, stderr } = await runCli(['up', '--data-dir', join(scratch, 'data'), '--listen', '192.0.2.1:0']);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^godwit: cannot listen on 192\.0\.2\.1:0: .*; choose another --listen\n$/);
  });
});

describe('a directory that cannot be used', () => {
  let good = '';
  beforeAll(async () => {
    good = mkdtempSync(join(tmpdir(), 'godwit-test-'));
    const { child, finished } = startCliUntilServing(good);
    await child;
    await finished();
  });
  afterAll(() => rmSync(good, { recursive: true, force: true }));

  function startCliUntilServing(directory: string): { child: Promise<void>; finished: () => Promise<void> } {
    const started = startCli(['up', '--nodes', '0', '--data-dir', directory, '--listen', '127.0.0.1:0']);
    return {
      child: started.printed('Admin kubeconfig:'),
      finished: async () => {
        started.child.kill('SIGTERM');
        await started.finished;
      },
    };
  }

  const copy = (): string => {
    const directory = join(scratch, 'copy');
    mkdirSync(directory, { mode: 0o700 });
    for (const entry of readdirSync(good, { recursive: true, withFileTypes: true })) {
      const from = join(entry.parentPath, entry.name);
      const to = join(directory, from.slice(good.length));
      if (entry.isDirectory()) mkdirSync(to, { mode: 0o700, recursive: true });
      else {
        mkdirSync(join(to, '..'), { mode: 0o700, recursive: true });
        writeFileSync(to, readFileSync(from), { mode: 0o600 });
      }
    }
    return directory;
  };

  /** Damages a directory and answers its path. */
  const cases: readonly [what: string, prepare: () => string, complaint: RegExp][] = [
    [
      'is a file',
      () => {
        const path = join(scratch, 'file');
        writeFileSync(path, 'x');
        return path;
      },
      /cannot use .*file: /,
    ],
    ['cannot be made', () => '/proc/godwit/data', /cannot use \/proc\/godwit\/data: /],
    [
      'has an authority that is none',
      () => {
        const path = copy();
        writeFileSync(join(path, 'pki/cluster-authority.pem'), 'garbage');
        return path;
      },
      /cluster-authority\.pem does not hold a certificate authority.*backup/,
    ],
    [
      'has a key that is none',
      () => {
        const path = copy();
        writeFileSync(join(path, 'pki/service-account-key.pem'), '');
        return path;
      },
      /service-account-key\.pem does not hold/,
    ],
    [
      'has garbage for its data',
      () => {
        const path = copy();
        writeFileSync(join(path, 'data/data.mdb'), Buffer.alloc(100_000, 'garbage'));
        return path;
      },
      /data\b.*(damaged|not a|invalid|INVALID|format)/i,
    ],
    [
      'has a directory where data belongs',
      () => {
        const path = copy();
        rmSync(join(path, 'data'), { recursive: true });
        mkdirSync(join(path, 'data/data.mdb'), { recursive: true });
        return path;
      },
      /data/,
    ],
    [
      'has a file where its directories belong',
      () => {
        const path = join(scratch, 'data');
        mkdirSync(path);
        writeFileSync(join(path, 'pki'), '');
        return path;
      },
      /pki/,
    ],
  ];

  it.each(sample(cases, 3))('because it %s is refused in one sentence', async (_what, prepare, complaint) => {
    const { code, stdout, stderr } = await runCli([
      'up',
      '--nodes',
      '0',
      '--data-dir',
      prepare(),
      '--listen',
      '127.0.0.1:0',
    ]);
    expect(stderr).toMatch(complaint);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr.trimEnd().split('\n')).toHaveLength(1);
    expect(stderr).toMatch(/^godwit: /);
  });

  it('because an entry of its log is damaged is refused, not repaired by forgetting', async () => {
    const directory = copy();
    const file = join(directory, 'data/data.mdb');
    const bytes = readFileSync(file);
    // The header of some entry: every copy of it, since pages are written anew and old ones lie about.
    const needle = Buffer.from('["put",');
    for (let at = bytes.indexOf(needle); at >= 0; at = bytes.indexOf(needle, at + 1)) bytes.fill('#', at, at + 5);
    writeFileSync(file, bytes);
    const { code, stderr } = await runCli(['up', '--nodes', '0', '--data-dir', directory, '--listen', '127.0.0.1:0']);
    expect(stderr).toMatch(/^godwit: .*log entry of revision \d+ is damaged.*\n$/);
    expect(code).toBe(1);
  });
});

describe('the command line', () => {
  const refusals: readonly [args: string[], complaint: string][] = [
    [['up', '--listen', '6443'], 'give HOST:PORT'],
    [['up', '--listen', '127.0.0.1:99999'], 'give HOST:PORT'],
    [['up', '--nodes', '-1'], '--nodes'],
    [['up', '--nodes', 'many'], '--nodes'],
    [['up', '--log-level', 'loud'], 'Allowed choices are debug, info, warn, error'],
    [['up', '--colour'], "unknown option '--colour'"],
    [['up', 'here'], 'too many arguments'],
    [['sideways'], "unknown command 'sideways'"],
    [['down', '--force'], "unknown option '--force'"],
  ];

  it.each(sample(refusals, 3))('%j is refused with help', async (args, complaint) => {
    const { code, stdout, stderr } = await runCli(args, { GODWIT_DATA_DIR: join(scratch, 'data') });
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(complaint);
    expect(stderr).toContain("(see 'godwit");
  });

  it('may have options before the command', async () => {
    const { code, stderr } = await runCli(['--data-dir', join(scratch, 'none'), '-n', 'shop', 'start', 'web']);
    expect([code, stderr]).toEqual([1, expect.stringContaining(`${join(scratch, 'none')}/kubeconfig`)]);
  });

  it('helps', async () => {
    const { code, stdout } = await runCli(['up', '--help']);
    expect(code).toBe(0);
    for (const option of ['--nodes', '--data-dir', '--listen', '--audit-log', '--log-level', 'Example:'])
      expect(stdout).toContain(option);
    const alone = await runCli([]);
    expect(alone.stdout + alone.stderr).toContain('Usage: godwit');
  });
});

describe('godwit down', () => {
  it('stops what runs in the directory, and says so', async () => {
    const directory = join(scratch, 'data');
    const { child, finished } = await up(directory, '--listen', '127.0.0.1:0');
    const { code, stdout, stderr } = await runCli(['down', '--data-dir', directory]);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toBe(`Stopped the control plane in ${directory} (process ${child.pid}).\n`);
    expect((await finished).code).toBe(0);
  });

  const commands = [
    ['down'],
    ['up', '--nodes', '0'],
    ['image', 'list'],
    ['image', 'import', 'web', process.execPath],
    ['token', 'list'],
  ];

  it.each(sample(commands, 2))(
    "says in a sentence whose a directory is that it may not use: '%s %s'",
    async (...words) => {
      const directory = join(scratch, 'theirs');
      mkdirSync(join(directory, 'images'), { recursive: true });
      writeFileSync(join(directory, 'kubeconfig'), '');
      chmodSync(directory, 0);
      // Nothing is closed to root, which has to give that up first. Nobody else might reach the program itself.
      const isRoot = process.getuid?.() === 0;
      if (isRoot) chownSync(directory, NOBODY, NOBODY);
      const withoutPower = '--bounding-set=-dac_override,-dac_read_search,-fowner';
      const wrap: Wrap = (command, args) =>
        isRoot ? ['setpriv', [withoutPower, command, ...args]] : [command, [...args]];
      const { finished } = startCli([...words.filter(Boolean), '--data-dir', directory], {}, wrap);
      const { code, stdout, stderr } = await finished;
      chmodSync(directory, 0o700);
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toMatch(/^godwit: permission denied: \/.*; .*--data-dir\n$/);
    },
  );

  it('says when nothing runs there, also after a kill -9', async () => {
    const directory = join(scratch, 'data');
    expect(await runCli(['down', '--data-dir', directory])).toEqual({
      code: 0,
      stdout: `Nothing runs in ${directory}.\n`,
      stderr: '',
    });
    const { child, finished } = await up(directory, '--listen', '127.0.0.1:0');
    child.kill('SIGKILL');
    await finished;
    expect((await runCli(['down', '--data-dir', directory])).stdout).toBe(`Nothing runs in ${directory}.\n`);
    await up(directory);
  });
});

describe('stopping', () => {
  const some = someOf(3, 1);
  some('ends watches cleanly, and does not wait for idle connections', async () => {
    const directory = join(scratch, 'data');
    const { child, finished } = await up(directory, '--listen', '127.0.0.1:0');
    const streams = await Promise.all([1, 2, 3].map(() => client(directory).watch(`${CONFIG_MAPS}?watch=1`)));
    // A connection that has done its work and is kept.
    await client(directory).request('GET', '/healthz');
    child.kill('SIGTERM');
    for (const stream of streams) expect(await stream.ended()).toBe('clean');
    const { code, stdout } = await finished;
    expect([code, stdout.includes('Stopped.')]).toEqual([0, true]);
  });

  some('finishes what it has begun: a list under way is whole', async () => {
    const directory = join(scratch, 'data');
    const { child, finished } = await up(directory, '--listen', '127.0.0.1:0');
    const api = client(directory);
    const data = { text: 'x'.repeat(500_000) };
    for (let index = 0; index < 10; index++)
      (await api.request('POST', CONFIG_MAPS, { body: configMap(`large-${index}`, { data }) })).expect(201);
    const lists = Array.from({ length: 2 }, () => api.request('GET', CONFIG_MAPS));
    const answer = await api.request('GET', '/healthz');
    expect(answer.status).toBe(200);
    child.kill('SIGTERM');
    for (const list of await Promise.all(lists)) {
      const names: string[] = list.expect(200).json.items.map(({ metadata }: Anything) => metadata.name);
      expect(names.filter((name) => name.startsWith('large-'))).toHaveLength(10);
    }
    expect((await finished).code).toBe(0);
  });

  some('answers the writes that it has taken', async () => {
    const directory = join(scratch, 'data');
    const { child, finished } = await up(directory, '--listen', '127.0.0.1:0');
    const api = client(directory);
    await api.request('GET', '/healthz');
    const acknowledged: string[] = [];
    const writes = Array.from({ length: 300 }, async (_, index) => {
      const name = `write-${index}`;
      try {
        if ((await api.request('POST', CONFIG_MAPS, { body: configMap(name) })).status === 201) acknowledged.push(name);
      } catch {
        // Not taken any more.
      }
    });
    await Promise.race(writes);
    child.kill('SIGTERM');
    await Promise.all(writes);
    expect((await finished).code).toBe(0);
    await up(directory);
    const names = (await client(directory).request('GET', CONFIG_MAPS)).json.items.map(
      (item: { metadata: { name: string } }) => item.metadata.name,
    );
    expect(names).toEqual(expect.arrayContaining(acknowledged));
    // What was stored was also acknowledged: the server does not go away between the two.
    expect(names.filter((name: string) => name.startsWith('write-')).sort()).toEqual(acknowledged.sort());
  });
});
