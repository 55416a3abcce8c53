import { errorMessage } from '../../api/error-message.ts';
import type { Clock, Connection, Connector, Timer } from '../../env/ports.ts';
import { LineSplitter } from './line-splitter.ts';
import { QmpError } from './qmp-error.ts';
import { parseMessage, type QemuVersion, type QmpEvent, type QmpMessage } from './qmp-message.ts';
import { Transcript, type TranscriptLine } from './transcript.ts';

/**
 * A client of one QMP monitor.
 *
 * Commands carry ids, so any number of callers may use it at once and answers may come in any order. A monitor is at
 * times busy for seconds (a switchover, a slow disk): a command that has timed out is reported so, but its id stays
 * known until its answer comes, which is then dropped. Nothing else is disturbed by it.
 *
 * QEMU stops reading a monitor once eight commands wait there, out-of-band ones included. What is under way is therefore
 * kept below that, and what comes beyond waits here, where it can still be taken back.
 *
 * What a monitor says is believed only as far as its shape can be checked: a guest may have taken over its QEMU. Whoever
 * breaks the protocol is cut off.
 */

/** The schema of QEMU, the longest answer that there is, is a quarter of a megabyte. */
const LINE_BYTES_MAX = 16 * 1024 * 1024;
/** Below the eight at which QEMU stops reading, with room for out-of-band commands. */
const UNDER_WAY_MAX = 4;
/** Out-of-band commands are answered at once, or not at all. */
const OUT_OF_BAND_UNDER_WAY_MAX = 3;
/** Callers wait for what they ask; more than this many of them is a loop gone wild. */
const QUEUE_LENGTH_MAX = 256;
/** More than any connection asks, so that the numbers of the next one are new. */
const IDS_PER_MS = 1000;
const TIMEOUT_MS = 30_000;
const TRANSCRIPT_LINES = 200;

export interface QmpOptions {
  readonly clock: Clock;
  readonly connector: Connector;
  /** The monitor's unix socket. */
  readonly path: string;
  /** Hears every event from the greeting on; must not throw. */
  readonly onEvent?: (event: QmpEvent) => void;
  /** How long the greeting and the negotiation may take. */
  readonly connectTimeoutMs?: number;
  /** How many lines the transcript keeps; 0 keeps none. */
  readonly transcriptLines?: number;
}

export interface ExecuteOptions {
  readonly timeoutMs?: number;
  /** Asks to be served ahead of everything, also by a monitor that hangs; few commands allow it. */
  readonly isOutOfBand?: boolean;
  /** Keeps the arguments out of the transcript. */
  readonly isSecret?: boolean;
}

type Greeting = QmpMessage & { readonly kind: 'greeting' };

interface Command {
  readonly id: number;
  readonly name: string;
  readonly text: string;
  readonly transcriptText: string;
  readonly isOutOfBand: boolean;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: QmpError) => void;
  timer: Timer | undefined;
}

export class QmpClient {
  /** Resolves with the reason when the connection has ended. */
  readonly closed: Promise<QmpError>;
  readonly #clock: Clock;
  readonly #splitter = new LineSplitter(LINE_BYTES_MAX);
  readonly #transcript: Transcript;
  readonly #onEvent: (event: QmpEvent) => void;
  readonly #greeted: Promise<Greeting>;
  readonly #queue: Command[] = [];
  /** What was sent and is not answered; also what nobody waits for any more. */
  readonly #underWay = new Map<number, Command>();
  readonly #outOfBandUnderWay = new Set<number>();
  #onGreeting: (greeting: Greeting) => void = () => undefined;
  #onClosed: (reason: QmpError) => void = () => undefined;
  #connection: Connection | undefined;
  #end: QmpError | undefined;
  /**
   * Numbers of questions go on from the clock: QEMU also answers a new connection what was asked in one that was cut, and
   * that is not to be taken for an answer here.
   */
  readonly #idBefore: number;
  #lastId: number;
  #version: QemuVersion = { major: 0, minor: 0, micro: 0 };
  #hasOutOfBand = false;

