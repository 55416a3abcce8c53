import { closeSync, constants, fstatSync, openSync, readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { type Clock, sleep } from '../../env/ports.ts';
import { FILE_NAMES } from '../../hypervisor/qemu/run-files.ts';
import { nodeDirectories } from '../local-nodes.ts';

/** How often logs are looked at: what is heard is known to be no older. */
const LOOK_MS = 10;
/** How many looks pass until new machines are looked for; one that waits for a guest is there long before the guest is. */
const LOOKS_PER_SEARCH = 10;
const READ_BYTES = 64 * 1024;

/**
 * Hears what the guests of this machine's nodes say on their serial ports, in the moment that they say it, by the clock of
 * this machine: a guest's own stands still while it moves.
 */
export class SerialEar {
  readonly #directory: string;
  readonly #clock: Clock;
  readonly #logs = new Map<string, Log>();

  constructor(dataDirectory: string, clock: Clock) {
    this.#directory = dataDirectory;
    this.#clock = clock;
    this.#search('end');
  }

  /** Listens until told to stop. What was said before does not count. */
  async listen(signal: AbortSignal): Promise<void> {
    try {
      for (let looks = 1; !signal.aborted; looks++) {
        await sleep(this.#clock, LOOK_MS, signal);
        if (looks % LOOKS_PER_SEARCH === 0) this.#search('start');
        for (const log of this.#logs.values()) log.look(this.#clock.now());
      }
    } finally {
      for (const log of this.#logs.values()) log.close();
    }
  }

  /** When something was heard in a launcher pod's machine. */
  heardIn(podUID: string): readonly number[] {
    return this.#logs.get(podUID)?.heardMs ?? [];
  }

  #search(from: 'start' | 'end'): void {
    for (const node of nodeDirectories(this.#directory)) {
      for (const podUID of entriesOf(join(node, 'runs'))) {
        if (this.#logs.has(podUID)) continue;
        const log = Log.open(join(node, 'runs', podUID, FILE_NAMES.serialLog), from);
        if (log) this.#logs.set(podUID, log);
      }
    }
  }
}

/** A file that grows. */
class Log {
  readonly #file: number;
  readonly #buffer = Buffer.allocUnsafe(READ_BYTES);
  #offset: number;
  readonly heardMs: number[] = [];

  private constructor(file: number, offset: number) {
    this.#file = file;
    this.#offset = offset;
  }

  /** Undefined where there is none. */
  static open(path: string, from: 'start' | 'end'): Log | undefined {
    try {
      // Who writes it is not trusted: a link, or a pipe that nobody writes to, is no log.
      const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
      return new Log(file, from === 'end' ? fstatSync(file).size : 0);
    } catch {
      // It is not there yet, or there no more.
      return undefined;
    }
  }

  look(nowMs: number): void {
    const before = this.#offset;
    for (;;) {
      const length = readSync(this.#file, this.#buffer, 0, READ_BYTES, this.#offset);
      this.#offset += length;
      if (length < READ_BYTES) break;
    }
    if (this.#offset > before) this.heardMs.push(nowMs);
    // Logs that have become too long begin anew.
    else if (fstatSync(this.#file).size < this.#offset) this.#offset = 0;
  }

  close(): void {
    closeSync(this.#file);
  }
}

function entriesOf(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    // Nothing has been started there yet.
    return [];
  }
}
