import { timingSafeEqual } from 'node:crypto';
import { open, rm } from 'node:fs/promises';
import { createConnection, createServer, type NetConnectOpts, type Server, type Socket } from 'node:net';
import { basename, dirname } from 'node:path';
import { errorMessage } from '../../api/error-message.ts';
import type { Clock, Logger, Random, Timer, UserIdentity } from '../../env/ports.ts';
import { leaveSocketTo } from './private-socket.ts';
import type { ListeningSockets, LocalSocket, MigrationAddress, PortRange } from '../../hypervisor/migration.ts';
import type { Admission, ConnectionCounts, CopyRelays, CopySecrets, Road } from './copy-relays.ts';

export interface SocketRelaysOptions {
  readonly clock: Clock;
  readonly random: Pick<Random, 'bytes'>;
  readonly log: Logger;
  /** Whom machines run as, if not as this process. */
  readonly user: UserIdentity | undefined;
}

const SECRET_BYTES = 32;
/** Whoever knows a secret tells it at once. */
const SPEAK_MS = 5000;
/** Who has said nothing the longest goes first where more wait than this. */
const SILENT_MAX = 64;
/** Connecting over a network that works takes milliseconds. */
const CONNECT_MS = 10_000;
const KEEP_ALIVE_MS = 30_000;
/** With less, whoever reads waits for whoever writes at every turn. */
const BUFFERED_BYTES = 4 * 1024 * 1024;

/** Relays of the host's own sockets. */
export class SocketRelays implements CopyRelays {
  readonly #options: SocketRelaysOptions;

  constructor(options: SocketRelaysOptions) {
    this.#options = options;
  }

  async admit(range: PortRange, sockets: Partial<ListeningSockets>, counts: ConnectionCounts): Promise<Admission> {
    const { random } = this.#options;
    const secrets = (count: number): string[] =>
      Array.from({ length: count }, () => Buffer.from(random.bytes(SECRET_BYTES)).toString('base64'));
    const given: CopySecrets = { memory: secrets(counts.memory), disks: secrets(counts.disks) };
    const gate = new Gate(this.#options, [
      ...line(given.memory, sockets.memory?.path),
      ...line(given.disks, sockets.disks?.path),
    ]);
    return { port: await gate.listen(range), secrets: given, close: () => gate.close() };
  }

  async lead(target: MigrationAddress, secrets: CopySecrets, directory: string): Promise<Road> {
    const servers: Server[] = [];
    const close = (): void => {
      for (const server of servers) server.close();
    };
    const outlet = async (name: string, those: readonly string[]): Promise<LocalSocket | undefined> => {
      if (those.length === 0) return undefined;
      const path = `${directory}/${name}.sock`;
      servers.push(await this.#outlet(path, target, those));
      return { path };
    };
    try {
      const disks = await outlet('outgoing-disks', secrets.disks);
      return { disks, memory: await outlet('outgoing-memory', secrets.memory), close };
    } catch (error) {
      close();
      throw error;
    }
  }

  /** A socket whose first connection goes on with the first secret, and so on. */
  async #outlet(path: string, target: MigrationAddress, secrets: readonly string[]): Promise<Server> {
    const left = [...secrets];
    const server = createServer(
      { allowHalfOpen: true, pauseOnConnect: true, highWaterMark: BUFFERED_BYTES },
      (near) => {
        const secret = left.shift();
        if (left.length === 0) server.close();
        if (secret === undefined) near.destroy();
        else void this.#goOn(near, target, secret);
      },
    );
    await listenOn(server, path, this.#options.user);
    return server;
  }

  async #goOn(near: Socket, { host, port }: MigrationAddress, secret: string): Promise<void> {
    const { clock, log } = this.#options;
    near.on('error', () => near.destroy());
    const far = connection({ host, port, noDelay: true });
    try {
      await connected(far, clock);
      far.write(Buffer.from(secret, 'base64'));
      join(near, far);
    } catch (error) {
      log.info('the way of a copy is closed', { host, port, error: errorMessage(error) });
      far.destroy();
      near.destroy();
    }
  }
}

/** A secret that was given out, and where it leads to. */
interface Ticket {
  readonly secret: Buffer;
  /** Goes there, once those before have gone: a machine tells its connections apart by their order. */
  readonly enter: (comer: Socket, clock: Clock) => Promise<void>;
}

function line(secrets: readonly string[], path: string | undefined): Ticket[] {
  if (path === undefined) return [];
  const entered: Promise<void>[] = [];
  return secrets.map((secret, index) => {
    let settle: (entering: Promise<void>) => void = () => undefined;
    entered.push(new Promise((resolve) => (settle = resolve)));
    const enter = async (comer: Socket, clock: Clock): Promise<void> => {
      await inTime(entered[index - 1], clock);
      join(comer, await connectedUnix(path, clock));
    };
    return {
      secret: Buffer.from(secret, 'base64'),
      enter: (comer, clock) => {
        const entering = enter(comer, clock);
        settle(entering);
        return entering;
      },
    };
  });
}

/** Those before come within milliseconds, or not at all. */
async function inTime(before: Promise<void> | undefined, clock: Clock): Promise<void> {
  let timer: Timer | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = clock.setTimer(() => reject(new Error('the connection before it did not come')), CONNECT_MS);
  });
  try {
    if (before) await Promise.race([before, late]);
  } finally {
    timer?.cancel();
  }
}

