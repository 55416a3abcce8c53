import type { Connection } from '../../src/env/ports.ts';
import type { Machine } from '../../src/hypervisor/hypervisor.ts';

/** A line of the probe guest, such as `guest boot=6f1c count=7 memory=ok`. */
export interface ProbeLine {
  readonly kind: string;
  readonly fields: ReadonlyMap<string, string>;
  readonly text: string;
}

/** A Linux that is translated, on a machine that has other things to do as well. */
const TIMEOUT_MS = 60_000;

/** The serial console of a machine that runs the probe guest. */
export class Console {
  /** Every whole line so far. */
  readonly lines: ProbeLine[] = [];
  #connection: Connection | undefined;
  #rest = '';
  #taken = 0;
  #isOver = false;
  #wake: () => void = () => undefined;

  static async open(machine: Machine): Promise<Console> {
    const console = new Console();
    console.#connection = await machine.openConsole({
      data: (bytes) => console.#take(Buffer.from(bytes).toString('latin1')),
      closed: () => {
        console.#isOver = true;
        console.#wake();
      },
    });
    return console;
  }

  /** The next line of a kind that nobody has taken yet; those before it are passed over. */
  async next(kind: string, field?: string): Promise<ProbeLine> {
    const deadlineMs = Date.now() + TIMEOUT_MS;
    for (;;) {
      while (this.#taken < this.lines.length) {
        const line = this.lines[this.#taken++];
        if (line?.kind === kind && (field === undefined || line.fields.has(field))) return line;
      }
      if (this.#isOver || Date.now() > deadlineMs)
        throw new Error(`no line "${kind} ${field ?? ''}" came: ${JSON.stringify(this.lines.slice(-3))}`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        setTimeout(resolve, 100);
      });
    }
  }

  /** Tells the guest something; what it said before is passed over. */
  tell(command: string): void {
    this.#taken = this.lines.length;
    this.#connection?.write(`${command}\n`);
  }

  /** Tells the guest something, and answers what it says to that. */
  async ask(command: string): Promise<ReadonlyMap<string, string>> {
    this.tell(command);
    return (await this.next('answer')).fields;
  }

  /** Waits until everything that the guest said has come: the machine has ended, or somebody has closed the console. */
  async over(): Promise<void> {
    while (!this.#isOver) await new Promise<void>((resolve) => (this.#wake = resolve));
  }

  /** The counts that were heard, by boot. */
  counts(): Map<string, number[]> {
    const counts = new Map<string, number[]>();
    for (const { kind, fields } of this.lines) {
      const boot = fields.get('boot') ?? '';
      if (kind === 'guest' && fields.has('uptime'))
        counts.set(boot, [...(counts.get(boot) ?? []), Number(fields.get('count'))]);
    }
    return counts;
  }

  close(): void {
    this.#connection?.close();
  }

  #take(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) {
      const [kind = '', ...words] = line.trim().split(' ');
      const fields = new Map(words.map((word) => [word.split('=')[0] ?? '', word.split('=')[1] ?? '']));
      this.lines.push({ kind, fields, text: line });
    }
    this.#wake();
  }
}
