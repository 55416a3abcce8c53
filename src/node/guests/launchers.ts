import { basename } from 'node:path';
import type { Clock, Connector, DiskFiles, Processes, UserIdentity } from '../../env/ports.ts';
import { endLauncher, LauncherProcesses } from '../../hypervisor/launcher/launcher-processes.ts';
import { type LauncherEnd, NOTICE_SUFFIX } from '../../hypervisor/launcher/wire.ts';

export interface LaunchersOptions {
  readonly clock: Clock;
  readonly connector: Connector;
  readonly files: Pick<DiskFiles, 'makeDirectory' | 'list' | 'remove'>;
  /** Where the sockets of launchers are, for them and for this agent alone. */
  readonly directory: string;
  /** Whom launchers run as, if not as this process. */
  readonly user: UserIdentity | undefined;
}

const SOCKET_SUFFIX = '.sock';

/** The launchers in the pods of this node, each known by its pod. */
export class Launchers {
  readonly #options: LaunchersOptions;

  constructor(options: LaunchersOptions) {
    this.#options = options;
  }

  /** Makes the place where launchers listen. */
  async prepare(): Promise<void> {
    const { files, directory, user } = this.#options;
    await files.makeDirectory(directory, { mode: 0o700, owner: user });
  }

  /** Processes that are started by the launcher of the pod whose machine they are. */
  processes(processes: Processes): Processes {
    const { clock, connector } = this.#options;
    return new LauncherProcesses({
      clock,
      connector,
      processes,
      socketOf: (runDirectory) => this.#socketOf(basename(runDirectory)),
    });
  }

  /** Has the launcher of a pod end, and the pod with it. Rejects where it does not answer, or has a machine. */
  async end(podUID: string, end: LauncherEnd): Promise<void> {
    const { connector, clock } = this.#options;
    await endLauncher(connector, clock, this.#socketOf(podUID), end);
  }

  /** UIDs of the pods whose launchers were told to end while they have machines. */
  async ending(): Promise<readonly string[]> {
    const { files, directory } = this.#options;
    const suffix = SOCKET_SUFFIX + NOTICE_SUFFIX;
    return (await files.list(directory)).flatMap((name) =>
      name.endsWith(suffix) ? name.slice(0, -suffix.length) : [],
    );
  }

  /** Removes what is left of the launcher of a pod that is gone. */
  async forget(podUID: string): Promise<void> {
    const socket = this.#socketOf(podUID);
    for (const left of [socket, socket + NOTICE_SUFFIX]) await this.#options.files.remove(left);
  }

  #socketOf(podUID: string): string {
    return `${this.#options.directory}/${podUID}${SOCKET_SUFFIX}`;
  }
}
