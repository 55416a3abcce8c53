import { describe, expect, it } from 'vitest';
import { type ChangeRecord, History, type HistoryLimits } from './history.ts';
import { ExpiredRevision } from './model.ts';
import { Queue } from './queue.ts';

function put(revision: number, key: string, previous = 0, bucket = 'pods'): ChangeRecord {
  return { revision, type: 'put', bucket, key, previous, length: 10 };
}

function gone(revision: number, key: string, previous: number, bucket = 'pods'): ChangeRecord {
  return { revision, type: 'delete', bucket, key, previous, length: 10 };
}

const limits = (changesMax: number): HistoryLimits => ({ changesMax, charactersMax: 1000 });

const revisions = (records: Iterable<ChangeRecord>): number[] => [...records].map((record) => record.revision);

describe('history', () => {
  it('keeps the last changes over all buckets', () => {
    const history = new History(limits(3), 1);
    for (let revision = 2; revision <= 6; revision++) {
      history.push(put(revision, 'k', 0, revision % 2 === 0 ? 'even' : 'odd'));
    }
    expect(history.oldestRevision).toBe(3);
    expect(revisions(history.recordsAfter('even', 3))).toEqual([4, 6]);
    expect(revisions(history.recordsAfter('odd', 3))).toEqual([5]);
    expect(revisions(history.recordsAfter('odd', 5))).toEqual([]);
    expect(revisions(history.follow('even', 4))).toEqual([6]);
    expect(() => history.recordsAfter('even', 2)).toThrow(ExpiredRevision);
    expect(() => history.follow('quiet', 2).next()).toThrow(ExpiredRevision);
  });

  it('forgets sooner what is long, but never the last change', () => {
    const history = new History(limits(100), 1);
    for (let revision = 2; revision <= 9; revision++)
      history.push({ ...put(revision, 'k', revision - 1), length: 400 });
    expect(history.oldestRevision).toBe(7);
    expect(history.droppable(100)).toEqual([1, 2, 3, 4, 5, 6]);
    history.push({ ...put(10, 'k', 9), length: 5000 });
    expect(revisions(history.recordsAfter('pods', 9))).toEqual([10]);
    expect(history.oldestRevision).toBe(9);
    history.push(put(11, 'k', 10));
    expect(revisions(history.recordsAfter('pods', 10))).toEqual([11]);
  });

  it('hands out what may be dropped in order, again and again until it is', () => {
    const history = new History(limits(1), 1);
    for (const record of [put(2, 'a'), put(3, 'a', 2), gone(4, 'a', 3), put(5, 'b'), put(6, 'b', 5), put(7, 'c')]) {
      history.push(record);
    }
    expect(history.droppable(2)).toEqual([2, 3]);
    expect(history.droppable(100)).toEqual([2, 3, 4, 5]);
    history.dropped(3);
    expect(history.droppable(100)).toEqual([5]);
  });

  it.each<[string, ChangeRecord[], number, number, number[]]>([
    ['nothing', [], 10, 1, []],
    ['everything that is there', [put(2, 'a'), put(3, 'a', 2), gone(4, 'a', 3)], 10, 1, []],
    ['no more than fits', [put(2, 'a'), put(3, 'a', 2), gone(4, 'a', 3)], 1, 3, [2]],
    ['nothing before a gap', [put(2, 'a'), put(3, 'b'), put(5, 'b', 3), put(6, 'a', 2)], 10, 4, []],
    ['nothing whose predecessor is gone', [put(3, 'b', 2), put(4, 'c')], 10, 3, [2]],
    ['what a crash left to drop', [put(2, 'a'), gone(3, 'a', 2), put(5, 'b'), put(6, 'c')], 2, 4, [2, 3]],
  ])('reaches back over a loaded log to %s', (_, records, changesMax, oldest, droppable) => {
    const history = History.fromLog(records, limits(changesMax), 1);
    expect(history.oldestRevision).toBe(oldest);
    expect(history.droppable(100)).toEqual(droppable);
    expect(revisions(history.recordsAfter('pods', oldest))).toEqual(
      revisions(records).filter((revision) => revision > oldest),
    );
  });
});

describe('a queue', () => {
  it('is a list that loses its head', () => {
    const queue = new Queue<number>();
    const model: number[] = [];
    for (let round = 0; round < 50; round++) {
      for (let index = 0; index < 300; index++) {
        queue.push(round * 300 + index);
        model.push(round * 300 + index);
      }
      const count = (round * 97) % 500;
      queue.drop(count);
      model.splice(0, count);
      expect(queue.length).toBe(model.length);
      expect([queue.at(0), queue.at(17), queue.at(model.length)]).toEqual([model[0], model[17], undefined]);
      expect(queue.slice(3, 9)).toEqual(model.slice(3, 9));
      expect(queue.slice(5)).toEqual(model.slice(5));
    }
    queue.drop(1_000_000);
    expect(queue.length).toBe(0);
  });
});
