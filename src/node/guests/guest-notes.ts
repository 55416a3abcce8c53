import type { DiskFiles } from '../../env/ports.ts';
import type { MachineEnd } from '../../hypervisor/hypervisor.ts';
import type { MachineSpec } from '../../hypervisor/machine.ts';

/**
 * What an agent notes about each of its launcher pods beside the journal: whose guest it is, and how its machine ended.
 * Nothing that must not be wrong rests on it: it finds the serial logs of guests that are gone, and tells a guest that
 * turned itself off from one that was killed when the agent was not there to see. The files are the agent's own, since a
 * machine could put links into the directory that it runs in.
 */

export interface GuestNote {
  readonly podUID: string;
  readonly podName: string;
  readonly namespace: string;
  readonly name: string;
  readonly guestUID: string;
  /** When it was noted: before its machine was started. */
  readonly atMs: number;
  /** What its machine was started as; nothing but a like one can take its guest. */
  readonly spec?: MachineSpec;
  readonly end?: MachineEnd;
}

/** What of the host's files is needed for it. */
export type NoteFiles = Pick<DiskFiles, 'list' | 'makeDirectory' | 'read' | 'remove' | 'replace'>;

const SUFFIX = '.json';
const LOG_SUFFIX = '.log';
const ACCESS = { mode: 0o600 };

export class GuestNotes {
  readonly #files: NoteFiles;
  readonly #directory: string;
  readonly #notes = new Map<string, GuestNote>();
  readonly #keptLogs = new Set<string>();

  constructor(files: NoteFiles, directory: string) {
    this.#files = files;
    this.#directory = directory;
  }

  /** Reads what former agents noted. What cannot be read is passed over. */
  async load(): Promise<void> {
    await this.#files.makeDirectory(this.#directory, { mode: 0o700 });
    for (const file of await this.#files.list(this.#directory)) {
      if (file.endsWith(LOG_SUFFIX)) this.#keptLogs.add(file.slice(0, -LOG_SUFFIX.length));
      if (!file.endsWith(SUFFIX)) continue;
      const note = noteOf(await textOf(this.#files, `${this.#directory}/${file}`));
      if (note?.podUID === file.slice(0, -SUFFIX.length)) this.#notes.set(note.podUID, note);
    }
  }

  get(podUID: string): GuestNote | undefined {
    return this.#notes.get(podUID);
  }

  /** All notes of a guest's name, oldest first. */
  of(namespace: string, name: string): readonly GuestNote[] {
    return this.all().filter((note) => note.namespace === namespace && note.name === name);
  }

  /** All notes, oldest first. */
  all(): readonly GuestNote[] {
    return [...this.#notes.values()].sort((a, b) => a.atMs - b.atMs);
  }

  async put(note: GuestNote): Promise<void> {
    this.#notes.set(note.podUID, note);
    await this.#files.replace(this.#pathOf(note.podUID), Buffer.from(JSON.stringify(note)), ACCESS);
  }

  /** How a pod's machine ended: as it was seen now, or noted then. */
  endOf(podUID: string, seen: { readonly end?: MachineEnd }): MachineEnd | undefined {
    return seen.end ?? this.#notes.get(podUID)?.end;
  }

  /** Takes note of how a machine ended. */
  async noteEnd(podUID: string, end: MachineEnd): Promise<void> {
    const note = this.#notes.get(podUID);
    if (note) await this.put({ ...note, end });
  }

  /** Keeps the last of a log that begins anew. */
  async keepLog(podUID: string, bytes: Uint8Array): Promise<void> {
    await this.#files.replace(this.#keptLogOf(podUID), bytes, ACCESS);
    this.#keptLogs.add(podUID);
  }

  /** Where the last of a log was kept that has begun anew since. */
  keptLog(podUID: string): string | undefined {
    return this.#keptLogs.has(podUID) ? this.#keptLogOf(podUID) : undefined;
  }

  async remove(podUID: string): Promise<void> {
    this.#notes.delete(podUID);
    this.#keptLogs.delete(podUID);
    await this.#files.remove(this.#keptLogOf(podUID));
    await this.#files.remove(this.#pathOf(podUID));
  }

  #keptLogOf(podUID: string): string {
    return `${this.#directory}/${podUID}${LOG_SUFFIX}`;
  }

  #pathOf(podUID: string): string {
    return `${this.#directory}/${podUID}${SUFFIX}`;
  }
}

async function textOf(files: NoteFiles, path: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of files.read(path)) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

function noteOf(text: string): GuestNote | undefined {
  try {
    const note = JSON.parse(text) as Partial<GuestNote> | null;
    const texts = [note?.podUID, note?.podName, note?.namespace, note?.name, note?.guestUID];
    const isWhole = texts.every((each) => typeof each === 'string') && typeof note?.atMs === 'number';
    return isWhole ? (note as GuestNote) : undefined;
  } catch {
    // A note that is no JSON is none; see above how little rests on it.
    return undefined;
  }
}
