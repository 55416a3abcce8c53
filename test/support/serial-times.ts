import { closeSync, type FSWatcher, openSync, readdirSync, readSync, watch } from 'node:fs';
import { join } from 'node:path';

/** How often new machines are looked for; one that waits for a guest is there long before the guest is. */
const LOOK_INTERVAL_MS = 20;
const READ_BYTES = 64 * 1024;
const LINE = /^guest boot=([0-9a-f]{32}) count=(\d+) uptime=/;

/** A line of a guest, and when it was heard by this host's clock: a guest's own stands still while it moves. */
interface Heard {
  readonly place: string;
  readonly count: number;
  readonly atMs: number;
}

/** Hears what guests say in the very moment that they say it. */
export class SerialTimes {
  readonly #nodes: string;
  readonly #logs = new Map<string, Log>();
  readonly #heard = new Map<string, Heard[]>();
  readonly #timer: NodeJS.Timeout;

  /** Listens to all machines below the nodes' directories. */
  constructor(nodes: string) {
    this.#nodes = nodes;
    this.#timer = setInterval(() => this.#look(), LOOK_INTERVAL_MS);
    this.#look();
  }

  /** How long a guest was silent between the last line in one machine and the first in the next, for every move. */
  silencesMs(boot: string): number[] {
    const heard = this.#heard.get(boot) ?? [];
    const silences: number[] = [];
    for (const [index, { place, atMs }] of heard.slice(1).entries()) {
      const before = heard[index];
      if (before && before.place !== place) silences.push(atMs - before.atMs);
    }
    return silences;
  }

  /** The longest silence of a guest since a moment, wherever it ran. */
  longestSilenceMs(boot: string, sinceMs: number): number {
    const heard = (this.#heard.get(boot) ?? []).filter(({ atMs }) => atMs >= sinceMs);
    return Math.max(0, ...heard.slice(1).map(({ atMs }, index) => atMs - (heard[index]?.atMs ?? atMs)));
  }

  /** How long ago a guest was last heard. */
  silentForMs(boot: string): number {
    return performance.now() - (this.#heard.get(boot)?.at(-1)?.atMs ?? 0);
  }

  /** The guest that was heard in a machine, and when it was first heard there. */
  firstIn(place: string): { readonly boot: string; readonly atMs: number } | undefined {
    for (const [boot, heard] of this.#heard) {
      const first = heard.find((each) => each.place === place);
      if (first) return { boot, atMs: first.atMs };
    }
    return undefined;
  }

  stop(): void {
    clearInterval(this.#timer);
    for (const log of this.#logs.values()) log.close();
  }

  #look(): void {
    for (const node of entries(this.#nodes))
      for (const podUID of entries(join(this.#nodes, node, 'runs'))) {
        if (this.#logs.has(podUID)) continue;
        try {
          const path = join(this.#nodes, node, 'runs', podUID, 'serial.log');
          this.#logs.set(podUID, new Log(path, (line) => this.#take(podUID, line)));
        } catch {
          // It is not there yet, or there no more.
        }
      }
  }

  #take(place: string, line: string): void {
    const [, boot, count] = LINE.exec(line) ?? [];
    if (boot === undefined) return;
    const heard = this.#heard.get(boot) ?? [];
    this.#heard.set(boot, heard);
    heard.push({ place, count: Number(count), atMs: performance.now() });
  }
}

/** A file that grows. */
class Log {
  readonly #file: number;
  readonly #watcher: FSWatcher;
  readonly #buffer = Buffer.alloc(READ_BYTES);
  #rest = '';

  constructor(path: string, onLine: (line: string) => void) {
    this.#file = openSync(path, 'r');
    this.#watcher = watch(path, () => this.#read(onLine));
    this.#read(onLine);
  }

  close(): void {
    this.#watcher.close();
    closeSync(this.#file);
  }

  #read(onLine: (line: string) => void): void {
    for (;;) {
      const length = readSync(this.#file, this.#buffer);
      if (length === 0) return;
      const lines = (this.#rest + this.#buffer.toString('latin1', 0, length)).split('\n');
      this.#rest = lines.pop() ?? '';
      for (const line of lines) onLine(line);
    }
  }
}

function entries(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    // Nothing has made it yet.
    return [];
  }
}
