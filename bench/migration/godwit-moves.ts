import { join } from 'node:path';
import { SerialTimes } from '../../test/support/serial-times.ts';
import type { LoadConnection } from '../load-connection.ts';
import type { LocalCluster } from '../vm/local-cluster.ts';
import type { Move } from './move.ts';
import { until } from './until.ts';

const API = '/apis/kubevirt.io/v1/namespaces/default';
const GUESTS = `${API}/virtualmachineinstances`;
const MIGRATIONS = `${API}/virtualmachineinstancemigrations`;

interface Migration {
  readonly metadata: { readonly name: string };
  readonly status?: {
    readonly phase?: string;
    readonly phaseTransitionTimestamps?: readonly { readonly phase: string }[];
    readonly migrationState?: { readonly failureReason?: string; readonly downtimeMs?: number };
  };
}

interface Guest {
  readonly status?: { readonly rightToRun?: { readonly holder?: { readonly podUID: string; readonly node: string } } };
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

  /** Moves a guest once. */
  async move(name: string): Promise<Move & { readonly phases: Readonly<Record<string, number>> }> {
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
    const phases = [...(this.#phases.get(migration) ?? [])].map(([phase, ms]) => [phase, Math.round(ms - askedMs)]);
    return {
      totalMs: atMs - askedMs,
      settledMs: (this.#phases.get(migration)?.get('Succeeded') ?? Number.NaN) - askedMs,
      downtimeMs: this.#times.silencesMs(boot).at(-1) ?? Number.NaN,
      phases: Object.fromEntries(phases) as Record<string, number>,
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
    if (status?.phase === 'Failed') throw new Error(`${name} has failed: ${status.migrationState?.failureReason}`);
    return status?.phase === 'Succeeded' ? true : undefined;
  }

  async #holder(name: string): Promise<{ readonly podUID: string; readonly node: string }> {
    return until(async () => {
      const guest = JSON.parse(await this.#connection.text('GET', `${GUESTS}/${name}`)) as Guest;
      return guest.status?.rightToRun?.holder;
    }, `${name} runs nowhere`);
  }
}
