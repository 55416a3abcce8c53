import { connect as connectTcp, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { realEnv } from '../../src/env/real.ts';
import { createAuthority, DAY_MS, HOUR_MS, issueIdentity } from '../../src/machinery/x509/authority.ts';

const HOST = '127.0.0.1';
const PAUSE_MS = 10;
/** How long one of them stays where nobody hangs up. */
const STAY_MS = 200;
const env = realEnv('silent');

/** What somebody who comes uninvited says first. */
type Approach = (port: number) => Socket;

/** A client of an authority that nobody here knows. */
async function clientOf(nowMs: () => number): Promise<{ cert: string; key: string }> {
  const authority = await createAuthority({ ...env, clock: { ...env.clock, now: nowMs } }, 'elsewhere');
  const names = { commonName: 'source', dnsNames: ['source'] };
  const identity = await issueIdentity(authority, { ...names, usages: ['client'], validityMs: HOUR_MS });
  return { cert: identity.certificatePem, key: identity.keyPem };
}

/** People who try every port of a copy for as long as it takes, one after the other, each in another way. */
export class Strangers {
  readonly #stopping = new AbortController();
  readonly #ports: readonly number[];
  readonly #approaches: ReadonlyMap<string, Approach>;
  readonly #accepted = new Map<string, number>();
  #heard = '';
  #loop: Promise<void> = Promise.resolve();

  private constructor(ports: readonly number[], approaches: ReadonlyMap<string, Approach>) {
    this.#ports = ports;
    this.#approaches = approaches;
  }

  /** They come to each of these ports, which must be nobody else's: they are a nuisance. */
  static async come(ports: readonly number[]): Promise<Strangers> {
    const speaking = (bytes: Buffer): Approach => {
      return (port) => {
        const socket = connectTcp(port, HOST);
        return bytes.length > 0 ? socket.once('connect', () => socket.write(bytes)) : socket;
      };
    };
    const encrypted = (credentials: { cert?: string; key?: string }): Approach => {
      return (port) => {
        const socket = connectTls({ host: HOST, port, rejectUnauthorized: false, ...credentials });
        return socket.once('secureConnect', () => socket.write('let me in'));
      };
    };
    const strangers = new Strangers(
      ports,
      new Map([
        ['without a word', speaking(Buffer.alloc(0))],
        ['with a wrong secret', speaking(Buffer.alloc(64, 7))],
        ['without a certificate', encrypted({})],
        ['with a certificate of another authority', encrypted(await clientOf(() => Date.now()))],
        ['with one that has expired, too', encrypted(await clientOf(() => Date.now() - DAY_MS))],
      ]),
    );
    strangers.#loop = strangers.#tryAll();
    return strangers;
  }

  /** Sends them away. Answers how often each way got as far as a connection, and all that any of them was told. */
  async leave(): Promise<{ readonly accepted: ReadonlyMap<string, number>; readonly heard: string }> {
    this.#stopping.abort();
    await this.#loop;
    return { accepted: this.#accepted, heard: this.#heard };
  }

  async #tryAll(): Promise<void> {
    while (!this.#stopping.signal.aborted)
      for (const [name, approach] of this.#approaches) {
        await Promise.all(this.#ports.map((port) => this.#try(name, approach(port))));
        await sleep(PAUSE_MS);
      }
  }

  #try(name: string, socket: Socket): Promise<void> {
    socket.once('connect', () => this.#accepted.set(name, (this.#accepted.get(name) ?? 0) + 1));
    socket.on('data', (bytes) => (this.#heard += bytes.toString('latin1')));
    socket.on('error', () => undefined);
    socket.setTimeout(STAY_MS, () => socket.destroy());
    return new Promise((resolve) => socket.once('close', () => resolve()));
  }
}
