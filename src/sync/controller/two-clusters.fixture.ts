import { InProcessApi } from '../../../test/support/in-process.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import {
  type MigrationPhase,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { KUBEVIRT_CRDS } from '../../api/kubevirt/crds.ts';
import { formatTime, type JsonObject, type KubeObject } from '../../api/meta.ts';
import { ManualClock } from '../../env/test.ts';
import { ObjectApplier } from '../../kube/apply-objects.ts';
import { Client } from '../../kube/client.ts';
import { InProcessTransport, type LocalIdentity } from '../../kube/in-process-transport.ts';
import { virtualMachineInstanceMigrations, virtualMachineInstances } from '../../kube/kubevirt-resources.ts';
import { Manager } from '../../kube/manager.ts';
import type { Resource } from '../../kube/resource.ts';
import { SharedInformers } from '../../kube/shared-informers.ts';
import type { TransportRequest, TransportResponse } from '../../kube/transport.ts';
import { SYNCHRONIZATION_IDENTITY, synchronizationRights } from '../rights.ts';
import type { EarlyLimits } from './early-halves.ts';
import { FakeNetwork } from './fake-network.fixture.ts';
import { Synchronizations } from './synchronizations.ts';

const ADMIN: LocalIdentity = { user: 'admin', groups: ['system:masters'] };
const namespaces: Resource = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', namespaced: false };

/** Lets everything happen that does not wait for time to pass. */
export async function settle(clock: ManualClock): Promise<void> {
  for (let turn = 0; turn < 40; turn++) {
    await new Promise((resolve) => setImmediate(resolve));
    clock.advance(0);
  }
}

/** Lets time pass, in steps in which everything can react. */
export async function pass(clock: ManualClock, durationMs: number, stepMs = 1000): Promise<void> {
  for (let leftMs = durationMs; leftMs > 0; leftMs -= stepMs) {
    clock.advance(Math.min(stepMs, leftMs));
    await settle(clock);
  }
}

/** Made once: it takes longer than most tests. */
let installed: Promise<InProcessApi> | undefined;

/** A cluster with a synchronization controller that has its own rights alone; the test plays everybody else. */
export class FakeCluster {
  readonly id: string;
  readonly address: string;
  readonly clock: ManualClock;
  readonly signal = new AbortController().signal;
  /** What the controller wrote: `METHOD path`. */
  readonly writes: string[] = [];
  /** Clusters in which trust was revoked, and those of them with which nothing is on the way any more. */
  readonly revoked = new Set<string>();
  readonly released: string[] = [];
  /** The controller's watches tell nothing that has this text until the promise is kept. */
  late: { readonly text: string; readonly until: Promise<void> } | undefined;
  readonly #network: FakeNetwork;
  readonly #limits: EarlyLimits | undefined;
  readonly #api: InProcessApi;
  #stop: () => Promise<void> = async () => undefined;
  #revoked: (peer: string) => void = () => undefined;

  private constructor(id: string, network: FakeNetwork, clock: ManualClock, api: InProcessApi, limits?: EarlyLimits) {
    this.id = id;
    this.address = `${id}.example:9185`;
    this.#network = network;
    this.clock = clock;
    this.#api = api;
    this.#limits = limits;
  }

  static async start(
    id: string,
    network: FakeNetwork,
    clock: ManualClock,
    options: { readonly limits?: EarlyLimits } = {},
  ): Promise<FakeCluster> {
    installed ??= FakeCluster.#install();
    const api = await InProcessApi.start({ env: { clock }, from: await installed });
    const cluster = new FakeCluster(id, network, clock, api, options.limits);
    await cluster.startController();
    return cluster;
  }

