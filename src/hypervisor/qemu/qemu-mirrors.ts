import { type Clock, sleep } from '../../env/ports.ts';
import { HypervisorError } from '../hypervisor.ts';
import type { DevicePlace } from '../machine.ts';
import type { MigrationAddress, Mirror, MirrorOptions } from '../migration.ts';
import { blockNodes, placeOfNode } from './block-nodes.ts';
import { diskName } from './devices.ts';
import { MIRROR_PREFIX } from './migration-progress.ts';
import { peerName, TLS_OBJECT } from './migration-settings.ts';
import { nearbyPath } from './nearby-paths.ts';
import type { ExecuteOptions } from './qmp.ts';
import { isRecord, type QmpEvent } from './qmp-message.ts';

/** A QEMU that can be spoken to. */
export interface QemuControl {
  readonly clock: Clock;
  /** Where it was started. */
  readonly directory: string;
  execute(name: string, args?: Readonly<Record<string, unknown>>, options?: ExecuteOptions): Promise<unknown>;
  onQmpEvent(listener: (event: QmpEvent) => void): () => void;
  /** Ends QEMU's connections to an address, from outside. */
  cutLink(address: MigrationAddress): Promise<void>;
}

const TARGET_PREFIX = 'target-';
/** QEMU connects where it does everything else, and without this waits however long: meanwhile its guest stands still. */
const CONNECT_SECONDS_MAX = 2;
/** Events say when to look again; this is for those that were lost with a connection. */
const LOOK_AGAIN_MS = 200;
/** What is left to copy when a whole mirror ends is what the guest wrote last; it stands still meanwhile. */
const CONCLUDE_WAIT_MS = 10_000;

interface Job {
  readonly id: string;
  readonly mirror: Mirror;
  /** Nothing happens to it any more. */
  readonly isConcluded: boolean;
}

/**
 * The copies of a source's disks on its target.
 *
 * Each is a job that waits for our word even when it has ended, so that how it ended is known to whoever asks, not only to
 * whoever listened. What guests write is copied behind them, and the last of it when they stand still. (Could their writes
 * wait for both copies, none would ever be behind; but QEMU 7.2 corrupts its own memory, one time in four, when such a
 * copy is lost on the way, and a silent link would hold the guest's writes up.)
 */
export class QemuMirrors {
  readonly #qemu: QemuControl;

  constructor(qemu: QemuControl) {
    this.#qemu = qemu;
  }

