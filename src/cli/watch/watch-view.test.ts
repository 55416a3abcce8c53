import { describe, expect, it } from 'vitest';
import { UserError } from '../failure.ts';
import { condition, guestOf, migrationOf } from '../seen/seen.fixture.ts';
import { outcomeOf } from './watch-migration.ts';
import { LineView, moveLines, TerminalView } from './watch-view.ts';
import { historyAfter, NO_HISTORY, watchedMove, type WatchedMove } from './watched-move.ts';

const MIB = 1024 ** 2;

function progressOf(percent: number, time: string) {
  return {
    percent,
    secondsLeft: 12,
    iteration: 3,
    totalBytes: 4096 * MIB,
    transferredBytes: 1200 * MIB,
    remainingBytes: 300 * MIB,
    throughputBytesPerSecond: 118 * MIB,
    dirtyRateBytesPerSecond: 12 * MIB,
    time,
  };
}

function moving(percent: number, more: object = {}, time = `t${percent}`): WatchedMove {
  const migrationState = {
    migrationUid: 'migration-web',
    sourceNode: 'node-1',
    targetNode: 'node-2',
    progress: progressOf(percent, time),
    ...more,
  };
  return watchedMove(migrationOf('web', 'Running'), guestOf('web', 'node-1', { migrationState }));
}

describe('a migration that is watched', () => {
  it('is seen by its own word and its guest', () => {
    expect(moving(42)).toMatchObject({
      machine: 'shop/web',
      phase: 'Running',
      sourceNode: 'node-1',
      targetNode: 'node-2',
      summary: '42%, 12s left',
      decision: '',
      trouble: '',
    });
  });

  it('does not take the word of another one', () => {
    const guest = guestOf('web', 'node-1', { migrationState: { migrationUid: 'other', progress: progressOf(9, 'x') } });
    expect(watchedMove(migrationOf('web', 'Pending'), guest)).toMatchObject({
      progress: undefined,
      trouble: "it waits for its turn ('godwit queue' says for what)",
    });
  });

  it('says what is wrong with it', () => {
    const conditions = [condition('migrationTargetPodUnschedulable', 'True', 'node-2: Insufficient memory')];
    expect(watchedMove(migrationOf('web', 'Scheduling', { status: { conditions } }), undefined).trouble).toBe(
      'node-2: Insufficient memory',
    );
  });

  it('is drawn with its speed over time', () => {
    const history = [1, 2, 4].reduce(
      (before, rate, index) => historyAfter(before, { ...progressOf(1, `t${index}`), dirtyRateBytesPerSecond: rate }),
      NO_HISTORY,
    );
    expect(
      moveLines(
        moving(50, { decisions: [{ decision: 'x', reason: 'y', message: 'the guest is slowed down' }] }),
        history,
        100,
      ),
    ).toEqual([
      'shop/web   node-1 → node-2   Running, pass 3',
      '████████████████████░░░░░░░░░░░░░░░░░░░░  50%, 12s left',
      'sent    1.2 GiB of 4.0 GiB      118 MiB/s     ███',
      'dirtied 300 MiB left            12.0 MiB/s    ▃▅█',
      'the guest is slowed down',
    ]);
  });

  it('is sent more than once where the guest writes meanwhile', () => {
    const progress = { ...progressOf(68, 'x'), transferredBytes: 8192 * MIB };
    expect(moveLines(moving(68, { progress }), NO_HISTORY, 100)[2]).toContain('8.0 GiB for 4.0 GiB');
  });

  it('fits the terminal', () => {
    for (const columns of [20, 40, 80])
      for (const line of moveLines(moving(50), NO_HISTORY, columns)) expect(line.length).toBeLessThanOrEqual(columns);
  });

  it('adds to its history only what is new', () => {
    const once = historyAfter(NO_HISTORY, progressOf(1, 'a'));
    expect(historyAfter(once, progressOf(1, 'a'))).toBe(once);
    expect(historyAfter(once, undefined)).toBe(once);
    expect(historyAfter(once, progressOf(1, 'b')).throughput).toHaveLength(2);
  });

  it('is redrawn on a terminal', () => {
    const written: string[] = [];
    const view = new TerminalView({ columns: 80, rows: 24, write: (text) => written.push(text) });
    view.show(moving(10));
    view.show(moving(20));
    expect(written[1]?.startsWith('\u001b[4A\u001b[J')).toBe(true);
  });

  it('is a line in a pipe for each phase, each decision and each tenth', () => {
    const lines: string[] = [];
    const view = new LineView((line) => lines.push(line));
    view.show(watchedMove(migrationOf('web', 'Scheduling'), undefined));
    for (const percent of [1, 5, 9, 12, 13]) view.show(moving(percent));
    view.show(moving(14, { decisions: [{ decision: 'x', reason: 'y', message: 'the guest is slowed down' }] }));
    expect(lines).toEqual([
      'shop/web: Scheduling',
      'shop/web: Running, node-1 → node-2, 1%, 12s left, 118 MiB/s, dirtied 12.0 MiB/s',
      'shop/web: Running, node-1 → node-2, 12%, 12s left, 118 MiB/s, dirtied 12.0 MiB/s',
      'shop/web: Running, node-1 → node-2, 14%, 12s left, 118 MiB/s, dirtied 12.0 MiB/s, the guest is slowed down',
    ]);
  });
});

describe('how it ended', () => {
  it('is said with what it took', () => {
    const migrationState = {
      migrationUid: 'migration-web',
      targetNode: 'node-2',
      startTimestamp: '2026-05-01T11:59:40Z',
      endTimestamp: '2026-05-01T11:59:55Z',
      downtimeMs: 43,
    };
    expect(outcomeOf(migrationOf('web', 'Succeeded', { status: { migrationState } }), undefined, 'web')).toBe(
      'VM web was migrated to node-2: the guest stood still for 43 ms, the copy took 15s',
    );
  });

  it('is an error with its fix where the guest did not move', () => {
    const conditions = [
      condition('migrationFailed', 'True', 'unschedulable pod timeout period exceeded', 'TargetPodUnschedulable'),
    ];
    const failed = migrationOf('web', 'Failed', { status: { conditions } });
    expect(() => outcomeOf(failed, undefined, 'web')).toThrow(UserError);
    expect(() => outcomeOf(failed, undefined, 'web')).toThrow(
      'the migration of web failed: unschedulable pod timeout period exceeded; give a node room for it, or the labels and the processor that it asks for (it goes on where it is)',
    );
  });
});
