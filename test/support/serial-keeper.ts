import { linkSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const LOOK_INTERVAL_MS = 25;

/**
 * Keeps what guests say on their serial ports, also when whoever ran them has cleaned up: each log gets a second name as
 * soon as it is seen, and a file lives as long as it has one.
 */
export class SerialKeeper {
  readonly #nodes: string;
  readonly #kept: string;
  readonly #podUIDs = new Set<string>();
  readonly #timer: NodeJS.Timeout;

  /** Looks below the nodes' directories; keeps in another directory of the same file system. */
  constructor(nodes: string, kept: string) {
    this.#nodes = nodes;
    this.#kept = kept;
    mkdirSync(kept);
    this.#timer = setInterval(() => this.#look(), LOOK_INTERVAL_MS);
  }

  /** Every log so far, by the UID of the pod that ran the guest. */
  logs(): Map<string, string> {
    this.#look();
    return new Map([...this.#podUIDs].map((podUID) => [podUID, readFileSync(join(this.#kept, podUID), 'latin1')]));
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    for (const node of entries(this.#nodes))
      for (const podUID of entries(join(this.#nodes, node, 'runs'))) {
        if (this.#podUIDs.has(podUID)) continue;
        try {
          linkSync(join(this.#nodes, node, 'runs', podUID, 'serial.log'), join(this.#kept, podUID));
          this.#podUIDs.add(podUID);
        } catch {
          // It is not there yet, or there no more.
        }
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
