import { InProcessApi } from '../../../test/support/in-process.ts';
import type { KubeObject } from '../../api/meta.ts';
import { SYSTEM_NAMESPACE } from '../../api/kubevirt/well-known.ts';
import type { Env } from '../../env/ports.ts';
import { ObjectApplier } from '../../kube/apply-objects.ts';
import { Client } from '../../kube/client.ts';
import { InProcessTransport } from '../../kube/in-process-transport.ts';
import {
  BUNDLE_CONFIG_MAP,
  configMaps,
  ownBundleOf,
  TRUST_OBJECTS,
  TRUST_RULES,
  withoutPeer,
  withPeer,
} from './objects.ts';
import { changeTrust } from './store.ts';

const USER = 'synchronization';
const RBAC = 'rbac.authorization.k8s.io';

const rights: KubeObject[] = [
  {
    apiVersion: `${RBAC}/v1`,
    kind: 'Role',
    metadata: { name: USER, namespace: SYSTEM_NAMESPACE },
    rules: TRUST_RULES,
  },
  {
    apiVersion: `${RBAC}/v1`,
    kind: 'RoleBinding',
    metadata: { name: USER, namespace: SYSTEM_NAMESPACE },
    roleRef: { apiGroup: RBAC, kind: 'Role', name: USER },
    subjects: [{ apiGroup: RBAC, kind: 'User', name: USER }],
  },
];

/** For tests: a cluster's API with what trust is made of, where the controller may do no more than its rules say. */
export class TrustingCluster {
  readonly id: string;
  readonly env: Env;
  /** Of the controller. */
  readonly client: Client;
  /** Of a user who may do anything. */
  readonly admin: Client;
  readonly signal = new AbortController().signal;
  readonly #api: InProcessApi;

  private constructor(id: string, api: InProcessApi) {
    this.id = id;
    this.env = api.env;
    this.#api = api;
    this.client = this.#client(USER, []);
    this.admin = this.#client('admin', ['system:masters']);
  }

  static async start(id: string, env: Partial<Env> = {}): Promise<TrustingCluster> {
    const cluster = new TrustingCluster(id, await InProcessApi.start({ env }));
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: SYSTEM_NAMESPACE } };
    const applier = await ObjectApplier.of(cluster.admin, cluster.signal);
    await applier.apply([namespace, ...TRUST_OBJECTS, ...rights], cluster.signal);
    return cluster;
  }

  stop(): Promise<void> {
    return this.#api.stop();
  }

  /** Does what importing the other's export does. */
  async trust(other: TrustingCluster): Promise<void> {
    const { data } = await other.admin.get(configMaps, SYSTEM_NAMESPACE, BUNDLE_CONFIG_MAP, this.signal);
    const authorities = ownBundleOf(data)?.authorities ?? [];
    const peer = { clusterId: other.id, name: other.id, authorities };
    await changeTrust(this.admin, (data) => withPeer(data, peer), this.signal);
  }

  revoke(other: TrustingCluster): Promise<void> {
    const mark = (data: Readonly<Record<string, string>>): Record<string, string> => ({
      ...data,
      [`${other.id}.revoked`]: '2026-01-01T00:00:00Z',
    });
    return changeTrust(this.admin, mark, this.signal);
  }

  forget(other: TrustingCluster): Promise<void> {
    return changeTrust(this.admin, (data) => withoutPeer(data, other.id), this.signal);
  }

  #client(user: string, groups: string[]): Client {
    return new Client(new InProcessTransport((request) => this.#api.core.handle(request), { user, groups }), 'test');
  }
}
