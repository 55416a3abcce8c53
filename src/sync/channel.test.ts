import { expect, it } from 'vitest';
import { Refusal, SyncError } from './channel.ts';

it('says why in a word for programs and a sentence for people', () => {
  expect(new Refusal('KeyTaken', 'another migration has the key')).toMatchObject({ reason: 'KeyTaken' });
  const cause = new Error('ECONNREFUSED');
  expect(new SyncError('Unreachable', 'nobody answers', cause)).toMatchObject({ code: 'Unreachable', cause });
});
