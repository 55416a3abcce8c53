import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { HostPorts } from './ports.ts';

/** Tries it, which is the only way to know. */
async function tryTcp(address: string, port: number): Promise<void> {
  const server = createServer();
  server.listen({ host: address, port, exclusive: true });
  await once(server, 'listening');
  server.close();
  await once(server, 'close');
}

async function tryUdp(address: string, port: number): Promise<void> {
  const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4');
  try {
    socket.bind({ address, port, exclusive: true });
    await once(socket, 'listening');
  } finally {
    socket.close();
  }
}

/** The ports of this host. */
export const realPorts: HostPorts = {
  async isFree(protocol, address, port) {
    try {
      await (protocol === 'tcp' ? tryTcp : tryUdp)(address, port);
      return true;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'EADDRINUSE' || code === 'EACCES') return false;
      throw error;
    }
  },
};
