import { expect, it } from 'vitest';
import { type MigrationProgress, progressSummary } from './migration-progress.ts';

it.each<[MigrationProgress, string]>([
  [{ percent: 0 }, '0%'],
  [{ percent: 42, secondsLeft: 12 }, '42%, 12s left'],
  [{ percent: 42, secondsLeft: 12, secondsLeftMin: 8, secondsLeftMax: 90 }, '42%, 12s left (8s to 1m30s)'],
  [{ percent: 42, secondsLeft: 3700, secondsLeftMin: 60 }, '42%, 1h1m left (1m0s or more)'],
  [{ percent: 100, secondsLeft: 0, secondsLeftMin: 0, secondsLeftMax: 0 }, '100%'],
])('progress of %j is shown as %s', (progress, text) => expect(progressSummary(progress)).toBe(text));
