import { createConnection } from 'node:net';
import type { Connector } from './ports.ts';

/** The host's own unix sockets. */
export const realConnector: Connector = {
  connectUnix: (path, handlers) =>
    new Promise((resolve, reject) => {
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
    }),
};
