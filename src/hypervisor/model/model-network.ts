import { HypervisorError } from '../hypervisor.ts';
import type { CopyTarget, MigrationAddress } from '../migration.ts';
import type { HostedMigration } from './hosted-migration.ts';

/** How a link is: `cut` tells both of its sides, `silent` tells nobody. */
export type LinkState = 'up' | 'cut' | 'silent';

/** What is told when the link to a host changes. */
export interface LinkUser {
  linkChanged(): void;
}

/** The way to one host, which all that goes there shares. */
export class ModelLink {
  readonly users = new Set<LinkUser>();
  #state: LinkState = 'up';
  #bytesPerSecond: number;

  constructor(bytesPerSecond: number) {
    this.#bytesPerSecond = bytesPerSecond;
  }

  get state(): LinkState {
    return this.#state;
  }

  /** What one user gets of it. */
  get bytesPerSecond(): number {
    return this.#bytesPerSecond / Math.max(1, this.users.size);
  }

  become(state: LinkState): void {
    this.#state = state;
    this.changed();
  }

  use(user: LinkUser): void {
    this.users.add(user);
    this.changed();
  }

  leave(user: LinkUser): void {
    if (this.users.delete(user)) this.changed();
  }

  changed(): void {
    for (const user of this.users) user.linkChanged();
  }
}

/** The address that is meant; models have no sockets of their own. */
export function onNetwork(target: CopyTarget): MigrationAddress {
  if ('path' in target) throw new HypervisorError('Refused', 'the model of a machine has no sockets');
  return target;
}

/** Ten gigabits per second. */
const BYTES_PER_SECOND = 1_250_000_000;

/** What lies between hosts of models: who listens where, and how the ways there are. */
export class ModelNetwork {
  readonly #bytesPerSecond: number;
  readonly #links = new Map<string, ModelLink>();
  readonly #listeners = new Map<string, HostedMigration>();

  constructor(bytesPerSecond = BYTES_PER_SECOND) {
    this.#bytesPerSecond = bytesPerSecond;
  }

  /** The way to a host. */
  link(host: string): ModelLink {
    const link = this.#links.get(host) ?? new ModelLink(this.#bytesPerSecond);
    this.#links.set(host, link);
    return link;
  }

  /** False where another listens already. */
  listen({ host, port }: MigrationAddress, migration: HostedMigration): boolean {
    const name = `${host}:${port}`;
    if (this.#listeners.has(name)) return false;
    this.#listeners.set(name, migration);
    return true;
  }

  listener({ host, port }: MigrationAddress): HostedMigration | undefined {
    return this.#listeners.get(`${host}:${port}`);
  }

  /** Nobody reaches it any more. */
  forget({ host, port }: MigrationAddress): void {
    this.#listeners.delete(`${host}:${port}`);
  }
}
