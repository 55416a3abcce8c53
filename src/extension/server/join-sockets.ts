import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../env/ports.ts';
import type { ExtensionResponse, UpgradeAnswer } from './message.ts';

/** The raw end of an upgrade: from here on two connections are one. */

/** How long the last bytes may take to reach a side once the other one has ended. */
const FLUSH_TIMEOUT_MS = 10_000;

type Headers = Readonly<Record<string, string | readonly string[]>>;

/** Answers 101, and carries bytes both ways until either side ends; what was under way to the other still arrives. */
export function joinSockets(
  clock: Clock,
  client: Duplex,
  clientHead: Uint8Array,
  answer: Extract<UpgradeAnswer, { kind: 'joined' }>,
): void {
  const { socket: other, head, headers } = answer;
  endTogether(clock, client, other);
  endTogether(clock, other, client);
  client.write(headText(101, { connection: 'Upgrade', ...headers }));
  if (head.length > 0) client.write(head);
  if (clientHead.length > 0) other.write(clientHead);
  client.pipe(other);
  other.pipe(client);
}

function endTogether(clock: Clock, socket: Duplex, other: Duplex): void {
  // A connection that broke has nobody left to tell; it closes by itself.
  socket.on('error', () => socket.destroy());
  const ended = (): void => {
    if (other.destroyed) return;
    const timer = clock.setTimer(() => other.destroy(), FLUSH_TIMEOUT_MS);
    other.once('close', () => timer.cancel());
    other.end(() => other.destroy());
  };
  if (socket.closed) ended();
  else socket.once('close', ended);
}

/** Answers something other than 101, and ends the connection. */
export async function refuseUpgrade(client: Duplex, { status, headers, body }: ExtensionResponse): Promise<void> {
  client.on('error', () => client.destroy());
  client.write(headText(status, { ...headers, connection: 'close' }));
  if (typeof body === 'string') client.write(body);
  else for await (const chunk of body) client.write(chunk);
  client.end(() => client.destroy());
}

function headText(status: number, headers: Headers): string {
  const lines = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`];
  for (const [name, value] of Object.entries(headers)) {
    for (const each of typeof value === 'string' ? [value] : value) lines.push(`${name}: ${each}`);
  }
  return `${lines.join('\r\n')}\r\n\r\n`;
}
