import { createPublicKey } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { SYSTEM_NAMESPACE } from '../../../src/api/kubevirt/well-known.ts';
import { realClock, realRandom } from '../../../src/env/real.ts';
import {
  type Authority,
  createAuthority,
  DAY_MS,
  generateKeyPem,
  type Identity,
  issueIdentity,
} from '../../../src/machinery/x509/authority.ts';
import { eventually } from '../eventually.ts';
import type { Place } from '../godwit.ts';
import { HttpClient } from '../http-client.ts';
import { freePorts } from '../network.ts';
import { collectUses, refusals } from './audited-uses.ts';
import { KeptProcess } from './kept-process.ts';
import { PROGRAMS, RIGHTS_USED } from './wanted.ts';

const START_PATIENCE_MS = 180_000;
/** What is asked of an API server that is told to be nowhere but here; nobody dials it. */
const DOCUMENTATION_ADDRESS = '192.0.2.1';

/** One more than a pod could have: as kubeadm chooses it. */
const SERVICES = { range: '10.96.0.0/24', first: '10.96.0.1' };

export interface ControlPlaneOptions {
  /** Whether pods have addresses that the API server reaches: Services then lead it to them. */
  readonly hasPodNetwork?: boolean;
  /** Whether those who have a bootstrap token may join, of whatever group; otherwise somebody else has to see to that. */
  readonly letsNodesJoin?: boolean;
  /** How long certificates are valid that it signs, as its programs take it; Kubernetes' own year where absent. */
  readonly certificateLife?: string;
}

/**
 * A Kubernetes control plane of its own: etcd, kube-apiserver, kube-controller-manager and kube-scheduler, with what kubeadm
 * would set up besides, so that machines join as nodes by bootstrap tokens.
 */
export class ControlPlane {
  readonly #directory: string;
  readonly #processes: Readonly<Record<'etcd' | 'apiserver' | 'manager' | 'scheduler', KeptProcess>>;
  /** An admin's, as text. */
  readonly kubeconfig: string;
  readonly #client: HttpClient;
  readonly #authority: Authority;
  readonly #server: string;

  private constructor(
    directory: string,
    processes: Readonly<Record<'etcd' | 'apiserver' | 'manager' | 'scheduler', KeptProcess>>,
    server: string,
    { authority, admin }: Keys,
  ) {
    this.#directory = directory;
    this.#processes = processes;
    this.#server = server;
    this.#authority = authority;
    this.kubeconfig = kubeconfigOf(server, authority, admin);
    const { certificatePem: certificate, keyPem: key } = admin;
    this.#client = new HttpClient({ url: server, ca: authority.certificatePem, certificate, key });
  }

  /** Starts one below this directory; returns once it serves and its loops run. */
  static async startIn(
    directory: string,
    { host, wrap }: Place,
    { hasPodNetwork = false, letsNodesJoin = true, certificateLife }: ControlPlaneOptions = {},
  ): Promise<ControlPlane> {
    mkdirSync(directory, { recursive: true, mode: 0o711 });
    const [etcd = 0, peers = 0, apiserver = 0] = await freePorts(3);
    const ports: Ports = { etcd, peers, apiserver };
    const files = await writeKeys(directory, host);
    const server = `https://${host}:${ports.apiserver}`;
    const kept = (name: string, args: Readonly<Record<string, string | number>>): KeptProcess =>
      new KeptProcess({
        command: join(PROGRAMS ?? '', name),
        args: Object.entries(args).map(([key, value]) => `--${key}=${value}`),
        outputPath: join(directory, `${name}.log`),
        wrap,
      });
    for (const name of ['manager', 'scheduler'] as const)
      writeFileSync(join(directory, `${name}.kubeconfig`), kubeconfigOf(server, files.authority, files[name]), PRIVATE);
    const path = (name: string): string => join(directory, name);
    writeFileSync(path('audit-policy.yaml'), stringify(auditPolicy()));
    const loops = { 'leader-elect': 'false', 'secure-port': 0, 'kube-api-qps': 200, 'kube-api-burst': 400 };
    const processes = {
      etcd: kept('etcd', etcdOptions(path, ports)),
      apiserver: kept('kube-apiserver', {
        ...serverOptions(path, host, ports),
        'enable-aggregator-routing': String(hasPodNetwork),
      }),
      manager: kept('kube-controller-manager', {
        ...loops,
        ...managerOptions(path),
        ...(certificateLife === undefined ? {} : { 'cluster-signing-duration': certificateLife }),
      }),
      scheduler: kept('kube-scheduler', { ...loops, kubeconfig: path('scheduler.kubeconfig') }),
    };
    const plane = new ControlPlane(directory, processes, server, files);
    await plane.start();
    await plane.#publish();
    if (letsNodesJoin) await plane.#letNodesJoin();
    return plane;
  }

