import { type CopyState, isPostCopy } from '../../api/copy-state.ts';
import { errorMessage } from '../../api/error-message.ts';
import { sleep } from '../../env/ports.ts';
import { HypervisorError } from '../hypervisor.ts';
import type { DevicePlace } from '../machine.ts';
import type {
  CopyMethod,
  CopyTarget,
  ListeningPorts,
  ListeningSockets,
  ListenOptions,
  LocalListenOptions,
  LocalSocket,
  MachineMigration,
  MigrationAddress,
  MigrationLimits,
  MigrationProgress,
  MigrationTls,
  Mirror,
  MirrorOptions,
  PortRange,
  SendOptions,
} from '../migration.ts';
import { makeFillable } from './block-nodes.ts';
import { diskName } from './devices.ts';
import { migrationProgress } from './migration-progress.ts';
import {
  limitParameters,
  migrationUri,
  PEER_OBJECT,
  peerName,
  sourceCapabilities,
  sourceParameters,
  targetCapabilities,
  targetParameters,
  TLS_OBJECT,
} from './migration-settings.ts';
import { nearbyPath } from './nearby-paths.ts';
import { type QemuControl, QemuMirrors } from './qemu-mirrors.ts';
import { isRecord } from './qmp-message.ts';

/** How often, and for how long, the guest's network is told where it is, as QEMU does by itself after a migration. */
const ANNOUNCEMENT = { initial: 50, max: 550, rounds: 5, step: 100 };

/** A guest that stands still for longer than this is missed; a host that is not overloaded needs a tenth of it. */
const HANDSHAKE_WAIT_MS = 2000;
/** After that QEMU takes stock of RAM, and answers as little: four times what it was seen to need. */
const SETUP_MS_PER_BYTE = 4 / 1024 / 1024;
const MEET_POLL_MS = 10;
/** How often a connection is ended that hangs, before the machine is given up. */
const CUTS_MAX = 5;

/** What a target calls its sockets, in its own directory. */
const MEMORY_SOCKET = 'incoming-memory.sock';
const DISKS_SOCKET = 'incoming-disks.sock';

/** Live migration as QEMU does it. It keeps nothing: whatever is under way is asked of QEMU. */
export class QemuMigration implements MachineMigration {
  readonly #qemu: QemuControl;
  readonly #mirrors: QemuMirrors;

  constructor(qemu: QemuControl) {
    this.#qemu = qemu;
    this.#mirrors = new QemuMirrors(qemu);
  }

  async ramBytes(): Promise<number> {
    const answer = await this.#qemu.execute('query-memory-size-summary');
    const bytes = isRecord(answer) ? answer['base-memory'] : undefined;
    if (typeof bytes === 'number') return bytes;
    throw new HypervisorError('Unreachable', `QEMU does not tell the size of its RAM: ${JSON.stringify(answer)}`);
  }

