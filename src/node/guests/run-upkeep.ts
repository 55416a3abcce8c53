import { errorMessage } from '../../api/error-message.ts';
import { type DiskFiles, type Env, sleep } from '../../env/ports.ts';
import type { JournalFile } from '../journal/journal-file.ts';
import type { GuestNote, GuestNotes, NoteFiles } from './guest-notes.ts';
import type { Machines } from './machines.ts';
import type { Surroundings } from './surroundings.ts';

/** What of the host's files it takes to keep logs short. */
export type LogFiles = Pick<DiskFiles, 'describe' | 'empty'>;

export interface RunUpkeepOptions {
  readonly env: Env;
  readonly surroundings: Surroundings;
  readonly journal: JournalFile;
  readonly machines: Machines;
  readonly notes: GuestNotes;
  readonly files: NoteFiles;
  /** Where absent, logs are as long as they are. */
  readonly logFiles: LogFiles | undefined;
  readonly runDirectoryOf: (podUID: string) => string;
  readonly serialLogOf: (podUID: string) => string;
}

const LOOK_EVERY_MS = 15_000;
const FORGET_EVERY_MS = 3_600_000;
/** How long the log of a serial port may get: half a day of a guest that says much. */
const LOG_BYTES_MAX = 16 * 1024 * 1024;
/** How much of it is kept when it begins anew. */
const KEPT_BYTES = 1024 * 1024;
/** Whose log is still there: this many of the last runs of each guest, and this many of all. */
const RUNS_OF_GUEST_MAX = 5;
const RUNS_MAX = 500;
/** How long the logs of all former runs may be together. */
const FORMER_LOGS_BYTES_MAX = 1024 * 1024 * 1024;

/** Keeps what machines leave behind from filling the disk: logs, directories of former runs, and the journal. */
export class RunUpkeep {
  readonly #options: RunUpkeepOptions;

  constructor(options: RunUpkeepOptions) {
    this.#options = options;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { env } = this.#options;
    let forgottenMs = env.clock.now();
    while (!signal.aborted) {
      await sleep(env.clock, LOOK_EVERY_MS, signal);
      if (signal.aborted) return;
      try {
        await this.shortenLogs();
        await this.removeOldRuns();
        if (env.clock.now() - forgottenMs < FORGET_EVERY_MS) continue;
        forgottenMs = env.clock.now();
        await this.forgetMachines(signal);
      } catch (error) {
        // Nothing depends on it; it is tried again soon.
        env.log.warn('what machines left behind was not cleaned up', { error: errorMessage(error) });
      }
    }
  }

  /** Lets logs that have become long begin anew; the last of them is kept beside. */
  async shortenLogs(): Promise<void> {
    const { logFiles, files, machines, notes, serialLogOf } = this.#options;
    if (!logFiles) return;
    for (const { podUID } of notes.all()) {
      if (!machines.get(podUID)) continue;
      const path = serialLogOf(podUID);
      const found = await logFiles.describe(path);
      if (found?.kind !== 'file' || found.sizeBytes <= LOG_BYTES_MAX) continue;
      const chunks: Uint8Array[] = [];
      const part = { offset: found.sizeBytes - KEPT_BYTES, length: KEPT_BYTES };
      for await (const chunk of files.read(path, part)) chunks.push(chunk);
      await notes.keepLog(podUID, Buffer.concat(chunks));
      await logFiles.empty(path);
    }
  }

  /** Removes all but the last runs of machines that are gone. */
  async removeOldRuns(): Promise<void> {
    const { files, logFiles, notes, runDirectoryOf, serialLogOf } = this.#options;
    const former = notes.all().filter((note) => this.#isOver(note));
    const newer = new Map<string, number>();
    let logBytes = 0;
    for (const [index, note] of former.toReversed().entries()) {
      const guest = `${note.namespace}/${note.name}`;
      const count = newer.get(guest) ?? 0;
      newer.set(guest, count + 1);
      logBytes += (await logFiles?.describe(serialLogOf(note.podUID)))?.sizeBytes ?? 0;
      if (count < RUNS_OF_GUEST_MAX && index < RUNS_MAX && logBytes <= FORMER_LOGS_BYTES_MAX) continue;
      await files.remove(runDirectoryOf(note.podUID));
      await notes.remove(note.podUID);
    }
  }

  /** Has the journal know which virtual machines were deleted, so that it can forget them in time. */
  async forgetMachines(signal: AbortSignal): Promise<void> {
    const { journal, notes, surroundings } = this.#options;
    const asked = new Set<string>();
    for (const note of notes.all()) {
      const vm = journal.vmOf(note.podUID);
      if (vm === undefined || asked.has(vm) || journal.isDeleted(vm) || !this.#isOver(note)) continue;
      asked.add(vm);
      const isOver = [...journal.podsOf(vm).values()].every(({ kind }) => kind === 'ended' || kind === 'refused');
      if (!isOver || (await surroundings.hasMachine(note.namespace, note.name, vm, signal))) continue;
      await journal.append({ vm, podUID: '', entry: { kind: 'forgotten' } });
    }
  }

  /** Whether nothing of the pod is left, here or on the server. */
  #isOver({ podUID }: GuestNote): boolean {
    const { journal, machines, surroundings } = this.#options;
    const vm = journal.vmOf(podUID);
    const kind = vm === undefined ? 'none' : journal.standing(vm, podUID).kind;
    const isSettled = kind === 'none' || kind === 'ended' || kind === 'refused';
    return isSettled && machines.get(podUID) === undefined && !surroundings.knowsPod(podUID);
  }
}
