import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { SerialTimes } from '../../test/support/serial-times.ts';
import type { LoadConnection } from '../load-connection.ts';
import type { LocalCluster } from '../vm/local-cluster.ts';
import type { Move } from './move.ts';
import { until } from './until.ts';

const API = '/apis/kubevirt.io/v1/namespaces/default';
const GUESTS = `${API}/virtualmachineinstances`;
const MIGRATIONS = `${API}/virtualmachineinstancemigrations`;
const KUBEVIRT = '/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt';
/** By then whoever carries migrations out has heard how. */
const HEARD_MS = 300;

interface Migration {
  readonly metadata: { readonly name: string };
  readonly status?: {
    readonly phase?: string;
    readonly phaseTransitionTimestamps?: readonly { readonly phase: string }[];
    readonly migrationState?: {
      readonly failureReason?: string;
      readonly downtimeMs?: number;
      readonly channel?: { readonly encrypted?: boolean; readonly multifdChannels?: number };
    };
  };
}

interface KubeVirt {
  readonly spec: { readonly configuration?: { readonly migrations?: object } };
}

interface Guest {
  readonly status?: { readonly rightToRun?: { readonly holder?: { readonly podUID: string; readonly node: string } } };
}

/** A move, and how it was seen to go. */
export interface SeenMove extends Move {
  readonly phases: Readonly<Record<string, number>>;
  /** Over how many channels besides the first it went. */
  readonly channels: number;
}

/** Guests that go from node to node as users have them go. */
export class GodwitMoves {
  readonly #connection: LoadConnection;
  readonly #times: SerialTimes;
  readonly #nodes: string;
  /** When a migration was first seen to be in a phase. */
  readonly #phases = new Map<string, Map<string, number>>();
  readonly #migrations = new Map<string, Migration>();
  #made = 0;
  #isEncrypted = true;

  private constructor(connection: LoadConnection, nodes: string) {
    this.#connection = connection;
    this.#nodes = nodes;
    this.#times = new SerialTimes(nodes);
  }

  static async on(cluster: LocalCluster): Promise<GodwitMoves> {
    const moves = new GodwitMoves(await cluster.connect(), join(cluster.dataDirectory, 'nodes'));
    let rest = '';
    await moves.#connection.watch(`${MIGRATIONS}?watch=true`, (bytes) => {
      const lines = (rest + bytes.toString('utf8')).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) moves.#see((JSON.parse(line) as { object: Migration }).object);
    });
    return moves;
  }

  /** The process that a guest is in. */
  async processOf(name: string): Promise<string> {
    const { node, podUID } = await this.#holder(name);
    return join(this.#nodes, node, 'runs', podUID, 'qemu.pid');
  }

  /** Whether what moves from now on is encrypted. */
  async encrypt(isEncrypted: boolean): Promise<void> {
    const found = JSON.parse(await this.#connection.text('GET', KUBEVIRT)) as KubeVirt;
    const migrations = { ...found.spec.configuration?.migrations, disableTLS: !isEncrypted };
    const spec = { ...found.spec, configuration: { ...found.spec.configuration, migrations } };
    await this.#connection.request('PUT', KUBEVIRT, JSON.stringify({ ...found, spec }));
    await sleep(HEARD_MS);
    this.#isEncrypted = isEncrypted;
  }

  /** Moves a guest once. */
  async move(name: string): Promise<SeenMove> {
    const { podUID } = await this.#holder(name);
    const { boot } = await until(() => this.#times.firstIn(podUID), `${name} does not speak`);
    const migration = `${name}-${this.#made++}`;
    const kind = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstanceMigration' };
    const body = { ...kind, metadata: { name: migration }, spec: { vmiName: name } };
    const askedMs = performance.now();
    await this.#connection.request('POST', MIGRATIONS, JSON.stringify(body));
    await until(() => this.#verdict(migration), `${migration} does not end`);
    const target = await this.#holder(name);
    const { atMs } = await until(() => this.#times.firstIn(target.podUID), `${name} is lost`);
    const channels = await until(() => this.#channelsOf(migration), `${migration} does not say how it went`);
    const phases = [...(this.#phases.get(migration) ?? [])].map(([phase, ms]) => [phase, Math.round(ms - askedMs)]);
    return {
      totalMs: atMs - askedMs,
      settledMs: (this.#phases.get(migration)?.get('Succeeded') ?? Number.NaN) - askedMs,
      downtimeMs: this.#times.silencesMs(boot).at(-1) ?? Number.NaN,
      phases: Object.fromEntries(phases) as Record<string, number>,
      channels,
    };
  }

  close(): void {
    this.#times.stop();
  }

  #see(migration: Migration): void {
    const { metadata, status } = migration;
    this.#migrations.set(metadata.name, migration);
    const phases = this.#phases.get(metadata.name) ?? new Map<string, number>();
    this.#phases.set(metadata.name, phases);
    const { phase } = status ?? {};
    if (phase && !phases.has(phase)) phases.set(phase, performance.now());
  }

  #verdict(name: string): true | undefined {
    const { status } = this.#migrations.get(name) ?? {};
    const isEncrypted = status?.migrationState?.channel?.encrypted ?? this.#isEncrypted;
    if (isEncrypted !== this.#isEncrypted) throw new Error(`${name} is encrypted: ${isEncrypted}`);
    if (status?.phase === 'Failed') throw new Error(`${name} has failed: ${status.migrationState?.failureReason}`);
    return status?.phase === 'Succeeded' ? true : undefined;
  }

  #channelsOf(name: string): number | undefined {
    return this.#migrations.get(name)?.status?.migrationState?.channel?.multifdChannels;
  }

  async #holder(name: string): Promise<{ readonly podUID: string; readonly node: string }> {
    return until(async () => {
      const guest = JSON.parse(await this.#connection.text('GET', `${GUESTS}/${name}`)) as Guest;
      return guest.status?.rightToRun?.holder;
    }, `${name} runs nowhere`);
  }
}
