import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** How long before all has arrived more is taken: timers that fire late would leave the link idle otherwise. */
const AHEAD_MS = 20;

/**
 * A way to a port of this host on which no more bytes come through each second, of all connections together, than it has room for;
 * what is said back passes at once. QEMU itself limits what it has not packed yet.
 */
export class SlowLink {
  readonly #server: Server;
  readonly #bytesPerMs: number;
  readonly #sockets = new Set<Socket>();
  /** What is on its way, and who is read from again, in the order of time. */
  readonly #arriving: Due[] = [];
  readonly #reading: Due[] = [];
  #timer: NodeJS.Timeout | undefined;
  #freeAtMs = 0;
  #passedBytes = 0;

  private constructor(targetPort: number, bytesPerSecond: number) {
    this.#bytesPerMs = bytesPerSecond / 1000;
    this.#server = createServer((near) => this.#join(near, connect(targetPort, '127.0.0.1')));
  }

  /** Infinite bytes each second are a link without a limit. */
  static async open(targetPort: number, bytesPerSecond: number): Promise<SlowLink> {
    const link = new SlowLink(targetPort, bytesPerSecond);
    link.#server.listen(0, '127.0.0.1');
    await once(link.#server, 'listening');
    return link;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** How much was sent to the target. */
  get passedBytes(): number {
    return this.#passedBytes;
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }

  #join(near: Socket, far: Socket): void {
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      this.#sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => other.destroy());
    }
    near.on('data', (bytes) => {
      this.#passedBytes += bytes.length;
      this.#freeAtMs = Math.max(this.#freeAtMs, performance.now()) + bytes.length / this.#bytesPerMs;
      this.#later(() => far.write(bytes));
      // One at a time: whoever else waits gets its share.
      near.pause();
      this.#later(() => near.resume(), AHEAD_MS);
    });
    near.on('end', () => this.#later(() => far.end()));
    far.pipe(near);
  }

  /** Does something when all has arrived that was sent before it, or so long before that. In order: timers alone keep none. */
  #later(act: () => void, aheadMs = 0): void {
    const queue = aheadMs === 0 ? this.#arriving : this.#reading;
    queue.push({ atMs: this.#freeAtMs - aheadMs, act });
    this.#work();
  }

  #work(): void {
    clearTimeout(this.#timer);
    for (const queue of [this.#arriving, this.#reading])
      while (queue[0] && queue[0].atMs <= performance.now()) queue.shift()?.act();
    const nextMs = Math.min(
      ...[this.#arriving, this.#reading].map(([first]) => first?.atMs ?? Number.POSITIVE_INFINITY),
    );
    if (nextMs === Number.POSITIVE_INFINITY) return;
    this.#timer = setTimeout(() => this.#work(), Math.max(1, nextMs - performance.now()));
  }
}

interface Due {
  readonly atMs: number;
  readonly act: () => void;
}
