import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, it } from 'vitest';
import { realPorts } from './real-ports.ts';

it('tells ports that are taken from free ones', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = createSocket('udp4').bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const tcp = (server.address() as AddressInfo).port;
  const udp = socket.address().port;
  expect(await realPorts.isFree('tcp', '127.0.0.1', tcp)).toBe(false);
  expect(await realPorts.isFree('udp', '127.0.0.1', udp)).toBe(false);
  server.close();
  socket.close();
  await once(server, 'close');
  expect(await realPorts.isFree('tcp', '127.0.0.1', tcp)).toBe(true);
  expect(await realPorts.isFree('udp', '127.0.0.1', udp)).toBe(true);
  await expect(realPorts.isFree('tcp', '192.0.2.1', 1234)).rejects.toThrow('EADDRNOTAVAIL');
});
