import type { Clock, DurableFile, Random } from '../env/ports.ts';
import type { NoteFiles } from '../node/guests/guest-notes.ts';

/** What befalls a write: it fails and nobody knows how much of it is there, or there is no room for it. */
export type WriteFault = 'failed-sync' | 'disk-full';

/** What a disk that is full, or fails, says. */
export class ModelDiskError extends Error {
  readonly code: 'ENOSPC' | 'EIO';

  constructor(code: 'ENOSPC' | 'EIO', message: string) {
    super(message);
    this.name = 'ModelDiskError';
    this.code = code;
  }
}

export interface ModelDiskOptions {
  /** The host's own: what an agent has asked for is done though it is dead. */
  readonly clock: Clock;
  readonly random: Random;
  readonly delayMs: () => number;
  readonly fault: () => WriteFault | undefined;
}

interface WriteUnderWay {
  readonly atBytes: number;
  readonly bytes: Uint8Array;
}

/**
 * The disk of a node: the journal and the notes of its agent. It outlives agents. When the power fails, of what is being
 * written something may be there; what was answered is there, whole.
 */
export class ModelDisk {
  readonly #options: ModelDiskOptions;
  #journal: Uint8Array | undefined;
  #files = new Map<string, Uint8Array>();
  readonly #underWay = new Set<WriteUnderWay>();
  #lives = 0;

  constructor(options: ModelDiskOptions) {
    this.#options = options;
  }

  /** The power fails. */
  crash(): void {
    this.#lives++;
    for (const write of this.#underWay) this.#tear(write);
    this.#underWay.clear();
  }

  /** Another disk is put in its place, with nothing on it. */
  replace(): void {
    this.crash();
    this.#journal = undefined;
    this.#files = new Map();
  }

  /** The journal as one agent has it open: what that is told, it is told by its own clock. */
  journal(agentClock: Clock): DurableFile {
    return {
      read: () => this.#do(agentClock, () => this.#journal?.slice()),
      write: (atBytes, bytes) => this.#write(agentClock, { atBytes, bytes: new Uint8Array(bytes) }),
      replace: (bytes) => {
        const whole = new Uint8Array(bytes);
        return this.#do(agentClock, () => {
          this.#failMaybe(() => undefined);
          this.#journal = whole;
        });
      },
      close: () => Promise.resolve(),
    };
  }

  /** The other files, likewise. They are only ever whole. */
  files(agentClock: Clock): NoteFiles {
    const done = <T>(act: () => T): Promise<T> => this.#do(agentClock, act);
    const read = async function* (bytes: Promise<Uint8Array | undefined>, path: string): AsyncGenerator<Uint8Array> {
      const found = await bytes;
      if (!found) throw new Error(`there is no ${path}`);
      yield found;
    };
    return {
      list: (path) => done(() => below([...this.#files.keys()], path)),
      makeDirectory: () => done(() => undefined),
      read: (path) =>
        read(
          done(() => this.#files.get(path)),
          path,
        ),
      remove: (path) =>
        done(() => {
          this.#files.delete(path);
          for (const name of below([...this.#files.keys()], path)) this.#files.delete(`${path}/${name}`);
        }),
      replace: (path, bytes) => {
        const whole = bytes.slice();
        return done(() => {
          this.#failMaybe(() => undefined);
          this.#files.set(path, whole);
        });
      },
    };
  }

  #write(agentClock: Clock, write: WriteUnderWay): Promise<void> {
    this.#underWay.add(write);
    return this.#do(agentClock, () => {
      this.#underWay.delete(write);
      this.#failMaybe(() => this.#tear(write));
      this.#put(write.atBytes, write.bytes);
    });
  }

  #failMaybe(onFailedSync: () => void): void {
    const fault = this.#options.fault();
    if (fault === undefined) return;
    if (fault === 'disk-full') throw new ModelDiskError('ENOSPC', 'no space left on the model of a disk');
    onFailedSync();
    throw new ModelDiskError('EIO', 'the model of a disk failed to sync');
  }

  /** Some of it is there, from the front or from the back. */
  #tear({ atBytes, bytes }: WriteUnderWay): void {
    const { random } = this.#options;
    const cut = Math.floor(random.number() * (bytes.length + 1));
    const isFront = random.number() < 0.7;
    if (isFront) this.#put(atBytes, bytes.subarray(0, cut));
    else this.#put(atBytes + cut, bytes.subarray(cut));
  }

  /** In place: one that is copied for every entry costs the more, the more guests it tells of. */
  #put(atBytes: number, bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    const endBytes = atBytes + bytes.length;
    const old = this.#journal ?? new Uint8Array();
    this.#journal = endBytes > old.length ? lengthened(old, endBytes) : old;
    this.#journal.set(bytes, atBytes);
  }

  /** Done after a while, unless the power fails before; answered to those who live. */
  #do<T>(agentClock: Clock, act: () => T): Promise<T> {
    const { clock, delayMs } = this.#options;
    const life = this.#lives;
    return new Promise((resolve, reject) => {
      clock.setTimer(() => {
        if (this.#lives !== life) return;
        let answer: () => void;
        try {
          const value = act();
          answer = () => resolve(value);
        } catch (error) {
          answer = () => reject(error);
        }
        agentClock.setTimer(answer, delayMs());
      }, delayMs());
    });
  }
}

/** The same bytes, and zeros up to a length; with room for as much again, so that it is rarely copied. */
function lengthened(bytes: Uint8Array, lengthBytes: number): Uint8Array {
  if (lengthBytes <= bytes.buffer.byteLength) return new Uint8Array(bytes.buffer, 0, lengthBytes);
  const next = new Uint8Array(2 * lengthBytes);
  next.set(bytes);
  return next.subarray(0, lengthBytes);
}

function below(paths: readonly string[], directory: string): string[] {
  return paths.filter((path) => path.startsWith(`${directory}/`)).map((path) => path.slice(directory.length + 1));
}
