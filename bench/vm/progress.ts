import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LoadConnection } from '../load-connection.ts';
import type { LocalCluster } from './local-cluster.ts';

const VIRTUAL_MACHINES = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';
const GUESTS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances';
const PODS = '/api/v1/namespaces/default/pods';
const WAIT_MS_MAX = 180_000;
/** How often a serial log is looked at, if it is the only one. */
const LOOK_MS = 2;

/** What happens to a machine on its way, in this order. */
export const MOMENTS = [
  'Applied',
  'GuestMade',
  'PodMade',
  'PodBound',
  'PodRunning',
  'Scheduled',
  'Running',
  'Spoken',
] as const;
export type Moment = (typeof MOMENTS)[number];

interface Watched {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
  readonly spec?: { readonly nodeName?: string };
  readonly status?: { readonly phase?: string; readonly activePods?: Readonly<Record<string, string>> };
}

/** Applies machines, and notes when what happens to them is seen through watches, as any client would see it. */
export class Progress {
  readonly #cluster: LocalCluster;
  readonly #connection: LoadConnection;
  readonly #moments = new Map<string, Map<Moment, number>>();
  /** The guests that there are, by name, with where their machine runs. */
  readonly #guests = new Map<string, { podUID?: string; node?: string }>();
  readonly #waiting = new Set<() => void>();

  private constructor(cluster: LocalCluster, connection: LoadConnection) {
    this.#cluster = cluster;
    this.#connection = connection;
  }

  static async follow(cluster: LocalCluster): Promise<Progress> {
    const progress = new Progress(cluster, await cluster.connect());
    await progress.#watch(GUESTS, (type, guest) => progress.#seeGuest(type, guest));
    await progress.#watch(PODS, (_, pod) => progress.#seePod(pod));
    return progress;
  }

  /** Creates it; its moments count from now. */
  async apply(machine: { readonly metadata?: { readonly name: string } }): Promise<void> {
    const name = machine.metadata?.name ?? '';
    this.#moments.set(name, new Map([['Applied', performance.now()]]));
    await this.#connection.request('POST', VIRTUAL_MACHINES, JSON.stringify(machine));
  }

  /** Resolves when this has happened to the machine, with the milliseconds since it was applied. */
  async reaches(name: string, moment: Moment): Promise<number> {
    if (moment === 'Spoken') await this.#speaks(name);
    else await this.#until(() => this.#momentsOf(name).has(moment), `${name} is not seen to be ${moment}`);
    return this.at(name, moment);
  }

  /** Milliseconds from applying to this moment, of what has happened. */
  at(name: string, moment: Moment): number {
    const moments = this.#momentsOf(name);
    return (moments.get(moment) ?? Number.NaN) - (moments.get('Applied') ?? Number.NaN);
  }

  /** Deletes machines, and resolves once their guests are gone. */
  async delete(...names: readonly string[]): Promise<void> {
    await Promise.all(names.map((name) => this.#connection.request('DELETE', `${VIRTUAL_MACHINES}/${name}`)));
    await this.#until(() => names.every((name) => !this.#guests.has(name)), 'guests do not go');
  }

  /** Where the machine runs. */
  runDirectory(name: string): string {
    const { podUID = '', node = '' } = this.#guests.get(name) ?? {};
    return join(this.#cluster.dataDirectory, 'nodes', node, 'runs', podUID);
  }

  async #watch(path: string, see: (type: string, object: Watched) => void): Promise<void> {
    let rest = '';
    await this.#connection.watch(`${path}?watch=true`, (bytes) => {
      const lines = (rest + bytes.toString('utf8')).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        const { type, object } = JSON.parse(line) as { type: string; object: Watched };
        see(type, object);
      }
      for (const check of this.#waiting) check();
    });
  }

  #seeGuest(type: string, { metadata, status }: Watched): void {
    const { name } = metadata;
    if (type === 'DELETED') return void this.#guests.delete(name);
    const [podUID, node] = Object.entries(status?.activePods ?? {})[0] ?? [];
    this.#guests.set(name, { podUID, node });
    this.#note(name, 'GuestMade');
    if (status?.phase === 'Scheduled') this.#note(name, 'Scheduled');
    if (status?.phase === 'Running') this.#note(name, 'Running');
  }

  #seePod({ metadata, spec, status }: Watched): void {
    const name = metadata.labels?.['vm.kubevirt.io/name'];
    if (name === undefined) return;
    this.#note(name, 'PodMade');
    if (spec?.nodeName) this.#note(name, 'PodBound');
    if (status?.phase === 'Running') this.#note(name, 'PodRunning');
  }

  #note(name: string, moment: Moment): void {
    const moments = this.#moments.get(name);
    if (moments && !moments.has(moment)) moments.set(moment, performance.now());
  }

  #momentsOf(name: string): ReadonlyMap<Moment, number> {
    return this.#moments.get(name) ?? new Map<Moment, number>();
  }

  async #speaks(name: string): Promise<void> {
    await this.#until(() => this.#guests.get(name)?.node !== undefined, `${name} runs nowhere`);
    await untilSpoken(join(this.runDirectory(name), 'serial.log'));
    this.#note(name, 'Spoken');
  }

  /** Checks with every event that is seen. */
  async #until(isThere: () => boolean, failure: string): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => end(() => reject(new Error(failure))), WAIT_MS_MAX);
      const end = (settle: () => void): void => {
        clearTimeout(timer);
        this.#waiting.delete(check);
        settle();
      };
      const check = (): void => {
        if (isThere()) end(resolve);
      };
      this.#waiting.add(check);
      check();
    });
  }
}

/** How many logs are looked at. */
let lookedAt = 0;

/** Resolves once a guest has said in this log that it lives. Many logs are looked at less often: looking costs, too. */
export async function untilSpoken(serialLog: string): Promise<void> {
  const deadlineMs = performance.now() + WAIT_MS_MAX;
  lookedAt++;
  try {
    while (!existsSync(serialLog) || !/^guest boot=.*count=/m.test(readFileSync(serialLog, 'latin1'))) {
      if (performance.now() > deadlineMs) throw new Error(`no guest speaks in ${serialLog}`);
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS * lookedAt));
    }
  } finally {
    lookedAt--;
  }
}
