import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { ManualClock } from '../env/test.ts';
import { loadKubeconfig, podAccess } from './kubeconfig.ts';
import { KubeconfigError, type KubeconfigPorts, type Program, type ProgramResult } from './kubeconfig-ports.ts';

const never = new AbortController().signal;
const PEM = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
const base64 = (text: string) => Buffer.from(text).toString('base64');

interface Machine extends KubeconfigPorts {
  readonly clock: ManualClock;
  readonly files: Map<string, string>;
  readonly runs: Program[];
  result: ProgramResult | Error;
}

/** A machine with nothing on it but what the test puts there. */
function machine(files: Record<string, string | object>, environment: Record<string, string> = {}): Machine {
  const texts = new Map(
    Object.entries(files).map(([path, file]) => [path, typeof file === 'string' ? file : stringify(file)]),
  );
  const runs: Program[] = [];
  const ports: Machine = {
    clock: new ManualClock(),
    environment,
    homeDirectory: '/home/me',
    files: texts,
    runs,
    result: new Error('no program'),
    readFile: async (path) => {
      const text = texts.get(path);
      if (text === undefined) throw Object.assign(new Error('ENOENT: no such file'), { code: 'ENOENT' });
      return text;
    },
    run: async (program) => {
      runs.push(program);
      if (ports.result instanceof Error) throw ports.result;
      return ports.result;
    },
  };
  return ports;
}

/** A kubeconfig of one cluster, one user, one context. */
function config(user: object = {}, cluster: object = {}, context: object = {}): object {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'here',
    clusters: [{ name: 'c', cluster: { server: 'https://example.com:6443', ...cluster } }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'here', context: { cluster: 'c', user: 'u', ...context } }],
  };
}

const CONFIG = '/home/me/.kube/config';

async function load(ports: Machine, options: { path?: string; context?: string } = {}) {
  const access = await loadKubeconfig({ ports, ...options });
  return { access, credentials: () => access.credentials(never) };
}

async function failure(promise: Promise<unknown>): Promise<string> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(KubeconfigError);
  return (error as Error).message;
}

describe('which file', () => {
  const at = (server: string) => config({}, { server });

  it('is the one named, which must exist', async () => {
    const ports = machine({ '/a': at('https://a'), [CONFIG]: at('https://home') }, { KUBECONFIG: '/none' });
    expect((await load(ports, { path: '/a' })).access.server).toBe('https://a');
    expect(await failure(load(ports, { path: '/b' }))).toBe('/b does not exist');
  });

  it('is the list of KUBECONFIG, of which some need not exist', async () => {
    const ports = machine({ '/b': at('https://b'), [CONFIG]: at('https://home') }, { KUBECONFIG: '/a::/b:/b' });
    expect((await load(ports)).access.server).toBe('https://b');
  });

  it('is that of the home directory otherwise', async () => {
    expect((await load(machine({ [CONFIG]: at('https://home') }))).access.server).toBe('https://home');
  });

  it('may be none: then one is told where it was looked for', async () => {
    expect(await failure(load(machine({})))).toBe(
      'there is no kubeconfig: /home/me/.kube/config does not exist, and this is no pod of a cluster',
    );
    expect(await failure(load(machine({}, { KUBECONFIG: '/a:/b' })))).toBe(
      'there is no kubeconfig: /a and /b do not exist, and this is no pod of a cluster',
    );
  });
});

