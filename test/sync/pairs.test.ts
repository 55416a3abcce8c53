import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { SYNCHRONIZATION_FINALIZER } from '../../src/api/kubevirt/well-known.ts';
import { ControlScene } from '../../src/control/control.fixture.ts';
import { MigrationLeftovers } from '../../src/control/migration/migration-leftovers.ts';
import { makeMigrations, PlayedAgents } from '../../src/control/migration/played-agents.fixture.ts';
import { PlayedPair } from '../../src/control/migration/played-pair.fixture.ts';
import type { Env } from '../../src/env/ports.ts';
import { seededRandom, silentLogger } from '../../src/env/test.ts';
import { realRandom } from '../../src/env/real.ts';
import { ObjectApplier } from '../../src/kube/apply-objects.ts';
import { Client } from '../../src/kube/client.ts';
import { virtualMachineInstanceMigrations as migrations } from '../../src/kube/kubevirt-resources.ts';
import { Manager } from '../../src/kube/manager.ts';
import { SharedInformers } from '../../src/kube/shared-informers.ts';
import type { ChannelListener, Dialer } from '../../src/sync/channel.ts';
import { FakeNetwork } from '../../src/sync/controller/fake-network.fixture.ts';
import { Synchronizations } from '../../src/sync/controller/synchronizations.ts';
import { SYNCHRONIZATION_IDENTITY, synchronizationRights } from '../../src/sync/rights.ts';
import { FixtureNetwork } from '../../src/sync/wire/network.fixture.ts';
import { Switchboard } from '../../src/sync/wire/switchboard.ts';

/**
 * The migration controllers and the synchronization controllers of two clusters, whose agents are played: what either
 * writes is what the other waits for.
 */

/** How the clusters of a test reach each other. */
interface Way {
  readonly addressOf: (cluster: string) => string;
  /** A process of a cluster that others reach once it is ready. */
  readonly join: (cluster: string, listener: ChannelListener, env: Env, ready: Promise<void>) => Dialer;
  readonly leave: (cluster: string) => void;
}

function promises(): Way {
  const network = new FakeNetwork();
  const addressOf = (cluster: string): string => `${cluster}:9185`;
  return {
    addressOf,
    join: (cluster, listener, _, ready) => network.join(cluster, addressOf(cluster), listener, ready),
    leave: (cluster) => network.leave(cluster),
  };
}

/** Streams that take their time. */
function streams(): Way {
  let network: FixtureNetwork | undefined;
  const boards = new Map<string, Switchboard>();
  return {
    addressOf: (cluster) => cluster,
    join: (cluster, listener, env, ready) => {
      const wires = (network ??= new FixtureNetwork({ clock: env.clock, random: seededRandom(1), delayMsMax: 20 }));
      const board = new Switchboard({
        env,
        listener,
        network: wires.of(cluster),
        clusterId: cluster,
        incarnation: env.random.uuid(),
        bundle: () => '',
        renewed: () => undefined,
      });
      boards.set(cluster, board);
      const listen = async (): Promise<void> => {
        await ready;
        wires.listen(cluster, { accept: (link) => board.accept(link) });
      };
      void listen();
      return board;
    },
    leave: (cluster) => {
      network?.kill(cluster);
      boards.get(cluster)?.stop();
    },
  };
}

/** A cluster with both controllers. */
class Side {
  readonly scene = new ControlScene(makeMigrations, (context) => new MigrationLeftovers(context));
  readonly #id: string;
  readonly #way: Way;
  #stop: () => Promise<void> = async () => undefined;

  constructor(id: string, way: Way) {
    this.#id = id;
    this.#way = way;
  }

  get address(): string {
    return this.#way.addressOf(this.#id);
  }

  async start(): Promise<void> {
    await this.scene.start();
    const applier = await ObjectApplier.of(this.scene.client, this.scene.signal);
    await applier.apply(synchronizationRights(), this.scene.signal);
    await new PlayedAgents(this.scene).addNodes('node-a', 'node-b');
    await this.startSynchronization();
  }

