import { type DurableFile, isDiskFull, type Logger } from '../../env/ports.ts';
import { errorMessage } from '../../api/error-message.ts';
import {
  compact,
  decodeJournal,
  encodeGroup,
  encodeRecord,
  following,
  JournaledMachines,
  type JournaledStanding,
  type JournalRecord,
  RECORD_BYTES_MAX,
} from '../../migration/right-to-run/journal.ts';
import {
  commitRecord,
  type JournalSpace,
  releaseSpace,
  reserveSpace,
  spaceOf,
} from '../../migration/right-to-run/journal-space.ts';
import { NO_STANDING } from '../../migration/right-to-run/standing.ts';
import { requireUndamaged } from './journal-damage.ts';
import { needsRoom } from './needs-room.ts';

/**
 * The journal of this node's right to run, on its disk. An entry counts once it is durable; whoever waits at the same
 * time is written together.
 *
 * After an error of the disk nobody knows which bytes are on it. So nothing is written behind them: the whole journal is
 * first put into a new file, without the entry that failed, which from then on is certain never to have been. Until that
 * has worked every entry fails, and nobody acts on any.
 *
 * A full disk is no such error. Every pod that may still have to say something has room for its next entry, so that on a
 * full disk what has begun can at least be brought to an end: a machine can end, and a guest that moves is granted, taken
 * or goes on where it was.
 */
export class JournalFile {
  readonly #file: DurableFile;
  readonly #log: Logger;
  readonly #onFailure: () => void;
  /** What the file says. */
  #records: JournalRecord[];
  #machines: JournaledMachines;
  #space: JournalSpace;
  /** How long the file was when it was last written anew. */
  #compactBytes: number;
  #isBroken = false;
  #waiting: Waiting[] = [];
  #writing: Promise<void> | undefined;

  private constructor(file: DurableFile, log: Logger, records: readonly JournalRecord[], onFailure: () => void) {
    this.#file = file;
    this.#log = log;
    this.#onFailure = onFailure;
    this.#records = [...records];
    this.#machines = new JournaledMachines(records);
    this.#space = spaceOf(0, 0);
    this.#compactBytes = 0;
  }

  /**
   * Reads the journal, and makes one where there is none. Rejects with a JournalDamagedError when something other than a
   * crash has changed it: then it attests nothing, and nothing of this node may be started, continued or ended. Whoever
   * counts is told of each write that fails.
   */
  static async open(file: DurableFile, log: Logger, onFailure = (): void => undefined): Promise<JournalFile> {
    const bytes = (await file.read()) ?? new Uint8Array();
    const contents = decodeJournal(bytes);
    requireUndamaged(bytes, contents);
    const { records, isTorn } = contents;
    if (isTorn) log.warn('the last entry of the journal was not written whole, and is dropped');
    const journal = new JournalFile(file, log, records, onFailure);
    // What lies behind the last whole entry must be gone before anything is added.
    await journal.#rewrite();
    return journal;
  }

  /** Where a pod of a virtual machine stands, by what is durable. */
  standing(vm: string, podUID: string): JournaledStanding {
    return this.#machines.podsOf(vm).get(podUID) ?? NO_STANDING;
  }

  /** All that the journal knows of a virtual machine, by pod. */
  podsOf(vm: string): ReadonlyMap<string, JournaledStanding> {
    return this.#machines.podsOf(vm);
  }

  /** Whether a virtual machine was deleted, as far as it is known at all. */
  isDeleted(vm: string): boolean {
    return this.#machines.isDeleted(vm);
  }

  /** The virtual machine that a pod is of; undefined for pods that the journal does not know. */
  vmOf(podUID: string): string | undefined {
    return this.#machines.vmOf(podUID);
  }

  /** All pods that the journal knows. */
  *pods(): Generator<{ readonly vm: string; readonly podUID: string; readonly standing: JournaledStanding }> {
    for (const [vm, pods] of this.#machines.machines()) {
      for (const [podUID, standing] of pods) yield { vm, podUID, standing };
    }
  }

