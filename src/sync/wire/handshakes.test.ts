import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { expect, it } from 'vitest';
import { Handshakes } from './handshakes.ts';

/** Connections of these addresses, one after the other; answers the numbers of those that were turned away. */
function turnedAway(max: number, addresses: readonly string[], known: readonly number[] = []): number[] {
  const handshakes = new Handshakes(max);
  const gone: number[] = [];
  for (const [at, remoteAddress] of addresses.entries()) {
    const socket = Object.assign(new EventEmitter(), {
      remoteAddress,
      remotePort: at,
      destroy: () => {
        gone.push(at);
        socket.emit('close');
      },
    });
    handshakes.begin(socket as unknown as Socket);
    if (known.includes(at)) handshakes.end({ remoteAddress, remotePort: at });
  }
  return gone;
}

it.each([
  { name: 'nobody while there is room', addresses: ['a', 'a', 'b'], gone: [] },
  { name: 'the eldest, where all are alike', addresses: ['a', 'b', 'c', 'd', 'e'], gone: [0, 1] },
  { name: 'the eldest of the address that has most', addresses: ['b', 'a', 'a', 'c', 'd'], gone: [1, 0] },
  { name: 'nobody else of an address that has few', addresses: ['b', 'a', 'a', 'a', 'a', 'a'], gone: [1, 2, 3] },
])('turns away $name', ({ addresses, gone }) => expect(turnedAway(3, addresses)).toEqual(gone));

it('counts nobody who is known', () => {
  expect(turnedAway(2, ['a', 'a', 'a', 'a', 'a'], [0, 1, 2])).toEqual([]);
});
