import { expect, it } from 'vitest';
import { turn } from '../../env/turn.ts';
import { type OfferedHalf, type ReceivedHalf, Refusal } from '../channel.ts';
import { Loopback } from './loopback.ts';

function loopback(received: (update: ReceivedHalf) => Promise<void>): { own: Loopback; log: string[] } {
  const log: string[] = [];
  const own = new Loopback(
    'east',
    {
      received: (_, update) => received(update),
      acknowledged: (_, { key }) => void log.push(`acknowledged ${key}`),
      refused: (_, { key }, { reason, message }) => void log.push(`refused ${key}: ${reason}, ${message}`),
    },
    { error: (message, fields) => void log.push(`${message}: ${String(fields?.['reason'])}`) },
  );
  return { own, log };
}

const HALF: OfferedHalf = { key: 'k', role: 'source', half: { at: 1 } };

it('answers as a stream does', async () => {
  const { own, log } = loopback(async () => undefined);
  own.offer(HALF);
  own.offer(HALF);
  await turn();
  expect(log).toEqual(['acknowledged k']);
});

it('refuses what was refused, in the same words', async () => {
  const { own, log } = loopback(async () => Promise.reject(new Refusal('Gone', 'nobody is there')));
  own.offer(HALF);
  await turn();
  expect(log).toEqual(['refused k: Gone, nobody is there']);
});

it('refuses what went wrong as an internal error, and tells the log alone what it was', async () => {
  const { own, log } = loopback(async () => Promise.reject(new Error('a bug')));
  own.offer(HALF);
  await turn();
  expect(log).toEqual([
    'a half of this cluster could not be taken: a bug',
    'refused k: InternalError, this cluster could not take it',
  ]);
});

it('sends what was refused when it is offered again, and says nothing of what is withdrawn', async () => {
  let isWanted = false;
  const { own, log } = loopback(async () => {
    if (!isWanted) throw new Refusal('Busy', 'not now');
  });
  own.offer(HALF);
  await turn();
  isWanted = true;
  own.offer(HALF);
  await turn();
  own.offer({ ...HALF, key: 'l' });
  own.withdraw('l', 'source');
  await turn();
  expect(log).toEqual(['refused k: Busy, not now', 'acknowledged k']);
});