describe('several files', () => {
  it('are merged by name; the first has the say', async () => {
    const first = {
      contexts: [{ name: 'both', context: { cluster: 'far', user: 'me' } }],
      users: [{ name: 'me', user: { token: 'first' } }],
    };
    const second = {
      'current-context': 'both',
      clusters: [{ name: 'far', cluster: { server: 'https://far' } }],
      users: [{ name: 'me', user: { token: 'second' } }],
      contexts: [
        { name: 'both', context: { cluster: 'none', user: 'none' } },
        { name: 'other', context: { cluster: 'far', namespace: 'team' } },
      ],
    };
    const ports = machine({ '/a': first, '/b': second }, { KUBECONFIG: '/a:/b' });
    const { access, credentials } = await load(ports);
    expect(access.server).toBe('https://far');
    expect(await credentials()).toEqual({ authorization: 'Bearer first' });
    const other = await load(ports, { context: 'other' });
    expect(other.access.namespace).toBe('team');
    expect(await other.credentials()).toEqual({});
  });

  it('resolve relative paths each from its own directory', async () => {
    const ports = machine(
      {
        '/one/config': {
          clusters: [{ name: 'c', cluster: { server: 'https://c', 'certificate-authority': 'pki/ca.pem' } }],
        },
        '/two/config': { ...config({ tokenFile: '../token' }), clusters: [] },
        '/one/pki/ca.pem': PEM,
        '/token': 'secret\n',
      },
      { KUBECONFIG: '/one/config:/two/config' },
    );
    const { access, credentials } = await load(ports);
    expect(await access.authorities()).toBe(PEM.trim());
    expect(await credentials()).toEqual({ authorization: 'Bearer secret' });
  });
});

describe('who asks', () => {
  it.each<[string, object, object]>([
    ['nobody', {}, {}],
    ['a token', { token: 'abc' }, { authorization: 'Bearer abc' }],
    ['a password', { username: 'me', password: 'pass' }, { authorization: `Basic ${base64('me:pass')}` }],
    [
      'a certificate',
      { 'client-certificate-data': base64(PEM), 'client-key-data': base64(PEM) },
      { certificate: PEM, key: PEM },
    ],
    ['files', { 'client-certificate': '/crt', 'client-key': '/key' }, { certificate: PEM.trim(), key: 'KEY' }],
    [
      'data before files',
      { 'client-certificate-data': base64(PEM), 'client-certificate': '/none', 'client-key': '/key' },
      { certificate: PEM, key: 'KEY' },
    ],
    ['a token file before a token', { token: 'old', tokenFile: '/token' }, { authorization: 'Bearer new' }],
  ])('is known by %s', async (_name, user, expected) => {
    const ports = machine({ [CONFIG]: config(user), '/crt': PEM, '/key': 'KEY\n', '/token': 'new' });
    expect(await (await load(ports)).credentials()).toEqual(expected);
  });

  it('reads token files again: every minute, and when the server refuses', async () => {
    const ports = machine({ [CONFIG]: config({ tokenFile: '/token' }), '/token': 'one' });
    const { access, credentials } = await load(ports);
    ports.files.set('/token', 'two');
    expect(await credentials()).toEqual({ authorization: 'Bearer one' });
    ports.clock.advance(60_000);
    expect(await credentials()).toEqual({ authorization: 'Bearer two' });
    ports.files.set('/token', 'three');
    access.refused();
    expect(await credentials()).toEqual({ authorization: 'Bearer three' });
    ports.files.set('/token', '');
    ports.clock.advance(60_000);
    expect(await credentials()).toEqual({ authorization: 'Bearer three' });
    ports.files.delete('/token');
    access.refused();
    expect(await credentials()).toEqual({ authorization: 'Bearer three' });
  });

  it('may ask as somebody else', async () => {
    const user = {
      as: 'jane',
      'as-groups': ['a', 'b'],
      'as-uid': '7',
      'as-user-extra': { 'Example.com/Reason': ['x', 'y'] },
    };
    const { access } = await load(machine({ [CONFIG]: config(user) }));
    expect(access.impersonation).toEqual({
      'impersonate-user': 'jane',
      'impersonate-group': ['a', 'b'],
      'impersonate-uid': '7',
      'impersonate-extra-example.com%2Freason': ['x', 'y'],
    });
  });
});

