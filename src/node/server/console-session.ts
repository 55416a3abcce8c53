import type { WebSocket } from 'ws';
import type { Clock, Connection, ConnectionHandlers, Timer } from '../../env/ports.ts';

/** KubeVirt's name for bytes as they are. */
export const CONSOLE_PROTOCOL = 'plain.kubevirt.io';

/** What a reader may leave unread. A guest waits for its serial port, and must not wait for somebody far away. */
const UNREAD_BYTES_MAX = 1024 * 1024;
/** What a serial port can be told in a second, with room for a paste; what comes faster waits at its sender. */
const INPUT_BYTES_PER_SECOND_MAX = 64 * 1024;
const SECOND_MS = 1000;
/** How often somebody who says nothing is asked whether he is still there. */
const PING_MS = 30_000;

/** Why a session ended, in WebSocket's numbers. */
const NORMAL = 1000;
const GOING_AWAY = 1001;
const TOO_SLOW = 1013;
const FAILED = 1011;
/** Of those numbers, one that is left to programs: somebody else has the console now. */
export const CONSOLE_TAKEN_OVER = 4001;

/**
 * One person at one serial console: the console is opened first, so that whoever asks for one that there is not gets a
 * proper answer; what it says until the person is there is kept.
 */
export class ConsoleSession {
  readonly #clock: Clock;
  readonly #isSomebodyComing: () => boolean;
  readonly #early: Uint8Array[] = [];
  #console: Connection | undefined;
  #socket: WebSocket | undefined;
  #ending: { readonly code: number; readonly reason: string } | undefined;
  #pinging: Timer | undefined;
  #resting: Timer | undefined;
  /** What the serial port cannot have taken yet, as of then. */
  #inputBytes = 0;
  #inputMs = 0;
  #isHeard = true;

  /** `isSomebodyComing` says whether another session is about to have the same console. */
  constructor(clock: Clock, isSomebodyComing: () => boolean = () => false) {
    this.#clock = clock;
    this.#isSomebodyComing = isSomebodyComing;
  }

  /** Opens the console by the given means; rejects as they do. */
  async open(connect: (handlers: ConnectionHandlers) => Promise<Connection>): Promise<void> {
    this.#console = await connect({
      data: (bytes) => this.#say(bytes),
      closed: (error) => {
        if (error) this.end(FAILED, 'the console broke off');
        else if (this.#isSomebodyComing()) this.end(CONSOLE_TAKEN_OVER, 'the console was taken over by another');
        else this.end(NORMAL, 'the console was closed, or taken over by another');
      },
    });
  }

  /** The person is there. */
  attach(socket: WebSocket): void {
    this.#socket = socket;
    socket.on('message', (data) => this.#hear(data as Buffer));
    socket.on('pong', () => (this.#isHeard = true));
    socket.on('close', () => this.#release());
    // What broke is followed by `close`.
    socket.on('error', () => undefined);
    for (const bytes of this.#early.splice(0)) this.#say(bytes);
    if (this.#ending) socket.close(this.#ending.code, this.#ending.reason);
    else this.#ping();
  }

  /** Ends it for both sides, whether the person has come or not. */
  end(code: number = GOING_AWAY, reason = 'the agent stops'): void {
    this.#ending ??= { code, reason };
    this.#socket?.close(this.#ending.code, this.#ending.reason);
    this.#release();
  }

  #say(bytes: Uint8Array): void {
    const socket = this.#socket;
    if (!socket) return void this.#early.push(bytes);
    if (socket.readyState !== socket.OPEN) return;
    socket.send(bytes, { binary: true });
    if (socket.bufferedAmount > UNREAD_BYTES_MAX) {
      this.end(TOO_SLOW, 'too much was left unread');
      socket.terminate();
    }
  }

  #hear(bytes: Buffer): void {
    this.#console?.write(bytes);
    const nowMs = this.#clock.now();
    const takenBytes = (Math.max(0, nowMs - this.#inputMs) * INPUT_BYTES_PER_SECOND_MAX) / SECOND_MS;
    this.#inputBytes = Math.max(0, this.#inputBytes - takenBytes) + bytes.length;
    this.#inputMs = nowMs;
    if (this.#inputBytes < INPUT_BYTES_PER_SECOND_MAX || this.#resting) return;
    this.#socket?.pause();
    this.#resting = this.#clock.setTimer(
      () => {
        this.#resting = undefined;
        this.#socket?.resume();
      },
      (SECOND_MS * this.#inputBytes) / INPUT_BYTES_PER_SECOND_MAX,
    );
  }

  /** A peer that is gone without a word would keep the console from nobody, but its connection for ever. */
  #ping(): void {
    this.#pinging = this.#clock.setTimer(() => {
      // Who has been told to wait does not hear questions either.
      if (!this.#isHeard && !this.#resting) {
        this.#socket?.terminate();
        return;
      }
      this.#isHeard = false;
      this.#socket?.ping();
      this.#ping();
    }, PING_MS);
  }

  #release(): void {
    this.#pinging?.cancel();
    this.#resting?.cancel();
    this.#console?.close();
    this.#console = undefined;
  }
}