  /** A server that has stopped, with all on its disk that a cluster begins with. */
  static async #install(): Promise<InProcessApi> {
    const clock = new ManualClock();
    const api = await InProcessApi.start({ env: { clock } });
    const { client, signal } = new FakeCluster('installed', new FakeNetwork(), clock, api);
    await (await ObjectApplier.of(client, signal)).apply(KUBEVIRT_CRDS, signal);
    for (let tries = 0; tries < 5; tries++) await pass(clock, 100, 20);
    const system = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kubevirt' } };
    const applier = await ObjectApplier.of(client, signal);
    await applier.apply([system, ...synchronizationRights()], signal);
    for (const name of ['shop', 'stock'])
      await client.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }, signal);
    await api.stop();
    return api;
  }

  async stop(): Promise<void> {
    await this.stopController();
    await this.#api.stop();
  }

  get client(): Client {
    return new Client(this.#transport(ADMIN), 'test');
  }

  /** Starts the controller, which remembers nothing of its former life. */
  async startController(): Promise<void> {
    const { env } = this.#api;
    const stopping = new AbortController();
    const client = this.#meteredClient();
    const informers = new SharedInformers({ client, env });
    const manager = new Manager({ env, name: this.id });
    const synchronizations = new Synchronizations({
      env,
      client,
      informers,
      clusterId: this.id,
      addresses: () => [this.address],
      trust: {
        isRevoked: (peer) => this.revoked.has(peer),
        release: async (peer) => void this.released.push(peer),
      },
      connect: (listener) => this.#network.join(this.id, this.address, listener, manager.synced),
      ...(this.#limits ? { earlyLimits: this.#limits } : {}),
    });
    this.#revoked = (peer) => synchronizations.revoked(peer);
    const running = manager.add(...informers.all(), synchronizations).run(stopping.signal);
    this.#stop = async () => {
      this.#network.leave(this.id);
      stopping.abort();
      await running;
    };
    await settle(this.clock);
  }

  revoke(peer: string): void {
    this.revoked.add(peer);
    this.#revoked(peer);
  }

  async stopController(): Promise<void> {
    await this.#stop();
    this.#stop = async () => undefined;
  }

  /** A guest, and the migration that is its half of a pair, as their controllers have them when they begin. */
  async half(
    role: 'source' | 'target',
    options: { readonly key?: string; readonly name?: string; readonly namespace?: string; connectURL?: string } = {},
  ): Promise<void> {
    const { key = 'k', name = 'web', namespace = 'shop', connectURL = '' } = options;
    await this.guest(name, namespace);
    await this.migration(role, { key, name, namespace, connectURL });
    await this.begin(role, name, namespace);
  }

  async guest(name = 'web', namespace = 'shop'): Promise<VirtualMachineInstance> {
    return this.client.create(
      virtualMachineInstances,
      {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachineInstance',
        metadata: { name, namespace },
        spec: { domain: { devices: {} } },
      },
      this.signal,
    );
  }

  async migration(
    role: 'source' | 'target',
    options: { key?: string; name?: string; namespace?: string; connectURL?: string; guest?: string } = {},
  ): Promise<VirtualMachineInstanceMigration> {
    const { key = 'k', name = 'web', namespace = 'shop', connectURL = '', guest = name } = options;
    const half = { key, migrationID: key };
    return this.client.create(
      virtualMachineInstanceMigrations,
      {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachineInstanceMigration',
        metadata: { name, namespace, finalizers: ['kubevirt.io/migrationJobFinalize'] },
        spec: {
          vmName: guest,
          vmiName: guest,
          ...(role === 'source' ? { sendTo: { ...half, connectURL } } : { receive: half }),
        },
      },
      this.signal,
    );
  }

  /** The part of the migration controller: the key is this migration's, and the guest's state is its own. */
  async begin(role: 'source' | 'target', name = 'web', namespace = 'shop'): Promise<void> {
    const { metadata } = await this.getMigration(name, namespace);
    const guest = await this.getGuest(name, namespace);
    const own = { migrationUID: metadata.uid ?? '', virtualMachineInstanceUID: guest.metadata.uid ?? '' };
    const state = role === 'source' ? { migrationUid: metadata.uid ?? '', sourceState: own } : { targetState: own };
    await this.patchGuest({ migrationState: state }, name, namespace);
    await this.phase(role === 'source' ? 'Synchronizing' : 'WaitingForSync', name, namespace);
  }

  /** The part of the migration controller: the migration is in this phase. */
  async phase(phase: MigrationPhase, name = 'web', namespace = 'shop'): Promise<void> {
    const { status } = await this.getMigration(name, namespace);
    const moment = { phase, phaseTransitionTimestamp: formatTime(this.clock.now()) };
    const phaseTransitionTimestamps = [...(status?.phaseTransitionTimestamps ?? []), moment];
    await this.#patch(virtualMachineInstanceMigrations, name, namespace, {
      status: { phase, phaseTransitionTimestamps } as JsonObject,
    });
    await settle(this.clock);
  }

  /** The part of the migration controller: the migration is over, and it keeps it no longer. */
  async finish(phase: 'Succeeded' | 'Failed', name = 'web', namespace = 'shop'): Promise<void> {
    await this.phase(phase, name, namespace);
    const { metadata } = await this.getMigration(name, namespace);
    const finalizers = (metadata.finalizers ?? []).filter((each) => each !== 'kubevirt.io/migrationJobFinalize');
    const { namespace: space = '', name: own = '' } = metadata;
    const body = { metadata: { finalizers } };
    await this.client.patch(virtualMachineInstanceMigrations, space, own, { type: 'merge', body }, this.signal);
    await settle(this.clock);
  }

  async patchGuest(status: object, name = 'web', namespace = 'shop'): Promise<void> {
    await this.#patch(virtualMachineInstances, name, namespace, { status } as JsonObject);
    await settle(this.clock);
  }

  getGuest(name = 'web', namespace = 'shop'): Promise<VirtualMachineInstance> {
    return this.client.get(virtualMachineInstances, namespace, name, this.signal);
  }

  getMigration(name = 'web', namespace = 'shop'): Promise<VirtualMachineInstanceMigration> {
    return this.client.get(virtualMachineInstanceMigrations, namespace, name, this.signal);
  }

  findMigration(name = 'web', namespace = 'shop'): Promise<VirtualMachineInstanceMigration | undefined> {
    return this.client.find(virtualMachineInstanceMigrations, namespace, name, this.signal);
  }

  async deleteMigration(name = 'web', namespace = 'shop'): Promise<void> {
    await this.client.delete(virtualMachineInstanceMigrations, namespace, name, this.signal);
    await settle(this.clock);
  }

  async #patch<T extends KubeObject>(resource: Resource<T>, name: string, namespace: string, body: JsonObject) {
    const options = { subresource: 'status' };
    await this.client.patch(resource, namespace, name, { type: 'merge', body }, this.signal, options);
  }

  #transport(identity: LocalIdentity): InProcessTransport {
    return new InProcessTransport((request) => this.#api.core.handle(request), identity);
  }

  #meteredClient(): Client {
    const real = this.#transport(SYNCHRONIZATION_IDENTITY);
    const send = async (request: TransportRequest): Promise<TransportResponse> => {
      if (request.method !== 'GET') this.writes.push(`${request.method} ${request.path.replace(/\?.*/, '')}`);
      const response = await real.send(request);
      return request.path.includes('watch=') ? { ...response, body: this.#lately(response.body) } : response;
    };
    return new Client({ send, close: () => undefined }, 'synchronization');
  }

  async *#lately(body: AsyncIterable<string>): AsyncIterable<string> {
    for await (const piece of body) {
      if (this.late && piece.includes(this.late.text)) await this.late.until;
      yield piece;
    }
  }
}