describe('a pod', () => {
  const DIRECTORY = '/var/run/secrets/kubernetes.io/serviceaccount';
  const FILES = {
    [`${DIRECTORY}/token`]: 'pod-token',
    [`${DIRECTORY}/ca.crt`]: PEM,
    [`${DIRECTORY}/namespace`]: 'team',
  };

  it.each([
    ['10.0.0.1', 'https://10.0.0.1:6443'],
    ['fd00::1', 'https://[fd00::1]:6443'],
  ])('at %s uses its service account, whose token is rotated', async (host, server) => {
    const ports = machine(FILES, { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: '6443' });
    const { access, credentials } = await load(ports);
    expect(access).toMatchObject({ server, namespace: 'team', isInsecure: false, impersonation: {} });
    expect(await access.authorities()).toBe(PEM.trim());
    expect(await credentials()).toEqual({ authorization: 'Bearer pod-token' });
    ports.files.set(`${DIRECTORY}/token`, 'rotated');
    ports.clock.advance(60_000);
    expect(await credentials()).toEqual({ authorization: 'Bearer rotated' });
  });

  it('prefers a kubeconfig', async () => {
    const ports = machine({ ...FILES, [CONFIG]: config() }, { KUBERNETES_SERVICE_HOST: '10.0.0.1' });
    expect((await load(ports)).access.server).toBe('https://example.com:6443');
    expect((await podAccess({ ports })).server).toBe('https://10.0.0.1:443');
  });

  it('is not everywhere', async () => {
    expect(await failure(podAccess({ ports: machine(FILES) }))).toBe(
      'KUBERNETES_SERVICE_HOST is not set: this is no pod of a cluster',
    );
  });

  it('without its token is told so', async () => {
    expect(await failure(load(machine({}, { KUBERNETES_SERVICE_HOST: '10.0.0.1' })))).toBe(
      `the service account of this pod: cannot read ${DIRECTORY}/token: there is no such file`,
    );
  });
});

