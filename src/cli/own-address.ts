import { once } from 'node:events';
import { createConnection } from 'node:net';

/** The address of this machine that a server sees. */
export async function ownAddress(server: string): Promise<string> {
  const { hostname, port } = new URL(server);
  const socket = createConnection({ host: hostname.replaceAll(/[[\]]/g, ''), port: Number(port || '443') });
  try {
    await once(socket, 'connect');
    return socket.localAddress ?? '127.0.0.1';
  } finally {
    socket.destroy();
  }
}
