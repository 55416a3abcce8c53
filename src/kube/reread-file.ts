import { KubeconfigError, type KubeconfigPorts } from './kubeconfig-ports.ts';

/** How long what was read is good: client-go's minute. Kubelets rotate tokens long before they expire. */
const FRESH_MS = 60_000;

/** A file that others replace from time to time: tokens, certificates. */
export class RereadFile {
  readonly #ports: KubeconfigPorts;
  readonly #path: string;
  readonly #purpose: string;
  #known: { readonly text: string; readonly readMs: number } | undefined;

  /** `purpose` says in errors what the file is for. */
  constructor(ports: KubeconfigPorts, path: string, purpose: string) {
    this.#ports = ports;
    this.#path = path;
    this.#purpose = purpose;
  }

  /** What is in it, as of at most a minute ago, without white space around it. Rejects with KubeconfigError. */
  async text(): Promise<string> {
    const nowMs = this.#ports.clock.now();
    if (this.#known && nowMs - this.#known.readMs < FRESH_MS) return this.#known.text;
    try {
      const text = (await this.#ports.readFile(this.#path)).trim();
      if (text === '') throw new Error('it is empty');
      this.#known = { text, readMs: nowMs };
      return text;
    } catch (error) {
      // Whoever replaces it may be at it just now; what it said a minute ago is most likely still good.
      if (this.#known) return this.#known.text;
      const reason =
        (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'there is no such file' : (error as Error).message;
      throw new KubeconfigError(`${this.#purpose}: cannot read ${this.#path}: ${reason}`, error);
    }
  }

  /** Reads it again the next time, whatever its age. */
  forget(): void {
    if (this.#known) this.#known = { ...this.#known, readMs: Number.NEGATIVE_INFINITY };
  }
}
