import type { IncomingMessage } from 'node:http';
import { WebSocket } from 'ws';
import { ApiError } from '../api/status.ts';
import { type Clock, type Env, sleep } from '../env/ports.ts';
import { virtualMachineInstances } from '../kube/kubevirt-resources.ts';
import { CONSOLE_TAKEN_OVER } from '../node/server/console-session.ts';
import {
  type ClusterConnection,
  type ClusterOptions,
  statusError,
  subresourcePath,
  withCluster,
} from './cluster-connection.ts';
import { type Closure, type ConsoleStreams, ConsoleTerminal } from './console-terminal.ts';
import { UserError } from './failure.ts';
import { missingGuest } from './machine-power.ts';

/** `godwit console`: this terminal becomes that of a machine's serial port. */

export interface ConsoleOptions extends ClusterOptions {
  /** How long to wait for the machine to run. */
  readonly timeoutMinutes: number;
}

/** As KubeVirt's: bytes in binary frames. */
const PROTOCOL = 'plain.kubevirt.io';
const RETRY_MS = 1_000;
/** How often it is looked whether a guest whose console ended has moved, and for how long. */
const LOOK_MS = 250;
const LOOK_PATIENCE_MS = 10_000;
const NORMAL_CLOSURES: ReadonlySet<number> = new Set([1000, 1001, 1005]);
/** The agent stops, or this side has not kept up: neither has to do with where the guest is. */
const CLOSURES_IN_PLACE: ReadonlySet<number> = new Set([1001, 1013]);

/** Connects, follows the guest from node to node, and returns when either side has had enough. */
export async function machineConsole(
  name: string,
  options: ConsoleOptions,
  env: Env,
  streams: ConsoleStreams,
): Promise<void> {
  await withCluster(options, env, async (connection) => {
    let session = await connectWhenRunning(connection, name, options, env.clock);
    const terminal = new ConsoleTerminal(streams, env.clock);
    const { left } = terminal;
    terminal.note(`Successfully connected to ${name} console. Press Ctrl+] or Ctrl+5 to exit console.`);
    try {
      while (!left.aborted) {
        const closure = await terminal.attach(session.socket);
        const { place } = session;
        const next = isInPlace(closure) ? undefined : await nextPlace(connection, name, place, env.clock, left);
        if (left.aborted) return;
        if (!next) return end(name, closure, terminal);
        session = await connectWhenRunning(connection, name, options, env.clock, left);
        terminal.note(`\n${name} has moved to ${next.node}: connected to its console there.`);
      }
    } catch (error) {
      // Who has left does not care what becomes of it.
      if (!left.aborted) throw error;
    } finally {
      terminal.release();
    }
  });
}

function isInPlace({ code }: Closure): boolean {
  return code === CONSOLE_TAKEN_OVER || CLOSURES_IN_PLACE.has(code);
}

/** Says why a console has ended, or throws it. */
function end(name: string, { code, reason }: Closure, terminal: ConsoleTerminal): void {
  const again = `connect again with 'godwit console ${name}'`;
  if (code === CONSOLE_TAKEN_OVER)
    throw new UserError(`the console of ${name} was taken over by another session; ${again} to take it back`);
  if (!NORMAL_CLOSURES.has(code))
    throw new UserError(
      `the console of ${name} broke off (${reason || 'the machine ended, or the network failed'}); ${again}`,
    );
  terminal.note(`\nThe console of ${name} has ended: ${reason || 'the machine ended'}; ${again}`);
}

/** Where a guest may run. */
interface Place {
  readonly guestUID: string;
  readonly node: string;
  readonly podUID: string;
}

/** Undefined where it may run nowhere, or the user may not know. */
async function placeOf({ client, namespace }: ClusterConnection, name: string): Promise<Place | undefined> {
  try {
    const { metadata, status } = await client.get(
      virtualMachineInstances,
      namespace,
      name,
      new AbortController().signal,
    );
    const { holder } = status?.rightToRun ?? {};
    const isOver = status?.phase === 'Succeeded' || status?.phase === 'Failed';
    return holder && !isOver ? { ...holder, guestUID: metadata.uid ?? '' } : undefined;
  } catch (error) {
    if (error instanceof ApiError && (error.code === 404 || error.code === 403)) return undefined;
    throw error;
  }
}

/** Where a guest is that has left a place; undefined where it has not, or has ended. */
async function nextPlace(
  connection: ClusterConnection,
  name: string,
  before: Place | undefined,
  clock: Clock,
  left: AbortSignal,
): Promise<Place | undefined> {
  const deadlineMs = clock.now() + LOOK_PATIENCE_MS;
  while (!left.aborted) {
    const now = await placeOf(connection, name);
    if (now?.guestUID !== before?.guestUID) return undefined;
    if (now?.podUID !== before?.podUID) return now;
    if (!now || clock.now() >= deadlineMs) return undefined;
    await sleep(clock, LOOK_MS, left);
  }
  return undefined;
}

/** A connection, and where the guest was before it was made. */
interface Session {
  readonly socket: WebSocket;
  readonly place: Place | undefined;
}

async function connectWhenRunning(
  connection: ClusterConnection,
  name: string,
  { timeoutMinutes }: ConsoleOptions,
  clock: Clock,
  left = new AbortController().signal,
): Promise<Session> {
  const deadlineMs = clock.now() + timeoutMinutes * 60_000;
  for (;;) {
    try {
      const place = await placeOf(connection, name);
      return { place, socket: await dial(connection, name) };
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.code === 404) throw await missingGuest(connection, name, error);
      // It is about to run, or its node is about to be back.
      const isTemporary = error.code === 409 || error.code === 503;
      if (!isTemporary || left.aborted || clock.now() >= deadlineMs) throw error;
    }
    await sleep(clock, RETRY_MS, left);
  }
}

/** Rejects with an ApiError when the server refuses, with the system's error when it cannot be reached. */
async function dial({ access, namespace }: ClusterConnection, name: string): Promise<WebSocket> {
  const path = subresourcePath(namespace, 'virtualmachineinstances', name, 'console');
  const { authorization, certificate, key } = await access.credentials(new AbortController().signal);
  const authorities = await access.authorities();
  const url = `${access.server.replace(/^http/, 'ws').replace(/\/$/, '')}${path}`;
  const impersonation = Object.fromEntries(
    Object.entries(access.impersonation).map(([header, value]) => [
      header,
      typeof value === 'string' ? value : [...value],
    ]),
  ) as Record<string, string>;
  const socket = new WebSocket(url, [PROTOCOL], {
    rejectUnauthorized: !access.isInsecure,
    perMessageDeflate: false,
    headers: { ...impersonation, ...(authorization ? { authorization } : {}) },
    ...(authorities === undefined ? {} : { ca: authorities }),
    ...(certificate === undefined ? {} : { cert: certificate }),
    ...(key === undefined ? {} : { key }),
    ...(access.serverName === undefined ? {} : { servername: access.serverName }),
  });
  return new Promise((resolve, reject) => {
    socket.once('open', () => resolve(socket));
    socket.once('error', (error) =>
      reject(
        new UserError(`cannot talk to the API server at ${access.server} (${error.message}); see that it runs`, {
          cause: error,
        }),
      ),
    );
    socket.once('unexpected-response', (_request, response: IncomingMessage) => {
      void textOf(response).then((text) => reject(statusError(response.statusCode ?? 0, text)), reject);
    });
  });
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = '';
  for await (const piece of response.setEncoding('utf8') as AsyncIterable<string>) text += piece;
  return text;
}
