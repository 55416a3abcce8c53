import { HypervisorError } from '../hypervisor.ts';
import type {
  ListeningPorts,
  ListeningSockets,
  ListenOptions,
  MachineMigration,
  MigrationAddress,
  MigrationLimits,
  MigrationProgress,
  Mirror,
  MirrorOptions,
  PortRange,
  SendOptions,
} from '../migration.ts';
import type { HostedMigration } from './hosted-migration.ts';

/** The migration of a model as one agent holds it. */
export class ModelMigration implements MachineMigration {
  readonly #tell: <T>(command: (migration: HostedMigration) => T) => Promise<T>;

  /** What carries a command there, and its answer back. */
  constructor(tell: <T>(command: (migration: HostedMigration) => T) => Promise<T>) {
    this.#tell = tell;
  }

  ramBytes(): Promise<number> {
    return this.#tell((migration) => migration.ramBytes());
  }

  listen(options: ListenOptions): Promise<ListeningPorts> {
    return this.#tell((migration) => migration.listen(options));
  }

  listenLocally(): Promise<ListeningSockets> {
    return this.#tell(() => {
      throw new HypervisorError('Refused', 'the model of a machine has no sockets');
    });
  }

  listenAgain(range: PortRange): Promise<number> {
    return this.#tell((migration) => migration.listenAgain(range));
  }

  closeDisks(): Promise<void> {
    return this.#tell((migration) => migration.closeDisks());
  }

  /** The network of models always knows where everybody is. */
  announce(): Promise<void> {
    return this.#tell(() => undefined);
  }

  startMirrors(options: MirrorOptions): Promise<void> {
    return this.#tell((migration) => migration.startMirrors(options));
  }

  mirrors(): Promise<readonly Mirror[]> {
    return this.#tell((migration) => migration.mirrors());
  }

  finishMirrors(): Promise<void> {
    return this.#tell((migration) => migration.finishMirrors());
  }

  dropMirrors(): Promise<void> {
    return this.#tell((migration) => migration.dropMirrors());
  }

  start(options: SendOptions): Promise<void> {
    return this.#tell((migration) => migration.start(options));
  }

  setLimits(limits: Partial<MigrationLimits>): Promise<void> {
    return this.#tell((migration) => migration.setLimits(limits));
  }

  progress(): Promise<MigrationProgress> {
    return this.#tell((migration) => migration.progress());
  }

  switchOver(): Promise<void> {
    return this.#tell((migration) => migration.switchOver());
  }

  cancel(): Promise<void> {
    return this.#tell((migration) => migration.cancel());
  }

  startPostCopy(): Promise<void> {
    return this.#tell((migration) => migration.startPostCopy());
  }

  pausePostCopy(): Promise<void> {
    return this.#tell((migration) => migration.pausePostCopy());
  }

  resumePostCopy(address: MigrationAddress): Promise<void> {
    return this.#tell((migration) => migration.resumePostCopy(address));
  }
}
