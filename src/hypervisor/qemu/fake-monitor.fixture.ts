import type { ConnectionHandlers, Connector } from '../../env/ports.ts';

interface Command {
  readonly execute?: string;
  readonly 'exec-oob'?: string;
  readonly arguments?: Readonly<Record<string, unknown>>;
  readonly id: number;
}

/** The other end of a monitor's socket, which says whatever a test wants it to. */
export class FakeMonitor implements Connector {
  /** Every command that came, the negotiation included. */
  readonly commands: Command[] = [];
  isOpen = false;
  /** Hears every command, after it was put on the list. */
  onCommand: (command: Command) => void = () => undefined;
  readonly #greeting: string;
  #handlers: ConnectionHandlers | undefined;

  constructor(capabilities: readonly string[] = ['oob']) {
    const version = { qemu: { major: 7, minor: 2, micro: 22 }, package: 'fake' };
    this.#greeting = JSON.stringify({ QMP: { version, capabilities } });
  }

  connectUnix(path: string, handlers: ConnectionHandlers): ReturnType<Connector['connectUnix']> {
    if (path !== '/monitor') return Promise.reject(new Error(`ENOENT ${path}`));
    this.#handlers = handlers;
    this.isOpen = true;
    queueMicrotask(() => this.greet());
    return Promise.resolve({
      write: (bytes) => {
        const command = JSON.parse(typeof bytes === 'string' ? bytes : Buffer.from(bytes).toString()) as Command;
        this.commands.push(command);
        if (command.execute === 'qmp_capabilities') this.answer(command.id);
        this.onCommand(command);
      },
      close: () => this.hangUp(),
    });
  }

  /** What QEMU says first. */
  greet(): void {
    this.say(`${this.#greeting}\r\n`);
  }

  say(text: string | Uint8Array): void {
    if (this.isOpen) this.#handlers?.data(typeof text === 'string' ? Buffer.from(text) : text);
  }

  answer(id: number, value: unknown = {}): void {
    this.say(`${JSON.stringify({ return: value, id })}\r\n`);
  }

  refuse(id: number, desc: string): void {
    this.say(`${JSON.stringify({ error: { class: 'GenericError', desc }, id })}\r\n`);
  }

  hangUp(error?: Error): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.#handlers?.closed(error);
  }

  /** The names of the commands, without the negotiation. */
  names(): string[] {
    return this.commands.slice(1).map((each) => each.execute ?? `oob ${each['exec-oob']}`);
  }

  /** The id of a command by its name. */
  idOf(name: string): number {
    const found = this.commands.find((each) => (each.execute ?? each['exec-oob']) === name);
    if (!found) throw new Error(`nobody sent ${name}`);
    return found.id;
  }
}