  private constructor(options: QmpOptions) {
    this.#clock = options.clock;
    this.#idBefore = options.clock.now() * IDS_PER_MS;
    this.#lastId = this.#idBefore;
    this.#onEvent = options.onEvent ?? (() => undefined);
    this.#transcript = new Transcript(options.transcriptLines ?? TRANSCRIPT_LINES);
    this.closed = new Promise((resolve) => (this.#onClosed = resolve));
    this.#greeted = new Promise((resolve) => (this.#onGreeting = resolve));
  }

  /** Connects, and returns when commands can be sent. Rejects with a QmpError. */
  static async connect(options: QmpOptions): Promise<QmpClient> {
    const client = new QmpClient(options);
    const { path, clock, connectTimeoutMs = TIMEOUT_MS } = options;
    try {
      client.#connection = await options.connector.connectUnix(path, {
        data: (bytes) => client.#take(bytes),
        closed: (error) => client.#finish(disconnected(error ? errorMessage(error) : 'it was closed', error)),
      });
    } catch (error) {
      throw new QmpError('Disconnected', `cannot connect to the monitor at ${path}: ${errorMessage(error)}`, {
        cause: error,
      });
    }
    const timer = clock.setTimer(
      () => client.#finish(new QmpError('TimedOut', `the monitor at ${path} does not greet`)),
      connectTimeoutMs,
    );
    try {
      await client.#negotiate(connectTimeoutMs);
    } catch (error) {
      client.close();
      throw error;
    } finally {
      timer.cancel();
    }
    return client;
  }

  /** The version of the QEMU behind the monitor. */
  get version(): QemuVersion {
    return this.#version;
  }

  /** True when the monitor takes out-of-band commands. */
  get hasOutOfBand(): boolean {
    return this.#hasOutOfBand;
  }

