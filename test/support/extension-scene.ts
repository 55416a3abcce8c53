import { install, installation } from '../../src/control/installation/install.ts';
import type { Clock } from '../../src/env/ports.ts';
import { realClock } from '../../src/env/real.ts';
import { ManualClock } from '../../src/env/test.ts';
import { EXTENSION_IDENTITY } from '../../src/extension/identity.ts';
import { extensionServices } from '../../src/extension/extension.ts';
import { extensionRights, userRights } from '../../src/extension/rights.ts';
import { Client } from '../../src/kube/client.ts';
import {
  InProcessTransport,
  type LocalHandler,
  type LocalIdentity,
  type LocalRequest,
} from '../../src/kube/in-process-transport.ts';
import { Manager } from '../../src/kube/manager.ts';
import type { Answer } from './api.ts';
import { eventually } from './eventually.ts';
import { InProcessApi } from './in-process.ts';

const ADMIN: LocalIdentity = { user: 'admin', groups: ['system:masters'] };

export interface Starting {
  /** A free one where absent. */
  readonly port?: number;
  readonly clock?: Clock;
  /** Where it listens, where absent. */
  readonly reach?: Parameters<typeof extensionServices>[0]['reach'];
  /** What each of its requests waits for. */
  readonly allow?: (request: LocalRequest) => Promise<void>;
  readonly readyUnless?: Parameters<typeof extensionServices>[0]['readyUnless'];
}

/** The extension beside a server in this process that knows our kinds; what they say to each other goes over TLS. */
export class ExtensionScene {
  readonly api: InProcessApi;
  readonly signal = new AbortController().signal;
  #stopExtension: () => Promise<void> = async () => undefined;

  private constructor(api: InProcessApi) {
    this.api = api;
  }

  static async start(): Promise<ExtensionScene> {
    const scene = new ExtensionScene(await InProcessApi.start());
    const ours = [...userRights(), ...extensionRights()];
    await install(scene.client(ADMIN), realClock, installation({ ours, initial: [] }), scene.signal);
    await scene.startExtension();
    return scene;
  }

  /** Starts the extension, and returns once the server knows of it. */
  async startExtension(starting: Starting = {}): Promise<void> {
    await this.launchExtension(starting);
    await eventually(async () => (await this.request('GET', '/apis/subresources.kubevirt.io/v1')).expect(200));
  }

  /** Starts the extension; resolves once it says that others may start. */
  launchExtension({ port = 0, clock = realClock, reach = 'address', allow, readyUnless }: Starting): Promise<void> {
    const env = { ...this.api.env, clock };
    const handle: LocalHandler = async (request) => {
      await allow?.(request);
      return this.api.core.handle(request);
    };
    const stopping = new AbortController();
    const manager = new Manager({ env, name: 'extension' }).add(
      ...extensionServices({
        env,
        client: new Client(new InProcessTransport(handle, EXTENSION_IDENTITY), 'test'),
        listen: { host: '127.0.0.1', port },
        reach,
        version: '1.2.3',
        ...(readyUnless ? { readyUnless } : {}),
      }),
    );
    const running = manager.run(stopping.signal);
    this.#stopExtension = async () => {
      stopping.abort();
      // Whoever is still being answered is given time, by its own clock.
      const passing = clock instanceof ManualClock && setInterval(() => clock.advance(1000), 100);
      await running;
      if (passing) clearInterval(passing);
    };
    return Promise.race([manager.synced, running]);
  }

  async stopExtension(): Promise<void> {
    await this.#stopExtension();
    this.#stopExtension = async () => undefined;
  }

  async stop(): Promise<void> {
    await this.stopExtension();
    await this.api.stop();
  }

  client(identity: LocalIdentity = ADMIN): Client {
    return new Client(new InProcessTransport((request) => this.api.core.handle(request), identity), 'test');
  }

  request(method: string, path: string, body?: unknown, user?: string): Promise<Answer> {
    const headers: Record<string, string> =
      method === 'PATCH' ? { 'content-type': 'application/merge-patch+json' } : {};
    const options = body === undefined ? {} : { body, headers };
    const api = user === undefined ? this.api : this.api.as({ commonName: user, organizations: [] });
    return api.request(method, path, options);
  }

  /** Gives a user a cluster role, in one namespace. */
  async bind(namespace: string, user: string, role: string): Promise<void> {
    const body = {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: { generateName: `${user}-` },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
    };
    const path = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/rolebindings`;
    (await this.request('POST', path, body)).expect(201);
  }
}
