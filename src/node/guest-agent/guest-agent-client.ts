import { errorMessage } from '../../api/error-message.ts';
import type { Clock, Connection, Random } from '../../env/ports.ts';
import type { GuestAgentChannel } from '../../hypervisor/guest-agent-channel.ts';

/** How long an agent may take to answer; a guest that is busy needs seconds. */
const ANSWER_MS = 10_000;
/** No answer to what is asked here is longer: the longest lists the agent's commands. */
const ANSWER_BYTES_MAX = 64 * 1024;
/** How much may come unasked before nobody listens any more: an answer that came too late, and little else. */
const UNASKED_BYTES_MAX = 4096;

const NANOSECONDS_PER_MS = 1_000_000;

const DELIMITER = 0xff;
const NEWLINE = 0x0a;

export interface GuestAgentClientOptions {
  readonly channel: GuestAgentChannel;
  readonly clock: Clock;
  readonly random: Random;
}

/** The agent does not answer, or not as agents do; the line is closed. */
export class GuestAgentError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'GuestAgentError';
  }
}

/**
 * Speaks the guest agent's protocol: a line of JSON each way, one after the other. The guest is nobody to be trusted:
 * no more is kept of what it says than one answer may be long, and who says too much or too little is not heard again.
 */
export class GuestAgentClient {
  readonly #clock: Clock;
  readonly #random: Random;
  #connection: Connection | undefined;
  #pieces: Uint8Array[] = [];
  #bytesCount = 0;
  #asked: Asked | undefined;

  private constructor({ clock, random }: GuestAgentClientOptions) {
    this.#clock = clock;
    this.#random = random;
  }

  static async connect(options: GuestAgentClientOptions): Promise<GuestAgentClient> {
    const client = new GuestAgentClient(options);
    client.#connection = await options.channel.connect({
      data: (bytes) => client.#hear(bytes),
      closed: (error) => client.#fail(new GuestAgentError('the line was closed', error)),
    });
    return client;
  }

  get isClosed(): boolean {
    return this.#connection === undefined;
  }

  /** Agrees on where answers begin: the agent may still have some for whoever asked before. */
  async sync(): Promise<void> {
    const id = Buffer.from(this.#random.bytes(4)).readUInt32BE();
    const answer = await this.#ask('guest-sync-delimited', { id }, true);
    if (answer !== id) throw this.#fail(new GuestAgentError('the agent answers what it was not asked'));
  }

  /** The answer to a command without arguments; undefined where the agent refuses it. */
  ask(command: string): Promise<unknown> {
    return this.#ask(command, undefined, false);
  }

  /** Sets the guest's clock to what this host's says; false where the agent refuses that. */
  async setTime(): Promise<boolean> {
    const answer = await this.#ask('guest-set-time', { time: this.#clock.now() * NANOSECONDS_PER_MS }, false);
    return answer !== undefined;
  }

  close(): void {
    this.#fail(new GuestAgentError('the line was closed'));
  }

  async #ask(command: string, args: object | undefined, isSync: boolean): Promise<unknown> {
    const connection = this.#connection;
    if (!connection) throw new GuestAgentError('the line was closed');
    if (this.#asked) throw new Error('an agent is asked one thing at a time');
    this.#forget();
    const answer = new Promise<unknown>((resolve, reject) => {
      const timer = this.#clock.setTimer(
        () => this.#fail(new GuestAgentError(`${command} was not answered in time`)),
        ANSWER_MS,
      );
      this.#asked = { isSync, resolve, reject, cancel: () => timer.cancel() };
    });
    const text = `${JSON.stringify({ execute: command, ...(args ? { arguments: args } : {}) })}\n`;
    // The byte that cannot be part of a command makes the agent drop what somebody may have begun to say.
    connection.write(isSync ? Buffer.concat([Buffer.of(DELIMITER), Buffer.from(text)]) : text);
    return answer;
  }

  #hear(bytes: Uint8Array): void {
    if (!this.#connection) return;
    let rest = bytes;
    const start = rest.lastIndexOf(DELIMITER);
    if (start >= 0) {
      this.#forget();
      rest = rest.subarray(start + 1);
      if (this.#asked) this.#asked.isSync = false;
    }
    this.#bytesCount += rest.length;
    const bytesMax = this.#asked ? ANSWER_BYTES_MAX : UNASKED_BYTES_MAX;
    if (this.#bytesCount > bytesMax) return void this.#fail(new GuestAgentError('the agent says too much'));
    // What comes before the agreed beginning is for somebody else, and so is what nobody asked for.
    if (!this.#asked || this.#asked.isSync) return;
    const end = rest.indexOf(NEWLINE);
    this.#pieces.push(rest.slice(0, end < 0 ? rest.length : end));
    if (end >= 0) this.#answer(Buffer.concat(this.#pieces));
  }

  #answer(line: Uint8Array): void {
    const asked = this.#asked;
    this.#asked = undefined;
    this.#forget();
    asked?.cancel();
    try {
      const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(line));
      if (typeof value !== 'object' || value === null) throw new TypeError('it is no object');
      asked?.resolve(Object.hasOwn(value, 'return') ? (value as { return: unknown }).return : undefined);
    } catch (error) {
      const failure = new GuestAgentError(`the agent said what cannot be read: ${errorMessage(error)}`, error);
      asked?.reject(this.#fail(failure));
    }
  }

  #forget(): void {
    this.#pieces = [];
    this.#bytesCount = 0;
  }

  /** Ends it all, and answers why. */
  #fail(error: GuestAgentError): GuestAgentError {
    const [asked, connection] = [this.#asked, this.#connection];
    this.#asked = undefined;
    this.#connection = undefined;
    this.#forget();
    asked?.cancel();
    asked?.reject(error);
    connection?.close();
    return error;
  }
}

interface Asked {
  /** Whether the beginning of the answer is still to come. */
  isSync: boolean;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: GuestAgentError) => void;
  readonly cancel: () => void;
}