  /** Resolves when the entry is durable. When it rejects, it is not, nor will it be; what follows from it must not be done. */
  append(record: JournalRecord): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ record, sizeBytes: encodeRecord(record).length, resolve, reject });
      this.#writing ??= this.#writeAll();
    });
  }

  /** Resolves when nothing is being written any more. */
  async close(): Promise<void> {
    await this.#writing;
    await this.#file.close();
  }

  async #writeAll(): Promise<void> {
    // Whoever comes in the same turn comes along.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const group = this.#nextGroup();
      try {
        if (group.length > 0) await this.#write(group);
        for (const { resolve } of group) resolve();
      } catch (error) {
        this.#refuse(group, error);
      }
    }
    this.#writing = undefined;
  }

  /** What ends something has room that was set aside for it, and is tried again with no more than that. */
  #refuse(group: readonly Following[], error: unknown): void {
    const mayUseRoom = ({ record, isInOwnRoom }: Following): boolean =>
      isDiskFull(error) && isInOwnRoom !== true && isEnding(record.entry);
    for (const each of group) if (!mayUseRoom(each)) each.reject(error);
    this.#waiting.unshift(...group.filter(mayUseRoom).map((each) => ({ ...each, isInOwnRoom: true as const })));
  }

  /** As many as fit the room of one entry: more could not be promised to anybody. */
  #nextGroup(): Following[] {
    const group: Following[] = [];
    const draft = new Map<string, JournaledStanding>();
    let sizeBytes = 0;
    for (let next = this.#waiting[0]; next; next = this.#waiting[0]) {
      sizeBytes += next.sizeBytes;
      const isOther = group[0]?.isInOwnRoom !== next.isInOwnRoom;
      if (group.length > 0 && (isOther || sizeBytes > RECORD_BYTES_MAX)) break;
      this.#waiting.shift();
      const { vm, podUID } = next.record;
      const id = JSON.stringify([vm, podUID]);
      try {
        const standing = following(draft.get(id) ?? this.standing(vm, podUID), next.record.entry);
        draft.set(id, standing);
        group.push({ ...next, standing });
      } catch (error) {
        // It cannot follow what is there: a bug of whoever says it, and never written.
        next.reject(error);
      }
    }
    return group;
  }

  async #write(group: readonly Following[]): Promise<void> {
    if (this.#isBroken) await this.#rewrite();
    const records = group.map(({ record }) => record);
    const [first, ...more] = records;
    const bytes = first && more.length === 0 ? encodeRecord(first) : encodeGroup(records);
    const at = this.#space.writtenBytes;
    let space = this.#space;
    for (const { podUID } of records) space = releaseSpace(space, podUID);
    ({ space } = commitRecord(space, '', bytes));
    const last = new Map(group.map(({ record, standing }) => [record.podUID, standing]));
    const mayGrow = group[0]?.isInOwnRoom !== true;
    for (const [podUID, standing] of last)
      if (mayGrow && needsRoom(standing)) ({ space } = reserveSpace(space, podUID));
    await this.#grow(space.fileBytes);
    await this.#orBreak(this.#file.write(at, bytes));
    this.#space = { ...space, fileBytes: this.#space.fileBytes };
    for (const { record } of group) this.#take(record);
    if (space.writtenBytes > Math.max(COMPACT_BYTES_MIN, COMPACT_FACTOR * this.#compactBytes)) await this.#shorten();
  }

  #take(record: JournalRecord): void {
    this.#records.push(record);
    this.#machines.add(record);
  }

  /** Makes the file long enough, and a little longer, before anything relies on it. */
  async #grow(neededBytes: number): Promise<void> {
    const { fileBytes } = this.#space;
    if (neededBytes <= fileBytes) return;
    const grownBytes = Math.ceil(neededBytes / GROW_BYTES) * GROW_BYTES;
    // Zeros behind the end do no harm, however many of them are there.
    await this.#orBreak(this.#file.write(fileBytes, new Uint8Array(grownBytes - fileBytes)), isDiskFull);
    this.#space = { ...this.#space, fileBytes: grownBytes };
  }

  /** What is broken stays broken until the whole file is there anew, whatever goes wrong meanwhile. */
  async #orBreak(writing: Promise<void>, isHarmless: (error: unknown) => boolean = () => false): Promise<void> {
    try {
      await writing;
    } catch (error) {
      this.#isBroken ||= !isHarmless(error);
      const what = this.#isBroken ? 'the journal cannot be written, and is written anew' : 'no room for the journal';
      this.#log.error(what, { error: errorMessage(error) });
      this.#onFailure();
      throw error;
    }
  }

  /** The journal is long for what it says. Where that cannot be changed it goes on as it is. */
  async #shorten(): Promise<void> {
    try {
      await this.#rewrite();
    } catch (error) {
      this.#compactBytes = this.#space.writtenBytes;
      this.#log.warn('the journal could not be made shorter', { error: errorMessage(error) });
    }
  }

  async #rewrite(): Promise<void> {
    const records = withoutOldEnds(compact(this.#records));
    const bytes = Buffer.concat(records.map(encodeRecord));
    let space = spaceOf(bytes.length, bytes.length);
    for (const { podUID, standing } of this.pods()) {
      if (needsRoom(standing)) ({ space } = reserveSpace(space, podUID));
    }
    const whole = Buffer.concat([bytes, Buffer.alloc(space.fileBytes - bytes.length)]);
    // Where there is no room for another file, the one that is there stays as it is.
    await this.#orBreak(this.#file.replace(whole), isDiskFull);
    this.#isBroken = false;
    this.#records = [...records];
    this.#machines = new JournaledMachines(records);
    this.#space = space;
    this.#compactBytes = bytes.length;
  }
}

interface Waiting {
  readonly record: JournalRecord;
  readonly sizeBytes: number;
  /** Whether there is no room on the disk but what was set aside for its pod; then none is set aside for the next. */
  readonly isInOwnRoom?: true;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** One that can follow what is there, and what its pod's standing is then. */
interface Following extends Waiting {
  readonly standing: JournaledStanding;
}

/** Shorter journals are not worth the trouble. */
const COMPACT_BYTES_MIN = 256 * 1024;
const COMPACT_FACTOR = 4;
/** The length of a file is one more thing that has to be made durable: it changes in large steps. */
const GROW_BYTES = 64 * 1024;

/** Of how many pods of one machine that are over it is remembered that they are. */
const ENDS_MAX = 8;

/** A machine that is restarted for years has had thousands of pods; who asks after one asks after one of the last. */
function withoutOldEnds(records: readonly JournalRecord[]): readonly JournalRecord[] {
  const counts = new Map<string, number>();
  const isKept = ({ vm, entry }: JournalRecord): boolean => {
    if (entry.kind !== 'standing' || needsRoom(entry.standing)) return true;
    const count = (counts.get(vm) ?? 0) + 1;
    counts.set(vm, count);
    return count <= ENDS_MAX;
  };
  return records.toReversed().filter(isKept).toReversed();
}

/** Whether an entry brings something to an end that has begun: a guest may stand still until it is written. */
function isEnding({ kind }: JournalRecord['entry']): boolean {
  return (
    kind === 'granted' ||
    kind === 'aborted' ||
    kind === 'taken' ||
    kind === 'refused' ||
    kind === 'regained' ||
    kind === 'ended'
  );
}
