import { open } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { basename, dirname } from 'node:path';
import type { Connection, ConnectionHandlers, Connector } from './ports.ts';

/** Linux takes no longer names of sockets. */
const SOCKET_PATH_BYTES_MAX = 107;

/** The host's own unix sockets. */
export const realConnector: Connector = {
  async connectUnix(path, handlers) {
    if (Buffer.byteLength(path) <= SOCKET_PATH_BYTES_MAX) return connect(path, handlers);
    // Through a descriptor of its directory, every socket has a short name.
    const directory = await open(dirname(path), 'r');
    try {
      return await connect(`/proc/self/fd/${directory.fd}/${basename(path)}`, handlers);
    } finally {
      await directory.close();
    }
  },
};

function connect(path: string, handlers: ConnectionHandlers): Promise<Connection> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ path });
    let failure: Error | undefined;
    let isConnected = false;
    socket.on('error', (error) => (failure = error));
    socket.once('connect', () => {
      isConnected = true;
      resolve({ write: (bytes) => void socket.write(bytes), close: () => void socket.destroy() });
    });
    socket.on('data', (bytes) => handlers.data(bytes));
    socket.once('close', () => {
      if (isConnected) handlers.closed(failure);
      else reject(failure ?? new Error(`${path} was closed before it was open`));
    });
  });
}
