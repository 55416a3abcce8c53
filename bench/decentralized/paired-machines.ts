import type { SerialTimes } from '../../test/support/serial-times.ts';
import type { LoadConnection } from '../load-connection.ts';
import type { Move } from '../migration/move.ts';
import { until } from '../migration/until.ts';
import { change, type Joined } from './clusters.ts';
import { SeenMigrations } from './seen-migrations.ts';

/** Where one of two machines is between which a guest goes to and fro. */
export interface End {
  readonly of: Joined;
  readonly namespace: string;
  readonly seen: SeenMigrations;
}

/** An end in this namespace. */
export async function endIn(of: Joined, namespace: string): Promise<End> {
  return { of, namespace, seen: await SeenMigrations.on(await of.cluster.connect(), namespace) };
}

interface Guest {
  readonly metadata: { readonly deletionTimestamp?: string };
  readonly status?: {
    readonly phase?: string;
    readonly rightToRun?: { readonly holder?: Holder; readonly across?: boolean };
  };
}

export interface Holder {
  readonly podUID: string;
  readonly node: string;
}

interface Machine {
  readonly metadata: object;
  readonly spec: object;
}

const RESTORED = { 'kubevirt.io/restore-run-strategy': 'Always' };

/** A guest that goes to and fro between two machines, each time by a pair of migrations. */
export class PairedMachines {
  readonly name: string;
  readonly #ends: readonly [End, End];
  readonly #times: SerialTimes;
  readonly #machine: (name: string, runStrategy: string) => { readonly metadata: object };
  #moved = 0;

  constructor(options: {
    readonly name: string;
    readonly ends: readonly [End, End];
    readonly times: SerialTimes;
    readonly machine: (name: string, runStrategy: string) => { readonly metadata: object };
  }) {
    this.name = options.name;
    this.#ends = options.ends;
    this.#times = options.times;
    this.#machine = options.machine;
  }

  /** Starts the guest at the first end, and waits until it speaks. */
  async start(): Promise<void> {
    await this.#create(this.#ends[0], 'Always');
    const { podUID } = await this.holder();
    await until(() => this.#times.firstIn(podUID), `${this.name} does not speak`);
  }

  /** Where the guest is executed. */
  holder(): Promise<Holder> {
    return until(async () => {
      const { status } = (await this.#guest(this.#here)) ?? {};
      return status?.rightToRun?.across === true ? undefined : status?.rightToRun?.holder;
    }, `${this.name} runs nowhere`);
  }

  /** The end at which the guest is. */
  get here(): Joined {
    return this.#here.of;
  }

  /** Moves it to the other end. */
  async move(): Promise<Move> {
    const [source, target] = [this.#here, this.#there];
    await this.#await(target);
    const { podUID } = await this.holder();
    const { boot } = await until(() => this.#times.firstIn(podUID), `${this.name} does not speak`);
    const name = `${this.name}-${this.#moved}`;
    const key = `bench-${name}-${podUID}`;
    await this.#ask(target, name, { receive: { key } });
    const askedMs = performance.now();
    await this.#ask(source, name, { sendTo: { key, connectURL: target.of.address } });
    const ends = await Promise.all([source, target].map(({ seen }) => seen.succeeded(name)));
    this.#moved++;
    const holder = await this.holder();
    const { atMs } = await until(() => this.#times.firstIn(holder.podUID), `${this.name} is lost`);
    return {
      totalMs: atMs - askedMs,
      settledMs: Math.max(...ends) - askedMs,
      downtimeMs: this.#times.silencesMs(boot).at(-1) ?? Number.NaN,
    };
  }

  /** Deletes both machines. */
  async remove(): Promise<void> {
    for (const end of this.#ends) await end.of.connection.request('DELETE', this.#path(end)).catch(() => undefined);
  }

  get #here(): End {
    return this.#ends[this.#moved % 2 === 0 ? 0 : 1];
  }

  get #there(): End {
    return this.#ends[this.#moved % 2 === 0 ? 1 : 0];
  }

  /** Has a machine wait for the guest. */
  async #await(end: End): Promise<void> {
    const { connection } = end.of;
    if (this.#moved === 0) await this.#create(end, 'WaitAsReceiver');
    else
      await change(connection, this.#path(end), (found) => ({
        spec: { ...(found as Machine).spec, runStrategy: 'WaitAsReceiver' },
      }));
    await until(async () => {
      const { metadata, status } = (await this.#guest(end)) ?? {};
      const isWaiting = status?.phase === 'WaitingForSync' && metadata?.deletionTimestamp === undefined;
      return isWaiting ? true : undefined;
    }, `${this.name} is not waited for`);
  }

  async #create(end: End, runStrategy: string): Promise<void> {
    const machine = this.#machine(this.name, runStrategy);
    const body = { ...machine, metadata: { ...machine.metadata, annotations: RESTORED } };
    const path = `/apis/kubevirt.io/v1/namespaces/${end.namespace}/virtualmachines`;
    await end.of.connection.request('POST', path, JSON.stringify(body));
  }

  #ask({ of, namespace }: End, name: string, half: object): Promise<number> {
    return ask(of.connection, namespace, name, { vmiName: this.name, ...half });
  }

  async #guest(end: End): Promise<Guest | undefined> {
    const path = this.#path(end).replace('virtualmachines', 'virtualmachineinstances');
    // There may be none yet.
    const text = await end.of.connection.text('GET', path).catch(() => undefined);
    return text === undefined ? undefined : (JSON.parse(text) as Guest);
  }

  #path({ namespace }: End): string {
    return `/apis/kubevirt.io/v1/namespaces/${namespace}/virtualmachines/${this.name}`;
  }
}

/** Makes a migration. */
export function ask(connection: LoadConnection, namespace: string, name: string, spec: object): Promise<number> {
  const kind = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstanceMigration' };
  const path = `/apis/kubevirt.io/v1/namespaces/${namespace}/virtualmachineinstancemigrations`;
  return connection.request('POST', path, JSON.stringify({ ...kind, metadata: { name }, spec }));
}
