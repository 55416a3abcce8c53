import type { RequestOptions } from 'node:http';
import { Agent, type AgentOptions } from 'node:https';
import type { Duplex } from 'node:stream';
import { connect, type ConnectionOptions } from 'node:tls';
import type { Clock } from '../../env/ports.ts';
import { shownPin } from '../identity/key-pin.ts';

/** What a request says of whom it wants to reach. */
interface Pinned {
  /** The keys of which the server must have one. */
  readonly pins?: readonly string[];
}

/** Shaking hands over a network that works takes milliseconds. */
const HANDSHAKE_TIMEOUT_MS = 10_000;

/**
 * Connections to servers that are known by their keys, whoever has signed their certificates. Nothing is sent before the
 * server has shown that it has one of them; and a connection is used again only for those who want the very same.
 */
export class PinnedAgent extends Agent {
  readonly #clock: Clock;

  constructor(options: AgentOptions, clock: Clock) {
    super(options);
    this.#clock = clock;
  }

  override getName(options: RequestOptions & Pinned): string {
    return `${super.getName(options)}:${(options.pins ?? []).join(' ')}`;
  }

  override createConnection(
    options: RequestOptions & ConnectionOptions & Pinned,
    callback: (error: Error | null, stream: Duplex) => void,
  ): undefined {
    const { pins = [] } = options;
    const socket = connect({ ...options, rejectUnauthorized: false, checkServerIdentity: () => undefined });
    const fail = (error: Error): void => {
      timer.cancel();
      socket.destroy();
      callback(error, socket);
    };
    const timer = this.#clock.setTimer(() => fail(new Error('it does not say who it is')), HANDSHAKE_TIMEOUT_MS);
    socket.once('error', fail);
    socket.once('secureConnect', () => {
      const pin = shownPin(socket.getPeerX509Certificate(), this.#clock.now());
      if (pin === undefined || !pins.includes(pin))
        return fail(new Error('its key is none of those that were named for this migration'));
      timer.cancel();
      socket.off('error', fail);
      callback(null, socket);
    });
  }
}
