import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../env/test.ts';
import type { Client } from '../../kube/client.ts';
import type { Attempt } from '../../migration/right-to-run/attempt.ts';
import type { Standing } from '../../migration/right-to-run/standing.ts';
import { OtherNodes } from './other-nodes.ts';

const runner = (node: string) => ({ node, nodeUID: `${node}-uid`, podUID: `${node}-pod` });
const attempt = (epoch: number): Attempt => ({
  epoch,
  source: runner('a'),
  target: runner('b'),
  sourceMigrationUID: `migration-${epoch}`,
  targetMigrationUID: `migration-${epoch}`,
});
const receiving = (epoch = 1): Standing => ({ kind: 'receiving', attempt: attempt(epoch) });
const record = { epoch: 1, holder: runner('a'), successor: runner('b') };

function setUp() {
  const clock = new ManualClock();
  const asked: string[] = [];
  const tainted = new Map<string, string>();
  const find = (_resource: unknown, _namespace: string, name: string): Promise<unknown> => {
    asked.push(name);
    const uid = tainted.get(name);
    const taints = uid === undefined ? [] : [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }];
    return Promise.resolve({ metadata: { name, uid: uid ?? `${name}-uid` }, spec: { taints } });
  };
  const others = new OtherNodes({ find } as unknown as Pick<Client, 'find'>, clock);
  const look = (pod: string, standing: Standing) => others.look(pod, standing, record, new AbortController().signal);
  /** A look at what has been under way for a while. */
  const lookLater = async (pod: string, standing: Standing) => {
    await look(pod, standing);
    clock.advance(3000);
    return look(pod, standing);
  };
  return { clock, asked, tainted, others, look, lookLater };
}

describe('the node at the other end', () => {
  it('is asked for while the right may be under way, and not more often than needed', async () => {
    const { clock, asked, others, look } = setUp();
    expect(await look('b-pod', receiving())).toBe(3000);
    clock.advance(1000);
    expect(await look('b-pod', receiving())).toBe(2000);
    expect(asked).toEqual([]);
    clock.advance(2000);
    expect(await look('b-pod', receiving())).toBe(15_000);
    clock.advance(5000);
    expect(await look('b-pod', receiving())).toBe(10_000);
    clock.advance(10_000);
    await look('b-pod', receiving());
    expect(asked).toEqual(['a', 'a']);
    expect(others.outOfService('b-pod', receiving())).toEqual([]);
  });

  it.each<[string, string, Standing, string[]]>([
    ['a target', 'b-pod', receiving(), ['a']],
    ['one that has refused, and is named still', 'b-pod', { kind: 'refused', attempt: attempt(1) }, ['a']],
    ['a source that has granted', 'a-pod', { kind: 'granted', attempt: attempt(1), isPostCopy: false }, ['b']],
    ['a source that gave it away, as nobody says', 'a-pod', { kind: 'ended', epoch: 1, givenTo: runner('b') }, ['b']],
    ['one that has refused, and is named no more', 'c-pod', { kind: 'refused', attempt: attempt(1) }, []],
    [
      'one that receives from elsewhere',
      'b-pod',
      { kind: 'receiving', attempt: { ...attempt(1), across: { targetEpoch: 2 } } },
      [],
    ],
    [
      'one that gave it to somebody elsewhere',
      'a-pod',
      { kind: 'ended', epoch: 1, givenTo: runner('b'), isAcross: true },
      [],
    ],
    ['one that has nothing', 'a-pod', { kind: 'none' }, []],
  ])('matters to %s', async (_, pod, standing, expected) => {
    const { asked, lookLater } = setUp();
    await lookLater(pod, standing);
    expect(asked).toEqual(expected);
  });

  it('is out of service for this handing over, and for no other', async () => {
    const { clock, tainted, others, lookLater } = setUp();
    tainted.set('a', 'a-uid');
    expect(await lookLater('b-pod', receiving())).toBeUndefined();
    expect(others.outOfService('b-pod', receiving())).toEqual(['a-uid']);
    expect(others.outOfService('b-pod', { kind: 'refused', attempt: attempt(1) })).toEqual(['a-uid']);
    tainted.clear();
    clock.advance(1000);
    expect(others.outOfService('b-pod', receiving(2))).toEqual([]);
    await lookLater('b-pod', receiving(2));
    expect(others.outOfService('b-pod', receiving(2))).toEqual([]);
  });

  it('is looked at again soon where the clock was set back', async () => {
    const { clock, asked, lookLater, look } = setUp();
    await lookLater('b-pod', receiving());
    clock.advance(-3_600_000);
    await look('b-pod', receiving());
    expect(asked).toEqual(['a', 'a']);
  });

  it('is not another one of the same name', async () => {
    const { tainted, others, lookLater } = setUp();
    tainted.set('a', 'another-uid');
    await lookLater('b-pod', receiving());
    expect(others.outOfService('b-pod', receiving())).toEqual([]);
  });
});