  async startSynchronization(): Promise<void> {
    const env = { clock: this.scene.clock, random: realRandom, log: silentLogger };
    const client = new Client(this.scene.clientTransport(SYNCHRONIZATION_IDENTITY), 'synchronization');
    const informers = new SharedInformers({ client, env });
    const manager = new Manager({ env, name: this.#id });
    const synchronizations = new Synchronizations({
      env,
      client,
      informers,
      clusterId: this.#id,
      addresses: () => [this.address],
      trust: { isRevoked: () => false, release: async () => undefined },
      connect: (listener) => this.#way.join(this.#id, listener, env, manager.synced),
    });
    const stopping = new AbortController();
    const running = manager.add(...informers.all(), synchronizations).run(stopping.signal);
    this.#stop = async () => {
      this.#way.leave(this.#id);
      stopping.abort();
      await running;
    };
    await this.scene.settle();
  }

  async stopSynchronization(): Promise<void> {
    await this.#stop();
    this.#stop = async () => undefined;
  }

  async restart(): Promise<void> {
    await this.stopSynchronization();
    await this.startSynchronization();
  }

  async stop(): Promise<void> {
    await this.stopSynchronization();
    await this.scene.stop();
  }
}

/** A pair whose halves nobody carries but the controllers themselves. */
class CarriedPair extends PlayedPair {
  override exchange(): Promise<void> {
    return Promise.resolve();
  }
}

const VOLUME = { name: 'root', containerDisk: { image: 'disk:1' } };
const DISK = { name: 'root', sizeBytes: 2 ** 30, isBlock: false };
const spec = { domain: { devices: {}, memory: { guest: '64Mi' } }, volumes: [VOLUME] };

describe.each([
  { where: 'two clusters', clusters: 2, way: promises() },
  { where: 'two clusters, over streams', clusters: 2, way: streams() },
  { where: 'one cluster', clusters: 1, way: promises() },
])('a pair of $where', ({ clusters, way }) => {
  const here = new Side('here', way);
  const there = clusters === 2 ? new Side('there', way) : here;
  let pair: CarriedPair;
  let count = 0;

  beforeAll(async () => {
    for (const side of new Set([here, there])) await side.start();
  });
  afterAll(async () => {
    for (const side of new Set([here, there])) await side.stop();
  });
  beforeEach(async () => {
    count++;
    pair = new CarriedPair(
      `key-${count}`,
      { agents: new PlayedAgents(here.scene), guest: `web-${count}`, move: `send-${count}` },
      { agents: new PlayedAgents(there.scene), guest: `new-${count}`, move: `receive-${count}` },
    );
    await pair.source.agents.addGuest(`web-${count}`, 'node-a', { spec });
    await pair.addReceiver({ spec });
  });

  const send = (): Promise<unknown> => {
    const { agents, move, guest } = pair.source;
    const sendTo = { key: pair.key, migrationID: pair.key, connectURL: there.address };
    return agents.move(move, guest, { sendTo, cause: 'CrossCluster' });
  };
  const receive = (): Promise<unknown> => {
    const { agents, move, guest } = pair.target;
    return agents.move(move, guest, { receive: { key: pair.key, migrationID: pair.key }, cause: 'CrossCluster' });
  };

  /** Both halves are let go: neither waits for the other any more. */
  const letGo = (): Promise<void> =>
    pair.until(async () => {
      for (const side of [pair.source, pair.target])
        expect((await pair.find(side))?.metadata.finalizers ?? []).not.toContain(SYNCHRONIZATION_FINALIZER);
    });

  const steps = {
    meet: () => pair.meet(),
    runTarget: () => pair.runTarget([DISK]),
    prepare: async () => {
      await pair.reach('PreparingTarget', 'PreparingTarget');
      await pair.prepare();
    },
    begin: async () => {
      await pair.reach('TargetReady', 'TargetReady');
      await pair.begin();
    },
    take: async () => {
      await pair.reach('Running', 'Running');
      await pair.take();
    },
    give: async () => {
      await pair.until(async () => {
        const { completed } = await pair.source.agents.state(pair.source.guest);
        expect(completed).toBe(true);
      });
      await pair.give();
    },
  };

  it.each([
    { first: 'the source', order: [send, receive] },
    { first: 'the target', order: [receive, send] },
  ])('moves a guest, $first first', async ({ order }) => {
    for (const make of order) await make();
    for (const step of Object.values(steps)) await step();
    await pair.reach('Succeeded', 'Succeeded');
    await letGo();
  });

  it.each([
    { which: 'source', side: here },
    { which: 'target', side: there },
  ])('moves a guest though the synchronization of the $which starts anew before every step', async ({ side }) => {
    await send();
    await side.restart();
    await receive();
    for (const step of Object.values(steps)) {
      await step();
      await side.restart();
    }
    await pair.reach('Succeeded', 'Succeeded');
    await letGo();
  });

  it.each([
    { which: 'source', isBegun: false },
    { which: 'target', isBegun: false },
    { which: 'source', isBegun: true },
    { which: 'target', isBegun: true },
  ] as const)('fails on both sides when its $which is cancelled (begun: $isBegun)', async ({ which, isBegun }) => {
    await send();
    await receive();
    await steps.meet();
    if (isBegun) for (const step of [steps.runTarget, steps.prepare, steps.begin]) await step();
    if (isBegun) await pair.reach('Running', 'Running');
    const { agents, move } = pair[which];
    await agents.scene.delete(migrations, move);
    if (isBegun)
      await pair.until(async () => {
        const { abortRequested } = await pair.source.agents.state(pair.source.guest);
        expect(abortRequested).toBe(true);
      });
    if (isBegun) {
      await pair.refuse();
      await pair.giveUp();
    }
    await pair.until(async () => {
      expect(await pair.find(pair[which])).toBeUndefined();
      const other = await pair.find(pair[which === 'source' ? 'target' : 'source']);
      expect(other?.status?.phase).toBe('Failed');
    });
    await letGo();
  });
});