  async start(options: MirrorOptions): Promise<void> {
    const { bandwidthBytesPerSecond } = options;
    if (!(bandwidthBytesPerSecond >= 0)) throw new HypervisorError('Refused', `${bandwidthBytesPerSecond} is no limit`);
    try {
      for (const place of options.disks) await this.#connect(place, options);
      const sizes = await this.#checkedSizes(options.disks);
      const totalBytes = [...sizes.values()].reduce((total, bytes) => total + bytes, 0);
      for (const [name, bytes] of sizes) {
        await this.#qemu.execute('blockdev-mirror', {
          'job-id': `${MIRROR_PREFIX}${name}`,
          device: name,
          target: `${TARGET_PREFIX}${name}`,
          sync: 'full',
          'copy-mode': 'background',
          speed: shareOf(bandwidthBytesPerSecond, bytes, totalBytes),
          'auto-dismiss': false,
        });
      }
    } catch (error) {
      await this.drop();
      throw error;
    }
  }

  async list(): Promise<readonly Mirror[]> {
    return (await this.#jobs()).map(({ mirror }) => mirror);
  }

  /** Ends all that are whole; QEMU calls that a cancel, since the source goes on with its own disk. */
  async finish(): Promise<void> {
    const jobs = await this.#jobs();
    const wrong = jobs.find(({ mirror }) => mirror.state !== 'whole');
    if (wrong) throw notWhole(wrong);
    for (const { id, isConcluded } of jobs)
      if (!isConcluded) await this.#qemu.execute('block-job-cancel', { device: id });
    const failed = (await this.#concluded()).find(({ mirror }) => mirror.state !== 'whole');
    if (failed) throw notWhole(failed);
    await this.#forget();
  }

  async drop(): Promise<void> {
    await this.#hangUp();
    for (const { id, isConcluded } of await this.#jobs()) {
      if (isConcluded) continue;
      try {
        await this.#qemu.execute('block-job-cancel', { device: id, force: true });
      } catch (error) {
        // It may have ended by itself since; whether it has is seen below.
        if (!(error instanceof HypervisorError) || error.code !== 'Refused') throw error;
      }
    }
    await this.#concluded();
    await this.#forget();
  }

  #connect(place: DevicePlace, { target, tls }: MirrorOptions): Promise<unknown> {
    const name = diskName(place);
    const server =
      'path' in target
        ? { type: 'unix', path: nearbyPath(target.path, this.#qemu.directory) }
        : { type: 'inet', host: target.host, port: String(target.port) };
    return this.#qemu.execute('blockdev-add', {
      driver: 'nbd',
      'node-name': `${TARGET_PREFIX}${name}`,
      server,
      export: name,
      'open-timeout': CONNECT_SECONDS_MAX,
      ...(tls && { 'tls-creds': TLS_OBJECT, 'tls-hostname': peerName(tls.peer) }),
    });
  }

  /** How many bytes each has, by its name. Rejects where its copy would have another size. */
  async #checkedSizes(places: readonly DevicePlace[]): Promise<ReadonlyMap<string, number>> {
    const nodes = await this.#nodes();
    const sizes = new Map<string, number>();
    for (const name of places.map(diskName)) {
      const [own, copy] = [name, `${TARGET_PREFIX}${name}`].map((each) => nodes.get(each)?.sizeBytes);
      if (own === undefined || own !== copy)
        throw new HypervisorError('Refused', `${name} has ${own} bytes here, and ${copy} at the target`);
      sizes.set(name, own);
    }
    return sizes;
  }

  #nodes(): ReturnType<typeof blockNodes> {
    return blockNodes((name, args) => this.#qemu.execute(name, args));
  }

  async #jobs(): Promise<readonly Job[]> {
    const answer = await this.#qemu.execute('query-jobs');
    return (Array.isArray(answer) ? answer : []).flatMap((each: unknown) => mirrorJob(each) ?? []);
  }

  /** Waits until nothing happens to any of them. */
  async #concluded(): Promise<readonly Job[]> {
    const { clock } = this.#qemu;
    const deadlineMs = clock.now() + CONCLUDE_WAIT_MS;
    let news = new AbortController();
    const forget = this.#qemu.onQmpEvent(({ name }) => {
      if (name === 'JOB_STATUS_CHANGE' || name.startsWith('BLOCK_JOB_')) news.abort();
    });
    try {
      for (;;) {
        news = new AbortController();
        const jobs = await this.#jobs();
        if (jobs.every(({ isConcluded }) => isConcluded)) return jobs;
        if (clock.now() >= deadlineMs) throw new HypervisorError('Unreachable', 'the copies of disks do not end');
        await sleep(clock, LOOK_AGAIN_MS, news.signal);
      }
    } finally {
      forget();
    }
  }

  /**
   * Ends the connections to copies. On a link that is silent QEMU would wait for an answer before it ends a mirror, and
   * stand still, guest and all, before it closes a disk.
   */
  async #hangUp(): Promise<void> {
    try {
      const answer = await this.#qemu.execute('query-yank', undefined, { isOutOfBand: true });
      const instances = (Array.isArray(answer) ? answer : []).filter(isCopy);
      if (instances.length > 0) await this.#qemu.execute('yank', { instances }, { isOutOfBand: true });
    } catch (error) {
      // One of them ended by itself meanwhile; what is left of the others is seen by whoever waits for them.
      if (!(error instanceof HypervisorError) || error.code !== 'Refused') throw error;
    }
  }

  /** Nothing is left of them here. */
  async #forget(): Promise<void> {
    await this.#hangUp();
    for (const { id } of await this.#jobs()) await this.#qemu.execute('job-dismiss', { id });
    for (const name of (await this.#nodes()).keys())
      if (name.startsWith(TARGET_PREFIX)) await this.#qemu.execute('blockdev-del', { 'node-name': name });
  }
}

/** What a disk has of a limit, so that all of them are whole at the same time; to QEMU 0 is no limit, too. */
function shareOf(limit: number, bytes: number, totalBytes: number): number {
  return limit === 0 ? 0 : Math.max(1, Math.floor((limit * bytes) / Math.max(1, totalBytes)));
}

function isCopy(instance: unknown): boolean {
  if (!isRecord(instance) || instance['type'] !== 'block-node') return false;
  return String(instance['node-name']).startsWith(TARGET_PREFIX);
}

function notWhole({ id, mirror }: Job): HypervisorError {
  const why = mirror.message ?? `it is ${mirror.state}`;
  return new HypervisorError('Refused', `${id.slice(MIRROR_PREFIX.length)} is not whole at the target: ${why}`);
}

function mirrorJob(job: unknown): Job | undefined {
  if (!isRecord(job) || typeof job['id'] !== 'string') return undefined;
  const place = job['id'].startsWith(MIRROR_PREFIX) ? placeOfNode(job['id'].slice(MIRROR_PREFIX.length)) : undefined;
  if (!place) return undefined;
  const { id, status, error, 'current-progress': copied, 'total-progress': total } = job;
  const isConcluded = status === 'concluded';
  const isWhole = isConcluded || status === 'ready' || status === 'standby';
  const message = typeof error === 'string' ? error : undefined;
  const mirror: Mirror = {
    place,
    state: message === undefined ? (isWhole ? 'whole' : 'copying') : 'failed',
    copiedBytes: Number(copied),
    totalBytes: Number(total),
    message,
  };
  return { id, mirror, isConcluded };
}