/** Where a target lets in whoever begins with a secret that was given out. */
class Gate {
  readonly #options: SocketRelaysOptions;
  readonly #silent = new Set<Socket>();
  readonly #server: Server;
  #tickets: readonly Ticket[];

  constructor(options: SocketRelaysOptions, tickets: readonly Ticket[]) {
    this.#options = options;
    this.#tickets = tickets;
    this.#server = createServer(
      { allowHalfOpen: true, noDelay: true, highWaterMark: BUFFERED_BYTES },
      (comer) => void this.#receive(comer),
    );
  }

  async listen({ host, firstPort, lastPort }: PortRange): Promise<number> {
    for (let port = firstPort; port <= lastPort; port++) {
      try {
        await listening(this.#server, () => this.#server.listen({ host, port }));
        return port;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
      }
    }
    throw new Error(`no port from ${firstPort} to ${lastPort} is free at ${host}`);
  }

  close(): void {
    this.#server.close();
    this.#tickets = [];
    for (const comer of this.#silent) comer.destroy();
  }

  async #receive(comer: Socket): Promise<void> {
    const { clock, log } = this.#options;
    comer.on('error', () => comer.destroy());
    this.#silent.add(comer);
    comer.once('close', () => this.#silent.delete(comer));
    const [longest] = this.#silent;
    if (this.#silent.size > SILENT_MAX) longest?.destroy();
    const timer = clock.setTimer(() => comer.destroy(), SPEAK_MS);
    try {
      const said = await firstBytes(comer, SECRET_BYTES);
      timer.cancel();
      this.#silent.delete(comer);
      const ticket = said && this.#redeem(said);
      if (!ticket) throw new Error('it does not begin with a secret that was given out');
      await ticket.enter(comer, clock);
    } catch (error) {
      log.info('somebody was not let in', { from: comer.remoteAddress ?? '', error: errorMessage(error) });
      comer.destroy();
    } finally {
      timer.cancel();
    }
  }

  /** Takes the ticket of a secret, for good. How long it takes says nothing of the secrets. */
  #redeem(said: Buffer): Ticket | undefined {
    let found: Ticket | undefined;
    for (const ticket of this.#tickets) if (timingSafeEqual(ticket.secret, said)) found = ticket;
    if (!found) return undefined;
    this.#tickets = this.#tickets.filter((ticket) => ticket !== found);
    if (this.#tickets.length === 0) this.close();
    return found;
  }
}

/** The first bytes that are said; undefined where fewer are. What follows them is left to whoever reads on. */
function firstBytes(socket: Socket, length: number): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const read = (): void => {
      const bytes: Buffer | null = socket.read(length) as Buffer | null;
      if (!bytes) return;
      socket.off('readable', read);
      // At the end there may be fewer.
      resolve(bytes.length === length ? bytes : undefined);
    };
    socket.on('readable', read);
    socket.once('close', () => resolve(undefined));
    socket.once('end', () => resolve(undefined));
  });
}

/** Each hears what the other says, until one of them has ended. */
function join(one: Socket, other: Socket): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.on('error', () => from.destroy());
    from.once('close', () => {
      // One that broke ends the other; one that is done lets it finish, and hears no more of it.
      if (!from.readableEnded) to.destroy();
      else if (!to.destroyed) to.unpipe(from).resume();
    });
    // Nobody hears of a host that is gone otherwise.
    from.setKeepAlive(true, KEEP_ALIVE_MS).unref();
    if (from.destroyed) to.destroy();
    else from.pipe(to);
  }
}

function connection(where: NetConnectOpts): Socket {
  // All options of streams are taken, though that is not written down.
  const buffered = { highWaterMark: BUFFERED_BYTES };
  return createConnection({ ...where, ...buffered, allowHalfOpen: true });
}

function connected(socket: Socket, clock: Clock): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const timer = clock.setTimer(() => socket.destroy(new Error('nobody answers')), CONNECT_MS);
    socket.once('error', reject);
    socket.once('close', () => {
      timer.cancel();
      reject(new Error('it was closed before it was open'));
    });
    socket.once('connect', () => {
      timer.cancel();
      resolve(socket);
    });
  });
}

/** Through a descriptor of its directory every socket has a short name, as Linux demands. */
async function connectedUnix(path: string, clock: Clock): Promise<Socket> {
  const directory = await open(dirname(path), 'r');
  try {
    const near = `/proc/self/fd/${directory.fd}/${basename(path)}`;
    return await connected(connection({ path: near }), clock);
  } finally {
    await directory.close();
  }
}

/** Listens where only this process, and whom machines run as, may connect. */
async function listenOn(server: Server, path: string, user: UserIdentity | undefined): Promise<void> {
  // Of a former agent, or of a former copy.
  await rm(path, { force: true });
  // By the name that it was given here the socket is removed when nobody listens any more.
  const directory = await open(dirname(path), 'r');
  server.once('close', () => void directory.close());
  try {
    await listening(server, () => server.listen(`/proc/self/fd/${directory.fd}/${basename(path)}`));
  } catch (error) {
    await directory.close();
    throw error;
  }
  try {
    await leaveSocketTo(path, user);
  } catch (error) {
    server.close();
    throw error;
  }
}

function listening(server: Server, listen: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.once('listening', () => {
      server.off('error', reject);
      resolve();
    });
    listen();
    server.unref();
  });
}