describe('a program', () => {
  const V1 = 'client.authentication.k8s.io/v1';
  const exec = (extra: object = {}) =>
    config({ exec: { apiVersion: V1, command: 'login', interactiveMode: 'Never', ...extra } });
  const answer = (status: object, apiVersion = V1): ProgramResult => ({
    exitCode: 0,
    output: JSON.stringify({ apiVersion, kind: 'ExecCredential', status }),
    errors: '',
  });

  it('is run with what the kubeconfig says, and told about the cluster if it asks', async () => {
    const cluster = {
      'certificate-authority': 'ca.pem',
      'tls-server-name': 'api',
      extensions: [{ name: 'client.authentication.k8s.io/exec', extension: { audience: 'x' } }],
    };
    const user = {
      exec: {
        apiVersion: V1,
        command: './bin/login',
        args: ['--quiet', 'now'],
        env: [{ name: 'REGION', value: 'north' }],
        provideClusterInfo: true,
      },
    };
    const ports = machine(
      { [CONFIG]: config(user, cluster), '/home/me/.kube/ca.pem': PEM },
      { PATH: '/bin', REGION: 'south' },
    );
    ports.result = answer({ token: 't', clientCertificateData: PEM, clientKeyData: 'KEY' });
    const { credentials } = await load(ports);
    expect(ports.runs).toHaveLength(0);
    expect(await credentials()).toEqual({ authorization: 'Bearer t', certificate: PEM, key: 'KEY' });
    const { command, args, environment } = ports.runs[0] as Program;
    expect([command, args]).toEqual(['/home/me/.kube/bin/login', ['--quiet', 'now']]);
    const { KUBERNETES_EXEC_INFO: info = '', ...rest } = environment;
    expect(rest).toEqual({ PATH: '/bin', REGION: 'north' });
    expect(JSON.parse(info)).toEqual({
      apiVersion: V1,
      kind: 'ExecCredential',
      spec: {
        interactive: false,
        cluster: {
          server: 'https://example.com:6443',
          'tls-server-name': 'api',
          'certificate-authority-data': base64(PEM.trim()),
          config: { audience: 'x' },
        },
      },
    });
  });

  it('is not told about the cluster unless it asks', async () => {
    const ports = machine({ [CONFIG]: exec() });
    ports.result = answer({ token: 't' });
    await (await load(ports)).credentials();
    expect(JSON.parse(ports.runs[0]?.environment['KUBERNETES_EXEC_INFO'] ?? '').spec).toEqual({ interactive: false });
    expect(ports.runs[0]?.command).toBe('login');
  });

  it('is run once for all who ask, and again when its answer has expired', async () => {
    const ports = machine({ [CONFIG]: exec() });
    const expires = (afterMs: number) => new Date(ports.clock.now() + afterMs).toISOString();
    ports.result = answer({ token: 'one', expirationTimestamp: expires(300_000) });
    const { credentials } = await load(ports);
    expect(await Promise.all([credentials(), credentials()])).toHaveLength(2);
    ports.result = answer({ token: 'two' });
    ports.clock.advance(299_000);
    expect(await credentials()).toEqual({ authorization: 'Bearer one' });
    ports.clock.advance(1_000);
    expect(await credentials()).toEqual({ authorization: 'Bearer two' });
    ports.clock.advance(1e9);
    expect(await credentials()).toEqual({ authorization: 'Bearer two' });
    expect(ports.runs).toHaveLength(2);
  });

  it('is run again when the server refuses, but not for every refusal', async () => {
    const ports = machine({ [CONFIG]: exec() });
    ports.result = answer({ token: 't' });
    const { access, credentials } = await load(ports);
    for (const [waitMs, runs] of [
      [0, 1],
      [1_000, 1],
      [10_000, 2],
      [0, 2],
    ] as const) {
      ports.clock.advance(waitMs);
      access.refused();
      await credentials();
      expect(ports.runs).toHaveLength(runs);
    }
  });

  it.each<[string, ProgramResult | Error, string]>([
    ['is missing', Object.assign(new Error('spawn'), { code: 'ENOENT' }), 'was not found (apt install login)'],
    ['may not be run', Object.assign(new Error('EACCES'), { code: 'EACCES' }), 'could not be run: EACCES'],
    ['fails', { exitCode: 3, output: '', errors: 'not logged in\n' }, 'failed with exit code 3: not logged in'],
    ['fails silently', { exitCode: 3, output: '', errors: '' }, 'failed with exit code 3'],
    ['talks', { exitCode: 0, output: 'hello', errors: '' }, 'answered no JSON'],
    ['answers something else', { exitCode: 0, output: 'null', errors: '' }, 'answered no ExecCredential'],
    ['answers another version', answer({ token: 't' }, 'v9'), `answered in version v9 when asked for ${V1}`],
    ['answers nothing', answer({}), 'answered neither a token nor a certificate'],
    [
      'answers half',
      answer({ clientKeyData: 'KEY' }),
      'answered a certificate without a key, or a key without a certificate',
    ],
    [
      'answers no time',
      answer({ token: 't', expirationTimestamp: 'soon' }),
      'answered an expirationTimestamp that is no time',
    ],
  ])('that %s is reported', async (_name, result, message) => {
    const ports = machine({ [CONFIG]: exec({ installHint: 'apt install login' }) });
    ports.result = result;
    const { credentials } = await load(ports);
    expect(await failure(credentials())).toBe(`${CONFIG}: users[0].user.exec: the program login ${message}`);
  });

  it('that does not end is ended', async () => {
    const ports = machine({ [CONFIG]: exec() });
    const run = (program: Program): Promise<ProgramResult> =>
      new Promise((_, reject) => program.signal.addEventListener('abort', () => reject(new Error('aborted'))));
    const { credentials } = await load(Object.assign(ports, { run }));
    const failing = failure(credentials());
    await Promise.resolve();
    await new Promise((resolve) => setImmediate(resolve));
    ports.clock.advance(60_000);
    expect(await failing).toContain('did not end within 60 s');
  });
});

