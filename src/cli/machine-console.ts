import type { IncomingMessage } from 'node:http';
import type { Readable, Writable } from 'node:stream';
import { WebSocket } from 'ws';
import { ApiError } from '../api/status.ts';
import { type Clock, type Env, sleep } from '../env/ports.ts';
import { CONSOLE_TAKEN_OVER } from '../node/server/console-session.ts';
import {
  type ClusterConnection,
  type ClusterOptions,
  statusError,
  subresourcePath,
  withCluster,
} from './cluster-connection.ts';
import { UserError } from './failure.ts';
import { missingGuest } from './machine-power.ts';

/** `godwit console`: this terminal becomes that of a machine's serial port. */

export interface ConsoleOptions extends ClusterOptions {
  /** How long to wait for the machine to run. */
  readonly timeoutMinutes: number;
}

/** The terminal, or whatever stands in its place. */
export interface ConsoleStreams {
  readonly input: Readable & { readonly isTTY?: boolean; setRawMode?(isRaw: boolean): unknown };
  readonly output: Writable;
  readonly errors: Writable;
}

/** As KubeVirt's: bytes in binary frames. */
const PROTOCOL = 'plain.kubevirt.io';
/** Ctrl+]. */
const ESCAPE = 0x1d;
const RETRY_MS = 1_000;
/** How long answers to what was piped in may take, once all of it has been sent. */
const LINGER_MS = 2_000;
const NORMAL_CLOSURES: ReadonlySet<number> = new Set([1000, 1001, 1005]);

/** Connects, and returns when either side has had enough. */
export async function machineConsole(
  name: string,
  options: ConsoleOptions,
  env: Env,
  streams: ConsoleStreams,
): Promise<void> {
  await withCluster(options, env, async (connection) => {
    const socket = await connectWhenRunning(connection, name, options, env.clock);
    streams.errors.write(
      `Successfully connected to ${name} console. Press Ctrl+] or Ctrl+5 to exit console.${streams.input.isTTY ? '\r' : ''}\n`,
    );
    const { code, reason, isLeft } = await attach(socket, streams, env.clock);
    if (isLeft) return;
    const again = `connect again with 'godwit console ${name}'`;
    if (code === CONSOLE_TAKEN_OVER)
      throw new UserError(`the console of ${name} was taken over by another session; ${again} to take it back`);
    if (!NORMAL_CLOSURES.has(code))
      throw new UserError(
        `the console of ${name} broke off (${reason || 'the machine ended, or the network failed'}); ${again}`,
      );
    streams.errors.write(`\nThe console of ${name} has ended: ${reason || 'the machine ended'}; ${again}\n`);
  });
}

async function connectWhenRunning(
  connection: ClusterConnection,
  name: string,
  { timeoutMinutes }: ConsoleOptions,
  clock: Clock,
): Promise<WebSocket> {
  const deadlineMs = clock.now() + timeoutMinutes * 60_000;
  for (;;) {
    try {
      return await dial(connection, name);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.code === 404) throw await missingGuest(connection, name, error);
      // It is about to run, or its node is about to be back.
      const isTemporary = error.code === 409 || error.code === 503;
      if (!isTemporary || clock.now() >= deadlineMs) throw error;
    }
    await sleep(clock, RETRY_MS);
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

/** How a connection ended, and whether it was this side that had enough. */
interface Closure {
  readonly code: number;
  readonly reason: string;
  readonly isLeft: boolean;
}

/** Carries bytes both ways until either side ends it. */
function attach(socket: WebSocket, { input, output }: ConsoleStreams, clock: Clock): Promise<Closure> {
  let sentBytes = 0;
  let isLeft = false;
  const leave = (): void => {
    isLeft = true;
    socket.close(1000);
  };
  const isRaw = input.isTTY === true;
  if (isRaw) input.setRawMode?.(true);
  const send = (bytes: Uint8Array): void => {
    sentBytes += bytes.length;
    if (bytes.length > 0 && socket.readyState === WebSocket.OPEN) socket.send(bytes);
  };
  const onInput = (bytes: Buffer): void => {
    const end = bytes.indexOf(ESCAPE);
    send(end < 0 ? bytes : bytes.subarray(0, end));
    if (end >= 0) leave();
  };
  // Who pipes nothing in wants to look on; who pipes something in wants to see what comes of it.
  const onEnd = (): void => {
    if (sentBytes > 0) clock.setTimer(leave, LINGER_MS);
  };
  input.on('data', onInput);
  input.once('end', onEnd);
  output.on('error', leave);
  socket.on('message', (data: Buffer) => {
    if (isLeft) return;
    if (!output.write(data)) {
      socket.pause();
      output.once('drain', () => socket.resume());
    }
  });
  return new Promise((resolve) => {
    socket.once('error', () => undefined);
    socket.once('close', (code, reason) => {
      input.off('data', onInput);
      input.off('end', onEnd);
      output.off('error', leave);
      if (isRaw) input.setRawMode?.(false);
      input.pause();
      resolve({ code, reason: reason.toString('utf8'), isLeft });
    });
  });
}
