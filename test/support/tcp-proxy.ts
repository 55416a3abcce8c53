import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

const LOCAL = '127.0.0.1';

/** A link between two processes that can be cut, loudly or in silence. */
export class TcpProxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #answering = new Set<Socket>();
  readonly #held = new WeakSet<Socket>();
  /** Those whose other end is gone, which they do not know. */
  readonly #widowed = new Set<Socket>();
  #isFrozen = false;
  #passedBytes = 0;

  private constructor(targetPort: number, targetHost: string) {
    this.#server = createServer((inner) => {
      const outer = connect(targetPort, targetHost);
      this.#answering.add(outer);
      for (const [from, to] of [
        [inner, outer],
        [outer, inner],
      ] as const) {
        this.#sockets.add(from);
        from.on('data', (bytes) => {
          this.#passedBytes += bytes.length;
          if (!to.write(bytes)) from.pause();
        });
        to.on('drain', () => {
          if (!this.#isFrozen && !this.#held.has(from)) from.resume();
        });
        from.on('error', () => from.destroy());
        from.on('close', () => {
          this.#sockets.delete(from);
          this.#answering.delete(from);
          // Not even this passes a link that is silent.
          if (this.#isFrozen) this.#widowed.add(to);
          else to.destroy();
        });
        if (this.#isFrozen) from.pause();
      }
    });
  }

  /** Passes everything on to a port of this host; is itself a port, or a socket at a path. */
  static async open(targetPort: number, path?: string): Promise<TcpProxy> {
    const proxy = new TcpProxy(targetPort, LOCAL);
    if (path === undefined) proxy.#server.listen(0, LOCAL);
    else proxy.#server.listen(path);
    await once(proxy.#server, 'listening');
    return proxy;
  }

  /** Passes everything on to somebody else, at an address of this host. */
  static async at(host: string, target: { readonly host: string; readonly port: number }): Promise<TcpProxy> {
    const proxy = new TcpProxy(target.port, target.host);
    proxy.#server.listen(0, host);
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** What has gone through it, both ways. */
  get passedBytes(): number {
    return this.#passedBytes;
  }

  /** Both sides are told. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Nobody is told; nothing passes any more. */
  freeze(): void {
    this.#isFrozen = true;
    for (const socket of this.#sockets) socket.pause();
  }

  /** Everything passes again, also what was held up. */
  thaw(): void {
    this.#isFrozen = false;
    for (const socket of this.#widowed) socket.destroy();
    this.#widowed.clear();
    for (const socket of this.#sockets) if (!this.#held.has(socket)) socket.resume();
  }

  /** What the target says goes nowhere any more; what it is told still comes. */
  holdAnswers(): void {
    for (const socket of this.#answering) {
      this.#held.add(socket);
      socket.pause();
    }
  }

  close(): void {
    this.cut();
    this.#server.close();
  }
}
