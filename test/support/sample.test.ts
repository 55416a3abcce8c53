import { describe, expect, it } from 'vitest';
import { IS_FULL, someOf } from './sample.ts';

describe('some of a table', () => {
  const ran: string[] = [];
  const some = someOf(3, 2);
  for (const name of ['one', 'two', 'three'])
    some(name, async () => {
      ran.push(name);
    });

  it('are run, and no others; all of them in a full run', () => {
    expect(ran).toHaveLength(IS_FULL ? 3 : 2);
    expect(['one', 'two', 'three']).toEqual(expect.arrayContaining(ran));
  });
});
