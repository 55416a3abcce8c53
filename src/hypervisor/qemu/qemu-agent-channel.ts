import type { Connection, ConnectionHandlers, Connector } from '../../env/ports.ts';
import type { GuestAgentChannel } from '../guest-agent-channel.ts';
import { AGENT_PORT } from './devices.ts';
import { isRecord, type QmpEvent } from './qmp-message.ts';
import type { RunFiles } from './run-files.ts';

export interface QemuAgentChannelOptions {
  readonly connector: Connector;
  readonly files: RunFiles;
  readonly execute: (command: string) => Promise<unknown>;
  readonly onQmpEvent: (listener: (event: QmpEvent) => void) => () => void;
}

/** The agent's port of a QEMU. A machine without one says that nobody has opened it. */
export class QemuAgentChannel implements GuestAgentChannel {
  readonly #options: QemuAgentChannelOptions;

  constructor(options: QemuAgentChannelOptions) {
    this.#options = options;
  }

  async isOpen(): Promise<boolean> {
    const devices = await this.#options.execute('query-chardev');
    const isAgent = (each: unknown): boolean =>
      isRecord(each) && each['label'] === AGENT_PORT && each['frontend-open'] === true;
    return Array.isArray(devices) && devices.some(isAgent);
  }

  onChange(listener: (isOpen: boolean) => void): () => void {
    return this.#options.onQmpEvent(({ name, data }) => {
      if (name === 'VSERPORT_CHANGE' && data['id'] === AGENT_PORT) listener(data['open'] === true);
    });
  }

  connect(handlers: ConnectionHandlers): Promise<Connection> {
    return this.#options.connector.connectUnix(this.#options.files.agent, handlers);
  }
}