  async listen(options: ListenOptions): Promise<ListeningPorts> {
    const { disks, tls, servesDisksLocally = false } = options;
    await this.#setUpTarget(options);
    const start = (addr: object): Promise<unknown> =>
      this.#qemu.execute('nbd-server-start', {
        addr,
        ...(tls && { 'tls-creds': TLS_OBJECT, 'tls-authz': PEER_OBJECT }),
      });
    if (disks.length > 0 && servesDisksLocally) {
      await this.#serveDisks(disks, () => start({ type: 'unix', data: { path: DISKS_SOCKET } }));
      const memoryPort = await this.#orCloseDisks(() =>
        onFreePort(options, undefined, (address) => this.#await(address)),
      );
      return { memoryPort, disksPort: undefined, disks: this.#socket(DISKS_SOCKET) };
    }
    const serve = (): Promise<number> =>
      onFreePort(options, undefined, ({ host, port }) => start({ type: 'inet', data: { host, port: String(port) } }));
    const disksPort = disks.length === 0 ? undefined : await this.#serveDisks(disks, serve);
    const memoryPort = await this.#orCloseDisks(() =>
      onFreePort(options, disksPort, (address) => this.#await(address)),
    );
    return { memoryPort, disksPort };
  }

  async listenLocally({ disks, channels }: LocalListenOptions): Promise<ListeningSockets> {
    await this.#setUpTarget({ tls: undefined, allowsPostCopy: false, channels });
    const data = { path: DISKS_SOCKET };
    const serve = (): Promise<unknown> => this.#qemu.execute('nbd-server-start', { addr: { type: 'unix', data } });
    if (disks.length > 0) await this.#serveDisks(disks, serve);
    await this.#orCloseDisks(() => this.#await({ path: MEMORY_SOCKET }));
    return {
      memory: this.#socket(MEMORY_SOCKET),
      disks: disks.length > 0 ? this.#socket(DISKS_SOCKET) : undefined,
    };
  }

  #socket(name: string): LocalSocket {
    return { path: `${this.#qemu.directory}/${name}` };
  }

  listenAgain(range: PortRange): Promise<number> {
    // The main monitor may hang: its guest, or QEMU itself, waits for memory that does not come.
    return onFreePort(range, undefined, (address) =>
      this.#qemu.execute('migrate-recover', { uri: migrationUri(address) }, { isOutOfBand: true }),
    );
  }

  async closeDisks(): Promise<void> {
    const exports = await this.#qemu.execute('query-block-exports');
    if (Array.isArray(exports) && exports.length > 0) await this.#qemu.execute('nbd-server-stop');
  }

  async announce(): Promise<void> {
    await this.#qemu.execute('announce-self', ANNOUNCEMENT);
  }

  async startMirrors(options: MirrorOptions): Promise<void> {
    await this.#setCredentials('client', options.tls);
    await this.#mirrors.start(options);
  }

  mirrors(): Promise<readonly Mirror[]> {
    return this.#mirrors.list();
  }

  async finishMirrors(): Promise<void> {
    const answer = await this.#qemu.execute('query-status');
    if (!isRecord(answer) || answer['running'] !== false)
      throw new HypervisorError('Refused', 'the copies of disks cannot end while the guest writes');
    await this.#mirrors.finish();
  }

  dropMirrors(): Promise<void> {
    return this.#mirrors.drop();
  }

  async start(options: SendOptions): Promise<void> {
    const [capabilities, parameters] = [sourceCapabilities(options), sourceParameters(options)];
    const { target, tls } = options;
    const uri = migrationUri('path' in target ? { path: nearbyPath(target.path, this.#qemu.directory) } : target);
    await this.#setCredentials('client', tls);
    await this.#qemu.execute('migrate-set-capabilities', capabilities);
    await this.#qemu.execute('migrate-set-parameters', parameters);
    const patienceMs = HANDSHAKE_WAIT_MS + Math.ceil((await this.ramBytes()) * SETUP_MS_PER_BYTE);
    await this.#qemu.execute('migrate', { uri });
    // It may not answer from here on.
    if (tls && !('path' in target)) await this.#meet(target, patienceMs);
  }

  async setLimits(limits: Partial<MigrationLimits>): Promise<void> {
    await this.#qemu.execute('migrate-set-parameters', limitParameters(limits));
  }

  async progress(): Promise<MigrationProgress> {
    return migrationProgress(await this.#qemu.execute('query-migrate'));
  }

  async switchOver(): Promise<void> {
    await this.#qemu.execute('migrate-continue', { state: 'pre-switchover' });
  }

  async cancel(): Promise<void> {
    const { state } = await this.progress();
    // Older versions would obey, and the guest would be nowhere.
    if (isPostCopy(state))
      throw new HypervisorError('Refused', 'the guest has gone over already: its memory has to follow');
    await this.#qemu.execute('migrate_cancel');
    await this.#hangUp();
  }

  async startPostCopy(): Promise<void> {
    await this.#qemu.execute('migrate-start-postcopy');
  }

  async pausePostCopy(): Promise<void> {
    await this.#qemu.execute('migrate-pause', undefined, { isOutOfBand: true });
  }

  async resumePostCopy(address: MigrationAddress): Promise<void> {
    await this.#qemu.execute('migrate', { uri: migrationUri(address), resume: true });
  }

  /** Ends the streams of a migration that was given up: on a silent link QEMU would wait for several of them for ever. */
  async #hangUp(): Promise<void> {
    try {
      await this.#qemu.execute('yank', { instances: [{ type: 'migration' }] }, { isOutOfBand: true });
    } catch (error) {
      // There is none any more.
      if (!isRefused(error)) throw error;
    }
  }

  /**
   * QEMU shakes hands where it does everything else, and waits for its peer however long: meanwhile neither its monitor
   * answers nor its guest runs. Nothing but the end of the connection gets it out of there.
   */
  async #meet(target: MigrationAddress, patienceMs: number): Promise<void> {
    const { clock } = this.#qemu;
    const deadlineMs = clock.now() + patienceMs;
    for (let cuts = 0; cuts < CUTS_MAX; ) {
      const state = await this.#stateWithin(cuts === 0 ? patienceMs : HANDSHAKE_WAIT_MS);
      if (state === undefined) {
        // It may connect only after this, and hang then.
        await this.#qemu.cutLink(target);
        cuts++;
      } else if (state !== 'setup') {
        if (cuts === 0 || state !== 'failed') return;
        throw new HypervisorError('Unreachable', `whoever is at ${migrationUri(target)} does not shake hands`);
      } else if (clock.now() >= deadlineMs) break;
      else await sleep(clock, MEET_POLL_MS);
    }
    await this.#qemu.execute('migrate_cancel');
    throw new HypervisorError('Unreachable', `${migrationUri(target)} cannot be reached`);
  }

  /** The state; undefined where nobody answers for so long. */
  async #stateWithin(timeoutMs: number): Promise<CopyState | undefined> {
    try {
      return migrationProgress(await this.#qemu.execute('query-migrate', undefined, { timeoutMs })).state;
    } catch (error) {
      if (isRefused(error)) throw error;
      return undefined;
    }
  }

  /** Reads credentials into QEMU, in the place of those of an earlier attempt. */
  async #setCredentials(endpoint: 'client' | 'server', tls: MigrationTls | undefined): Promise<void> {
    for (const id of [TLS_OBJECT, PEER_OBJECT]) await this.#remove(id);
    if (!tls) return;
    const peer = peerName(tls.peer);
    await this.#qemu.execute('object-add', {
      'qom-type': 'tls-creds-x509',
      id: TLS_OBJECT,
      endpoint,
      dir: nearbyPath(tls.directory, this.#qemu.directory),
      'verify-peer': true,
    });
    if (endpoint === 'server')
      await this.#qemu.execute('object-add', { 'qom-type': 'authz-simple', id: PEER_OBJECT, identity: `CN=${peer}` });
  }

  async #remove(id: string): Promise<void> {
    try {
      await this.#qemu.execute('object-del', { id });
    } catch (error) {
      // There is none.
      if (!isRefused(error)) throw error;
    }
  }

  async #setUpTarget(method: CopyMethod): Promise<void> {
    const [capabilities, parameters] = [targetCapabilities(method), targetParameters(method)];
    await this.#setCredentials('server', method.tls);
    await this.#qemu.execute('migrate-set-capabilities', capabilities);
    await this.#qemu.execute('migrate-set-parameters', parameters);
  }

  #await(target: CopyTarget): Promise<unknown> {
    return this.#qemu.execute('migrate-incoming', { uri: migrationUri(target) });
  }

  async #orCloseDisks<T>(listen: () => Promise<T>): Promise<T> {
    try {
      return await listen();
    } catch (error) {
      await this.closeDisks();
      throw error;
    }
  }

  async #serveDisks<T>(disks: readonly DevicePlace[], serve: () => Promise<T>): Promise<T> {
    const served = await serve();
    try {
      const names = disks.map(diskName);
      await makeFillable((command, args) => this.#qemu.execute(command, args), names);
      for (const name of names)
        await this.#qemu.execute('block-export-add', {
          type: 'nbd',
          id: `export-${name}`,
          'node-name': name,
          name,
          writable: true,
        });
    } catch (error) {
      await this.#qemu.execute('nbd-server-stop');
      throw error;
    }
    return served;
  }
}

function isRefused(error: unknown): boolean {
  return error instanceof HypervisorError && error.code === 'Refused';
}

/** Tries one port after the other; only whoever listens knows whether one is free. */
async function onFreePort(
  { host, firstPort, lastPort }: PortRange,
  takenPort: number | undefined,
  listen: (address: MigrationAddress) => Promise<unknown>,
): Promise<number> {
  for (let port = firstPort; port <= lastPort; port++) {
    if (port === takenPort) continue;
    try {
      await listen({ host, port });
      return port;
    } catch (error) {
      if (!isRefused(error) || !/address already in use/i.test(errorMessage(error))) throw error;
    }
  }
  throw new HypervisorError('Refused', `no port from ${firstPort} to ${lastPort} is free at ${host}`);
}
