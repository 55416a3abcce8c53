import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls, type ConnectionOptions } from 'node:tls';

/** A connection that sends exactly the bytes that it is told to, and keeps what comes back. */
export class RawConnection {
  readonly socket: Socket;
  readonly #chunks: Buffer[] = [];
  readonly #closed: Promise<void>;

  private constructor(socket: Socket) {
    this.socket = socket;
    // How it ends is for the test to see; that it may end badly is expected.
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => this.#chunks.push(chunk));
    this.#closed = new Promise((resolve) => socket.on('close', () => resolve()));
  }

  /** TCP without TLS. */
  static async plain(url: string): Promise<RawConnection> {
    const { hostname, port } = new URL(url);
    const socket = connectTcp({ host: hostname, port: Number(port) });
    await once(socket, 'connect');
    return new RawConnection(socket);
  }

  /** TLS; HTTP/1.1 unless told otherwise. */
  static async tls(url: string, options: ConnectionOptions = {}): Promise<RawConnection> {
    const { hostname, port } = new URL(url);
    const socket = connectTls({
      host: hostname,
      port: Number(port),
      rejectUnauthorized: false,
      ALPNProtocols: ['http/1.1'],
      ...options,
    });
    await once(socket, 'secureConnect');
    return new RawConnection(socket);
  }

  /** What has come, as Latin-1 so that every byte is a character. */
  get text(): string {
    return Buffer.concat(this.#chunks).toString('latin1');
  }

  /** Writes, and waits until the kernel has it; a connection that is gone takes nothing. */
  async write(data: string | Uint8Array): Promise<void> {
    await new Promise<void>((resolve) => this.socket.write(data, () => resolve()));
  }

  /** Waits until the text has come. Throws when the connection ends before. */
  async receive(pattern: RegExp | string): Promise<string> {
    const has = (): boolean => (typeof pattern === 'string' ? this.text.includes(pattern) : pattern.test(this.text));
    while (!has() && !this.socket.closed) await Promise.race([this.#arrival(), this.#closed]);
    if (!has()) throw new Error(`the connection ended after ${JSON.stringify(this.text)}`);
    return this.text;
  }

  #arrival(): Promise<void> {
    return new Promise((resolve) => this.socket.once('data', () => resolve()));
  }

  /** Waits until the connection has ended, by either side; answers all that came. */
  async ended(): Promise<string> {
    await this.#closed;
    return this.text;
  }

  destroy(): void {
    this.socket.destroy();
  }
}