  /** Sends a command and answers its result, whose shape the caller checks. Rejects with a QmpError. */
  execute(name: string, args?: Readonly<Record<string, unknown>>, options: ExecuteOptions = {}): Promise<unknown> {
    const { isOutOfBand = false, isSecret = false, timeoutMs = TIMEOUT_MS } = options;
    return new Promise((resolve, reject) => {
      if (this.#end) return reject(this.#end);
      if (isOutOfBand && !this.#hasOutOfBand)
        return reject(new QmpError('CommandFailed', `${name}: the monitor takes no out-of-band commands`));
      if (this.#queue.length >= QUEUE_LENGTH_MAX)
        return reject(new QmpError('Overloaded', `${name}: ${QUEUE_LENGTH_MAX} commands wait already`));
      const id = ++this.#lastId;
      const verb = isOutOfBand ? 'exec-oob' : 'execute';
      const text = JSON.stringify({ [verb]: name, ...(args ? { arguments: args } : {}), id });
      const transcriptText = isSecret ? JSON.stringify({ [verb]: name, arguments: '(secret)', id }) : text;
      const command: Command = { id, name, text, transcriptText, isOutOfBand, resolve, reject, timer: undefined };
      command.timer = this.#clock.setTimer(() => this.#giveUp(command, timeoutMs), timeoutMs);
      this.#queue.push(command);
      this.#sendWhatMayGo();
    });
  }

  /** The last lines in either direction, oldest first. */
  transcript(): readonly TranscriptLine[] {
    return this.#transcript.lines();
  }

  /** Ends the connection; whatever waits is rejected. QEMU goes on. */
  close(): void {
    this.#finish(disconnected('it was closed by this side'));
  }

  async #negotiate(timeoutMs: number): Promise<void> {
    const greeting = await Promise.race([this.#greeted, this.closed]);
    if (greeting instanceof QmpError) throw greeting;
    this.#version = greeting.version;
    const enable = greeting.capabilities.includes('oob') ? ['oob'] : [];
    await this.execute('qmp_capabilities', { enable }, { timeoutMs });
    this.#hasOutOfBand = enable.length > 0;
  }

  #take(bytes: Uint8Array): void {
    try {
      for (const line of this.#splitter.take(bytes)) {
        // An event's listener may have closed the connection.
        if (this.#end) return;
        if (line.trim() === '') continue;
        this.#transcript.add({ atMs: this.#clock.now(), direction: 'received', text: line.trim() });
        this.#handle(parseMessage(line));
      }
    } catch (error) {
      this.#finish(
        error instanceof QmpError
          ? error
          : new QmpError('Protocol', `the monitor sent what cannot be read: ${errorMessage(error)}`, { cause: error }),
      );
    }
  }

  #handle(message: QmpMessage): void {
    switch (message.kind) {
      case 'greeting':
        return this.#onGreeting(message);
      case 'event':
        return this.#onEvent(message.event);
      case 'result':
        return this.#settle(message.id)?.resolve(message.value);
      case 'error': {
        const { id, errorClass, description } = message;
        if (id === undefined) throw new QmpError('Protocol', `the monitor did not understand: ${description}`);
        const command = this.#settle(id);
        const text = `${command?.name ?? ''}: ${description}`;
        return command?.reject(new QmpError('CommandFailed', text, { errorClass, description }));
      }
    }
  }

  /** Takes an answered command off the books; undefined when nobody waits for it any more, or an earlier connection did. */
  #settle(id: number): Command | undefined {
    if (id <= this.#idBefore) return undefined;
    const command = this.#underWay.get(id);
    if (!command) throw new QmpError('Protocol', `the monitor answered a question that nobody asked, number ${id}`);
    this.#underWay.delete(id);
    this.#outOfBandUnderWay.delete(id);
    const isAwaited = command.timer !== undefined;
    command.timer?.cancel();
    this.#sendWhatMayGo();
    return isAwaited ? command : undefined;
  }

  #sendWhatMayGo(): void {
    for (let index = 0; index < this.#queue.length; ) {
      const command = this.#queue[index];
      if (!command || !this.#maySend(command)) {
        index++;
        continue;
      }
      this.#queue.splice(index, 1);
      this.#underWay.set(command.id, command);
      if (command.isOutOfBand) this.#outOfBandUnderWay.add(command.id);
      this.#transcript.add({ atMs: this.#clock.now(), direction: 'sent', text: command.transcriptText });
      this.#connection?.write(`${command.text}\n`);
    }
  }

  #maySend({ isOutOfBand }: Command): boolean {
    const outOfBand = this.#outOfBandUnderWay.size;
    return isOutOfBand ? outOfBand < OUT_OF_BAND_UNDER_WAY_MAX : this.#underWay.size - outOfBand < UNDER_WAY_MAX;
  }

  #giveUp(command: Command, timeoutMs: number): void {
    command.timer = undefined;
    const position = this.#queue.indexOf(command);
    if (position >= 0) this.#queue.splice(position, 1);
    const mayTakeEffect = position < 0;
    const why = mayTakeEffect ? 'the monitor has not answered' : 'the monitor was too busy to be asked';
    command.reject(new QmpError('TimedOut', `${command.name}: ${why} within ${timeoutMs} ms`, { mayTakeEffect }));
  }

  #finish(reason: QmpError): void {
    if (this.#end) return;
    this.#end = reason;
    this.#connection?.close();
    const waiting = [...this.#underWay.values(), ...this.#queue];
    const sent = this.#underWay.size;
    this.#underWay.clear();
    this.#outOfBandUnderWay.clear();
    this.#queue.length = 0;
    waiting.forEach((command, index) => {
      if (!command.timer) return;
      command.timer.cancel();
      const { code, message } = reason;
      const mayTakeEffect = index < sent;
      command.reject(new QmpError(code, `${command.name}: ${message}`, { mayTakeEffect, cause: reason }));
    });
    this.#onClosed(reason);
  }
}

function disconnected(why: string, cause?: unknown): QmpError {
  return new QmpError('Disconnected', `the connection to the monitor has ended: ${why}`, { cause });
}