describe('what is wrong is said in one sentence with file and field', () => {
  it.each<[string, object | string, string]>([
    ['no YAML', '{ a: [', `${CONFIG} is no YAML: `],
    ['no mapping', '- a', `${CONFIG} must be a mapping`],
    ['another kind', { kind: 'Pod' }, `${CONFIG}: kind is Pod, which is no kubeconfig`],
    ['empty', '', `${CONFIG}: current-context is not set; name a context`],
    ['no such context', { ...config(), 'current-context': 'x' }, `${CONFIG}: there is no context "x"; there are here`],
    ['no contexts', { 'current-context': 'x' }, `${CONFIG}: there is no context "x"; there are none`],
    [
      'no such cluster',
      config({}, {}, { cluster: 'x' }),
      `${CONFIG}: contexts[0].context.cluster names "x", which is not there`,
    ],
    [
      'no such user',
      config({}, {}, { user: 'x' }),
      `${CONFIG}: contexts[0].context.user names "x", which is not there`,
    ],
    ['no cluster', config({}, {}, { cluster: '' }), `${CONFIG}: contexts[0].context.cluster is missing`],
    ['no server', config({}, { server: null }), `${CONFIG}: clusters[0].cluster.server is missing`],
    [
      'plain HTTP',
      config({}, { server: 'http://x' }),
      `${CONFIG}: clusters[0].cluster.server is "http://x", which is no https URL`,
    ],
    ['no URL', config({}, { server: 'x' }), `${CONFIG}: clusters[0].cluster.server is "x", which is no https URL`],
    [
      'a proxy',
      config({}, { 'proxy-url': 'http://p' }),
      `${CONFIG}: clusters[0].cluster.proxy-url is set, but proxies are not supported`,
    ],
    [
      'no flag',
      config({}, { 'insecure-skip-tls-verify': 'yes' }),
      `${CONFIG}: clusters[0].cluster.insecure-skip-tls-verify must be true or false`,
    ],
    [
      'a contradiction',
      config({}, { 'insecure-skip-tls-verify': true, 'certificate-authority': 'x' }),
      `${CONFIG}: clusters[0].cluster.insecure-skip-tls-verify is true although a certificate authority is given`,
    ],
    [
      'no base64',
      config({}, { 'certificate-authority-data': '***' }),
      `${CONFIG}: clusters[0].cluster.certificate-authority-data must be PEM encoded in base64`,
    ],
    [
      'no PEM',
      config({ 'client-key-data': base64('x') }),
      `${CONFIG}: users[0].user.client-key-data must be PEM encoded in base64`,
    ],
    [
      'no file',
      config({ tokenFile: 'x' }),
      `${CONFIG}: users[0].user.tokenFile: cannot read /home/me/.kube/x: there is no such file`,
    ],
    ['no key', config({ 'client-certificate': 'x' }), `${CONFIG}: users[0].user.client-key is missing`],
    ['no certificate', config({ 'client-key': 'x' }), `${CONFIG}: users[0].user.client-certificate is missing`],
    [
      'a number',
      config({ token: 5 }),
      `${CONFIG}: users[0].user.token must be text (a number or a boolean needs quotes)`,
    ],
    [
      'a removed provider',
      config({ 'auth-provider': {} }),
      `${CONFIG}: users[0].user.auth-provider is set, which Kubernetes has removed; use an exec plug-in instead`,
    ],
    ['no list', { ...config(), users: {} }, `${CONFIG}: users must be a list`],
    ['no name', { ...config(), users: [{}] }, `${CONFIG}: users[0].name is missing`],
    ['no entry', { ...config(), users: [7] }, `${CONFIG}: users[0] must be a mapping`],
    ['two of a name', { ...config(), users: [{ name: 'u' }, { name: 'u' }] }, `${CONFIG}: users[1].name repeats "u"`],
    ['groups of nobody', config({ 'as-groups': ['a'] }), `${CONFIG}: users[0].user.as is missing`],
    ['odd groups', config({ as: 'a', 'as-groups': [1] }), `${CONFIG}: users[0].user.as-groups[0] must be text`],
    [
      'an old program',
      config({ exec: { apiVersion: 'v0', command: 'x' } }),
      `${CONFIG}: users[0].user.exec.apiVersion is v0; supported are client.authentication.k8s.io/v1 and client.authentication.k8s.io/v1beta1`,
    ],
    [
      'a talkative program',
      config({ exec: { apiVersion: 'client.authentication.k8s.io/v1', command: 'x', interactiveMode: 'Always' } }),
      `${CONFIG}: users[0].user.exec.interactiveMode is Always, but there is nobody to interact with`,
    ],
    [
      'no program',
      config({ exec: { apiVersion: 'client.authentication.k8s.io/v1' } }),
      `${CONFIG}: users[0].user.exec.command is missing`,
    ],
  ])('%s', async (_name, file, message) => {
    const sentence = await failure(load(machine({ [CONFIG]: file })));
    expect(sentence.startsWith(message), sentence).toBe(true);
    expect(sentence).not.toContain('\n');
  });

  it('takes names of the prototype for names', async () => {
    const text = 'current-context: __proto__\ncontexts: [{name: constructor, context: {cluster: c}}]\n';
    expect(await failure(load(machine({ [CONFIG]: text })))).toContain(
      'there is no context "__proto__"; there are constructor',
    );
  });
});