  /** Starts what does not run; returns once it serves and its loops run. */
  async start(): Promise<void> {
    const { etcd, apiserver, manager, scheduler } = this.#processes;
    etcd.start();
    apiserver.start();
    await this.#answers('/readyz');
    manager.start();
    scheduler.start();
    // Whatever it does first shows that it runs: pods without an account of their own are refused until then.
    await this.#answers('/api/v1/namespaces/default/serviceaccounts/default');
  }

  /** kill -9 to the API server. What it has acknowledged is in etcd. */
  async killServer(): Promise<void> {
    await this.#processes.apiserver.kill();
  }

  /** What a kubelet is given by whoever makes its host a node: its kubeconfig, and what it serves with at this address. */
  async kubeletKeys(node: string, address: string): Promise<{ kubeconfig: string; serving: Identity; ca: string }> {
    const name = { commonName: `system:node:${node}`, organizations: ['system:nodes'], validityMs: 30 * DAY_MS };
    const client = await issueIdentity(this.#authority, { ...name, usages: ['client'] });
    const serving = await issueIdentity(this.#authority, { ...name, usages: ['server'], ipAddresses: [address] });
    const kubeconfig = kubeconfigOf(this.#server, this.#authority, client);
    return { kubeconfig, serving, ca: this.#authority.certificatePem };
  }

  /** What Godwit's components were forbidden to do until now. */
  forbidden(): Promise<string[]> {
    return refusals(this.#directory, AUDIT_LOG);
  }

  /** Ends everything. What was used of rights goes where it is asked for: the log is removed with the cluster. */
  async stop(): Promise<void> {
    this.#client.close();
    const { etcd, apiserver, manager, scheduler } = this.#processes;
    for (const each of [scheduler, manager, apiserver, etcd]) await each.kill();
    if (RIGHTS_USED !== undefined) await collectUses(this.#directory, AUDIT_LOG, RIGHTS_USED);
  }

  async #answers(path: string): Promise<void> {
    try {
      await eventually(async () => (await this.#client.request('GET', path)).expect(200), START_PATIENCE_MS);
    } catch (error) {
      const outputs = Object.entries(this.#processes).map(([name, kept]) => `${name}: ${kept.output().slice(-1500)}`);
      throw new Error(`the control plane does not answer ${path}\n${outputs.join('\n')}`, { cause: error });
    }
  }

  /** As kubeadm does it: anybody may know where the cluster is, and by which authority it is recognised. */
  async #publish(): Promise<void> {
    const { certificatePem } = this.#authority;
    const cluster = {
      server: this.#server,
      'certificate-authority-data': Buffer.from(certificatePem).toString('base64'),
    };
    const [name, role] = ['cluster-info', 'kubeadm:bootstrap-signer-clusterinfo'];
    const kubeconfig = stringify({ apiVersion: 'v1', kind: 'Config', clusters: [{ name: '', cluster }] });
    const objects = {
      '/api/v1/namespaces/kube-public/configmaps': { metadata: { name }, data: { kubeconfig } },
      [`/apis/${RBAC}/v1/namespaces/kube-public/roles`]: {
        metadata: { name: role },
        rules: [{ apiGroups: [''], resources: ['configmaps'], resourceNames: [name], verbs: ['get'] }],
      },
      [`/apis/${RBAC}/v1/namespaces/kube-public/rolebindings`]: {
        metadata: { name: role },
        roleRef: { apiGroup: RBAC, kind: 'Role', name: role },
        subjects: [{ apiGroup: RBAC, kind: 'User', name: 'system:anonymous' }],
      },
    };
    for (const [path, body] of Object.entries(objects))
      (await this.#client.request('POST', path, { body })).expect(201);
  }

  /** As kubeadm does it for tokens of its own: their bearers may ask for a node's certificate, and get it; nodes renew theirs. */
  async #letNodesJoin(): Promise<void> {
    const certificates = 'system:certificates.k8s.io:certificatesigningrequests';
    const bindings = [
      { name: 'godwit-test:bootstrap', role: 'system:node-bootstrapper', group: 'system:bootstrappers' },
      { name: 'godwit-test:join', role: `${certificates}:nodeclient`, group: 'system:bootstrappers' },
      { name: 'godwit-test:renew', role: `${certificates}:selfnodeclient`, group: 'system:nodes' },
    ];
    for (const { name, role, group } of bindings) {
      const body = {
        metadata: { name },
        roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: role },
        subjects: [{ apiGroup: RBAC, kind: 'Group', name: group }],
      };
      (await this.#client.request('POST', `/apis/${RBAC}/v1/clusterrolebindings`, { body })).expect(201);
    }
  }
}

const RBAC = 'rbac.authorization.k8s.io';
const PRIVATE = { mode: 0o600 };

interface Ports {
  readonly etcd: number;
  readonly peers: number;
  readonly apiserver: number;
}

interface Keys {
  readonly authority: Authority;
  readonly admin: Identity;
  readonly manager: Identity;
  readonly scheduler: Identity;
}

type PathOf = (name: string) => string;

function etcdOptions(path: PathOf, { etcd, peers }: Ports): Record<string, string | number> {
  const [clients, members] = [etcd, peers].map((port) => `http://127.0.0.1:${port}`) as [string, string];
  return {
    name: 'etcd',
    'data-dir': path('etcd'),
    'listen-client-urls': clients,
    'advertise-client-urls': clients,
    'listen-peer-urls': members,
    'initial-advertise-peer-urls': members,
    'initial-cluster': `etcd=${members}`,
    'log-level': 'error',
    // Processes die here, but never the machine: what was written stays.
    'unsafe-no-fsync': 'true',
  };
}

function serverOptions(path: PathOf, host: string, { etcd, apiserver }: Ports): Record<string, string | number> {
  return {
    'etcd-servers': `http://127.0.0.1:${etcd}`,
    'bind-address': host,
    'secure-port': apiserver,
    'advertise-address': host === '127.0.0.1' ? DOCUMENTATION_ADDRESS : host,
    'service-cluster-ip-range': SERVICES.range,
    'authorization-mode': 'Node,RBAC',
    'enable-admission-plugins': 'NodeRestriction',
    'enable-bootstrap-token-auth': 'true',
    'allow-privileged': 'true',
    'client-ca-file': path('ca.crt'),
    'tls-cert-file': path('server.crt'),
    'tls-private-key-file': path('server.key'),
    'service-account-issuer': 'https://kubernetes.default.svc.cluster.local',
    'service-account-key-file': path('accounts.pub'),
    'service-account-signing-key-file': path('accounts.key'),
    'kubelet-certificate-authority': path('ca.crt'),
    'kubelet-client-certificate': path('kubelet-client.crt'),
    'kubelet-client-key': path('kubelet-client.key'),
    'kubelet-preferred-address-types': 'InternalIP,Hostname',
    'proxy-client-cert-file': path('front-proxy.crt'),
    'proxy-client-key-file': path('front-proxy.key'),
    'requestheader-client-ca-file': path('front-proxy-ca.crt'),
    'requestheader-allowed-names': FRONT_PROXY,
    'requestheader-username-headers': 'X-Remote-User',
    'requestheader-group-headers': 'X-Remote-Group',
    'requestheader-extra-headers-prefix': 'X-Remote-Extra-',
    'audit-policy-file': path('audit-policy.yaml'),
    'audit-log-path': path(AUDIT_LOG),
    'audit-log-maxsize': AUDIT_LOG_MEGABYTES_MAX,
  };
}

/**
 * Who asked for what, one line each. Leases are renewed whatever happens, and watches never end: neither counts, but where rights are to have
 * been used, those of our components do.
 */
function auditPolicy(): object {
  const leases = [{ group: 'coordination.k8s.io' }];
  const own = { level: 'Metadata', userGroups: [`system:serviceaccounts:${SYSTEM_NAMESPACE}`], resources: leases };
  return {
    apiVersion: 'audit.k8s.io/v1',
    kind: 'Policy',
    omitStages: ['RequestReceived', ...(RIGHTS_USED === undefined ? ['ResponseStarted'] : [])],
    rules: [...(RIGHTS_USED === undefined ? [] : [own]), { level: 'None', resources: leases }, { level: 'Metadata' }],
  };
}
export const AUDIT_LOG = 'audit.log';
/** More than any run writes: nothing is ever moved away from it. */
const AUDIT_LOG_MEGABYTES_MAX = 4096;

function managerOptions(path: PathOf): Record<string, string> {
  return {
    kubeconfig: path('manager.kubeconfig'),
    'use-service-account-credentials': 'true',
    'service-account-private-key-file': path('accounts.key'),
    'root-ca-file': path('ca.crt'),
    'cluster-signing-cert-file': path('ca.crt'),
    'cluster-signing-key-file': path('ca.key'),
  };
}

const FRONT_PROXY = 'front-proxy-client';

/** Makes all keys and certificates, and writes those that the processes read. */
async function writeKeys(directory: string, host: string): Promise<Keys> {
  const env = { clock: realClock, random: realRandom };
  const authority = await createAuthority(env, 'kubernetes');
  const proxyAuthority = await createAuthority(env, 'front-proxy-ca');
  const client = (commonName: string, organizations: readonly string[] = [], from = authority): Promise<Identity> =>
    issueIdentity(from, { commonName, organizations, usages: ['client'], validityMs: 30 * DAY_MS });
  const write = (name: string, { certificatePem, keyPem }: Identity): void => {
    writeFileSync(join(directory, `${name}.crt`), certificatePem);
    writeFileSync(join(directory, `${name}.key`), keyPem, PRIVATE);
  };
  write('ca', authority);
  write('front-proxy-ca', proxyAuthority);
  write('front-proxy', await client(FRONT_PROXY, [], proxyAuthority));
  write('kubelet-client', await client('kube-apiserver-kubelet-client', ['system:masters']));
  write(
    'server',
    await issueIdentity(authority, {
      commonName: 'kube-apiserver',
      dnsNames: ['localhost', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc'],
      ipAddresses: [host, SERVICES.first],
      usages: ['server'],
      validityMs: 30 * DAY_MS,
    }),
  );
  const accountsKey = await generateKeyPem();
  writeFileSync(join(directory, 'accounts.key'), accountsKey, PRIVATE);
  // The API server takes public keys as such alone.
  writeFileSync(join(directory, 'accounts.pub'), createPublicKey(accountsKey).export({ type: 'spki', format: 'pem' }));
  return {
    authority,
    admin: await client('kubernetes-admin', ['system:masters']),
    manager: await client('system:kube-controller-manager'),
    scheduler: await client('system:kube-scheduler'),
  };
}

function kubeconfigOf(server: string, { certificatePem }: Identity, user: Identity): string {
  const encoded = (text: string): string => Buffer.from(text).toString('base64');
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'kubernetes',
    contexts: [{ name: 'kubernetes', context: { cluster: 'kubernetes', user: 'user' } }],
    clusters: [{ name: 'kubernetes', cluster: { server, 'certificate-authority-data': encoded(certificatePem) } }],
    users: [
      {
        name: 'user',
        user: { 'client-certificate-data': encoded(user.certificatePem), 'client-key-data': encoded(user.keyPem) },
      },
    ],
  });
}
