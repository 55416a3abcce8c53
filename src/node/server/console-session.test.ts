import { EventEmitter } from 'node:events';
import { describe, expect, it } from 'vitest';
import type { WebSocket } from 'ws';
import type { ConnectionHandlers } from '../../env/ports.ts';
import { ManualClock } from '../../env/test.ts';
import { ConsoleSession } from './console-session.ts';

/** The other side of a WebSocket, as far as sessions see it. */
class PlayedSocket extends EventEmitter {
  readonly OPEN = 1;
  readyState = 1;
  bufferedAmount = 0;
  isPaused = false;
  pings = 0;
  text = '';
  ended: string | undefined;

  send(bytes: Uint8Array): void {
    this.text += Buffer.from(bytes).toString();
  }
  ping(): void {
    this.pings++;
  }
  pause(): void {
    this.isPaused = true;
  }
  resume(): void {
    this.isPaused = false;
  }
  close(code: number, reason: string): void {
    this.ended ??= `${code} ${reason}`;
    this.readyState = 2;
  }
  terminate(): void {
    this.ended ??= 'terminated';
    this.readyState = 3;
    this.emit('close');
  }
}

async function scene(isSomebodyComing = () => false) {
  const clock = new ManualClock();
  const session = new ConsoleSession(clock, isSomebodyComing);
  const guest = { heard: '', closed: 0, handlers: undefined as ConnectionHandlers | undefined };
  await session.open(async (handlers) => {
    guest.handlers = handlers;
    return { write: (bytes) => (guest.heard += Buffer.from(bytes).toString()), close: () => void guest.closed++ };
  });
  const socket = new PlayedSocket();
  const attach = (): void => session.attach(socket as unknown as WebSocket);
  const say = (text: string): void => guest.handlers?.data(Buffer.from(text));
  return { clock, session, guest, socket, attach, say };
}

describe('a session at a console', () => {
  it('keeps what is said before anybody is there', async () => {
    const { say, attach, socket, guest } = await scene();
    say('first ');
    say('second');
    attach();
    expect(socket.text).toBe('first second');
    socket.emit('message', Buffer.from('answer'));
    expect(guest.heard).toBe('answer');
  });

  it('tells also whom it ended before he was there', async () => {
    const { say, attach, socket, guest } = await scene();
    say('last words');
    guest.handlers?.closed();
    attach();
    expect(socket).toMatchObject({ text: 'last words', ended: expect.stringMatching(/^1000 .*taken over/) });
  });

  it('ends with the console, and says whether that broke', async () => {
    const { attach, socket, guest } = await scene();
    attach();
    guest.handlers?.closed(new Error('EPIPE'));
    expect(socket.ended).toBe('1011 the console broke off');
  });

  it('tells who has lost the console to another', async () => {
    const { attach, socket, guest } = await scene(() => true);
    attach();
    guest.handlers?.closed();
    expect(socket.ended).toBe('4001 the console was taken over by another');
  });

  it('lets go of the console when the person goes', async () => {
    const { attach, socket, guest, clock } = await scene();
    attach();
    socket.emit('close');
    expect(guest.closed).toBe(1);
    clock.advance(120_000);
    expect(socket.pings).toBe(0);
  });

  it('leaves who does not read, rather than let the guest wait', async () => {
    const { attach, socket, guest, say } = await scene();
    attach();
    socket.bufferedAmount = 2 ** 20 + 1;
    say('too much');
    expect(socket.ended).toBe('1013 too much was left unread');
    expect(guest.closed).toBeGreaterThan(0);
  });

  it('leaves who does not answer any more', async () => {
    const { attach, socket, guest, clock } = await scene();
    attach();
    clock.advance(30_000);
    socket.emit('pong');
    clock.advance(30_000);
    expect(socket).toMatchObject({ pings: 2, ended: undefined });
    clock.advance(30_000);
    expect(socket.ended).toBe('terminated');
    expect(guest.closed).toBe(1);
  });

  it('lets who types too fast wait, for as long as it was too fast', async () => {
    const { attach, socket, clock, guest } = await scene();
    attach();
    socket.emit('message', Buffer.alloc(64 * 1024 - 1, 'x'));
    expect(socket.isPaused).toBe(false);
    socket.emit('message', Buffer.alloc(64 * 1024 + 1, 'x'));
    expect(socket.isPaused).toBe(true);
    expect(guest.heard).toHaveLength(128 * 1024);
    clock.advance(1_999);
    expect(socket.isPaused).toBe(true);
    clock.advance(1);
    expect(socket.isPaused).toBe(false);
  });

  it('lets nobody wait who types for long', async () => {
    const { attach, socket, clock } = await scene();
    attach();
    for (let second = 0; second < 100; second++) {
      socket.emit('message', Buffer.alloc(32 * 1024));
      socket.emit('pong');
      expect(socket.isPaused).toBe(false);
      clock.advance(1000);
    }
  });
});
