import type { Connection, ConnectionHandlers } from '../../env/ports.ts';
import type { GuestAgentChannel } from '../../hypervisor/guest-agent-channel.ts';
import type { Machine, MachineEnd, MachineEvent, MachineStatus } from '../../hypervisor/hypervisor.ts';

/** What a well-behaved agent answers. */
export const ANSWERS: Readonly<Record<string, unknown>> = {
  'guest-info': { version: '7.2.0', supported_commands: [] },
  'guest-get-osinfo': {
    id: 'debian',
    name: 'Debian',
    'pretty-name': 'Debian 12',
    'version-id': '12',
    'kernel-release': '6.1.0',
    machine: 'x86_64',
  },
  'guest-get-host-name': { 'host-name': 'tern' },
};

/** A guest with an agent that says whatever it is told to, or nothing at all. */
export class FakeAgent implements GuestAgentChannel {
  /** Whether somebody in the guest has the port open. */
  isThere = false;
  isSilent = false;
  /** What it answers, by command; a string is said as it is. */
  answers: Readonly<Record<string, unknown>> = ANSWERS;
  status: MachineStatus = 'running';
  readonly asked: string[] = [];
  /** What it was told besides the names of commands. */
  readonly said: object[] = [];
  /** How often its machine was asked whether somebody is there. */
  looks = 0;
  connections = 0;
  readonly #listeners = new Set<(isOpen: boolean) => void>();
  readonly #eventListeners = new Set<(event: MachineEvent) => unknown>();
  #handlers: ConnectionHandlers | undefined;
  #onEnd: (end: MachineEnd) => void = () => undefined;

  /** As much of a machine as is needed to look after its agent. */
  machine(): Machine {
    const ended = new Promise<MachineEnd>((resolve) => (this.#onEnd = resolve));
    const machine = {
      guestAgent: this,
      ended,
      status: async () => this.status,
      onEvent: (listener: (event: MachineEvent) => unknown) => {
        this.#eventListeners.add(listener);
        return () => void this.#eventListeners.delete(listener);
      },
    } satisfies Partial<Machine>;
    return machine as unknown as Machine;
  }

  async isOpen(): Promise<boolean> {
    this.looks++;
    return this.isThere;
  }

  onChange(listener: (isOpen: boolean) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  async connect(handlers: ConnectionHandlers): Promise<Connection> {
    this.#handlers = handlers;
    this.connections++;
    return {
      write: (bytes) => this.#take(Buffer.from(bytes)),
      close: () => {
        this.connections--;
        this.#handlers = undefined;
        handlers.closed();
      },
    };
  }

  comes(): void {
    this.isThere = true;
    for (const listener of this.#listeners) listener(true);
  }

  goes(): void {
    this.isThere = false;
    for (const listener of this.#listeners) listener(false);
  }

  becomes(status: 'running' | 'paused'): void {
    this.status = status;
    const kind = status === 'running' ? 'resumed' : 'stopped';
    for (const listener of this.#eventListeners) listener({ kind, atMs: undefined });
  }

  ends(): void {
    this.#onEnd({ reason: 'Quit', message: '', log: [] });
  }

  says(bytes: Uint8Array | string): void {
    this.#handlers?.data(Buffer.from(bytes));
  }

  #take(bytes: Buffer): void {
    const isSync = bytes[0] === 0xff;
    const { execute, arguments: args } = JSON.parse(bytes.subarray(isSync ? 1 : 0).toString()) as {
      execute: string;
      arguments?: { id: number };
    };
    this.asked.push(execute);
    if (args) this.said.push(args);
    if (this.isSilent) return;
    const answer = this.answers[execute];
    if (typeof answer === 'string') return this.says(answer);
    if (isSync)
      return this.says(Buffer.concat([Buffer.of(0xff), Buffer.from(`${JSON.stringify({ return: args?.id ?? 0 })}\n`)]));
    const error = { class: 'CommandNotFound', desc: '' };
    this.says(`${JSON.stringify(answer === undefined ? { error } : { return: answer })}\n`);
  }
}
