import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../env/ports.ts';
import type { UpgradeAnswer } from './backend.ts';

/** The raw end of an upgrade: from here on two sockets are one. */

type Headers = { readonly [name: string]: string | readonly string[] };

/** How long the last bytes may take to reach a peer once the other side has ended; one that never reads is cut off. */
const FLUSH_TIMEOUT_MS = 10_000;

/** Answers 101 and carries bytes both ways until both sides have ended. */
export function joinSockets(
  clock: Clock,
  client: Duplex,
  head: Uint8Array,
  answer: Extract<UpgradeAnswer, { kind: 'upgraded' }>,
  signal: AbortSignal,
): Promise<void> {
  const backend = answer.socket;
  const closed = Promise.all([closing(clock, client, backend), closing(clock, backend, client)]);
  const destroy = (): void => {
    client.destroy();
    backend.destroy();
  };
  signal.addEventListener('abort', destroy, { once: true });
  if (signal.aborted || client.destroyed) destroy();
  else {
    client.write(headText(101, answer.headers));
    if (answer.head.length > 0) client.write(answer.head);
    if (head.length > 0) backend.write(head);
    client.pipe(backend);
    backend.pipe(client);
  }
  return closed.then(() => signal.removeEventListener('abort', destroy));
}

/** Resolves when a socket has closed; the other one is then given time to send what it still has. */
function closing(clock: Clock, socket: Duplex, other: Duplex): Promise<void> {
  return new Promise((resolve) => {
    // A connection that broke has nobody left to tell; it closes by itself.
    socket.on('error', () => socket.destroy());
    const ended = (): void => {
      resolve();
      if (other.destroyed) return;
      const timer = clock.setTimer(() => other.destroy(), FLUSH_TIMEOUT_MS);
      other.on('close', () => timer.cancel());
      other.end(() => other.destroy());
    };
    if (socket.closed) ended();
    else socket.on('close', ended);
  });
}

/** Answers something other than 101, and ends the connection. */
export async function refuse(
  client: Duplex,
  status: number,
  headers: Headers,
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): Promise<void> {
  if (client.destroyed) return;
  client.on('error', () => client.destroy());
  client.write(headText(status, { ...headers, connection: 'close' }));
  try {
    for await (const chunk of body) {
      if (client.destroyed) return;
      if (!client.write(chunk)) await new Promise<void>((resolve) => resumed(client, resolve));
    }
    // Not until the client ends its side, which it need never do.
    client.end(() => client.destroy());
  } catch {
    // The backend broke off: so does the answer.
    client.destroy();
  }
}

function resumed(client: Duplex, resolve: () => void): void {
  const done = (): void => {
    client.off('drain', done);
    client.off('close', done);
    resolve();
  };
  client.on('drain', done);
  client.on('close', done);
}

function headText(status: number, headers: Headers): string {
  const lines = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`];
  for (const [name, value] of Object.entries(headers)) {
    for (const each of typeof value === 'string' ? [value] : value) lines.push(`${name}: ${each}`);
  }
  return `${lines.join('\r\n')}\r\n\r\n`;
}
