import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { realClock } from '../../env/real.ts';
import type { SerialLog } from '../guests/guest-access.ts';
import { type LogOptions, streamLogs } from './serial-log-stream.ts';

const directory = mkdtempSync(join(tmpdir(), 'serial-'));
afterAll(() => rmSync(directory, { recursive: true }));

const ALL: LogOptions = { follow: false, tailLines: undefined, limitBytes: undefined, isVerbatim: false };
/** Time passes fifty times as fast. */
const clock = { ...realClock, setTimer: (done: () => void, delayMs: number) => realClock.setTimer(done, delayMs / 50) };
const never = new AbortController().signal;

let logs: SerialLog[];
beforeEach(() => void (logs = []));

function file(name: string, content: string | undefined, isLive = false, podUID = name): string {
  const path = join(directory, name);
  rmSync(path, { force: true });
  if (content !== undefined) writeFileSync(path, content);
  logs = [...logs, { podUID, path, isLive }];
  return path;
}

function end(path: string): void {
  logs = logs.map((log) => (log.path === path ? { ...log, isLive: false } : log));
}

async function read(options: Partial<LogOptions> = {}): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const bytes of streamLogs(async () => logs, { ...ALL, ...options }, clock, never)) parts.push(bytes);
  return Buffer.concat(parts).toString();
}

/** Follows, and does the next thing whenever what was read ends with what it waits for. */
async function followed(steps: readonly (readonly [awaited: string, action: () => void])[]): Promise<string> {
  let text = '';
  let next = 0;
  for await (const bytes of streamLogs(async () => logs, { ...ALL, follow: true }, clock, never)) {
    text += Buffer.from(bytes).toString();
    const step = steps[next];
    if (!step || !text.endsWith(step[0])) continue;
    next++;
    step[1]();
  }
  expect(next).toBe(steps.length);
  return text;
}

describe('serial logs', () => {
  it('are read one after the other, each from a new line', async () => {
    file('a', 'one\ntwo');
    file('missing', undefined);
    file('empty', '');
    file('b', 'three\n');
    expect(await read()).toBe('one\ntwo\nthree\n');
    expect(await read({ limitBytes: 5 })).toBe('one\nt');
    expect(await read({ limitBytes: 8 })).toBe('one\ntwo\n');
    logs = [];
    expect(await read()).toBe('');
  });

  it('end with the last lines, however many files they are in', async () => {
    file('a', 'one\ntwo');
    file('b', 'three\nfour\n');
    const tails = await Promise.all([0, 1, 2, 3, 4, 5].map((tailLines) => read({ tailLines })));
    expect(tails).toEqual([
      '',
      'four\n',
      'three\nfour\n',
      'two\nthree\nfour\n',
      'one\ntwo\nthree\nfour\n',
      'one\ntwo\nthree\nfour\n',
    ]);
  });

  it('end with a line that goes on after a file of the same run that says nothing', async () => {
    for (const [name, said] of Object.entries({ a: 'one\ntw', b: '', c: 'o', d: '' })) file(name, said, false, 'run');
    file('e', '', false, 'next');
    file('f', 'three', false, 'next');
    expect(await read({ tailLines: 1 })).toBe('three\n');
    expect(await read({ tailLines: 2 })).toBe('two\nthree\n');
    expect(await read({ tailLines: 2, isVerbatim: true })).toBe('twothree');
  });

  it('end with the last lines of anything', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(fc.constantFrom('a', '\n', 'x'.repeat(40_000)), { maxLength: 12 }), { maxLength: 4 }),
        fc.nat({ max: 12 }),
        fc.boolean(),
        async (contents, tailLines, isOneRun) => {
          logs = [];
          for (const [index, parts] of contents.entries())
            file(`p${index}`, parts.join(''), false, isOneRun ? 'run' : `p${index}`);
          const whole = await read();
          const lines = whole.split(/(?<=\n)/).filter((line) => line !== '');
          expect(await read({ tailLines })).toBe(tailLines === 0 ? '' : lines.slice(-tailLines).join(''));
        },
      ),
      { numRuns: 60 },
    ));

  it('are left as they are where another goes on in the same line', async () => {
    file('kept', 'one\ntw', false, 'run');
    file('log', 'o\nthr', false, 'run');
    expect(await read()).toBe('one\ntwo\nthr\n');
    expect(await read({ isVerbatim: true })).toBe('one\ntwo\nthr');
    const tails = await Promise.all([0, 1, 2, 3, 4].map((tailLines) => read({ tailLines, isVerbatim: true })));
    expect(tails).toEqual(['', 'thr', 'two\nthr', 'one\ntwo\nthr', 'one\ntwo\nthr']);
  });

  it('are followed until no more can come', async () => {
    const path = file('live', 'one\n', true);
    expect(
      await followed([
        ['one\n', () => appendFileSync(path, 'two\n')],
        [
          'two\n',
          () => {
            appendFileSync(path, 'last words');
            end(path);
          },
        ],
      ]),
    ).toBe('one\ntwo\nlast words\n');
  });

  it('are followed across files that are cut short or replaced', async () => {
    const path = file('cut', 'a long first line\n', true);
    expect(
      await followed([
        [
          'first line\n',
          () => {
            truncateSync(path, 0);
            appendFileSync(path, 'cut\n');
          },
        ],
        [
          'cut\n',
          () => {
            writeFileSync(`${path}.new`, 'replaced, and longer than before\n');
            appendFileSync(path, 'unread rest\n');
            renameSync(`${path}.new`, path);
          },
        ],
        ['before\n', () => end(path)],
      ]),
    ).toBe('a long first line\ncut\nunread rest\nreplaced, and longer than before\n');
  });

  it('are followed from one run to the next', async () => {
    const first = file('first', undefined, true);
    let second = '';
    setTimeout(() => writeFileSync(first, 'begun late\n'), 20);
    expect(
      await followed([
        [
          'late\n',
          () => {
            second = file('second', 'next run\n', true);
          },
        ],
        ['run\n', () => end(second)],
      ]),
    ).toBe('begun late\nnext run\n');
  });

  it('are read no further than somebody wants them', async () => {
    const path = file('lazy', 'x'.repeat(1_000_000));
    const stream = streamLogs(async () => logs, ALL, clock, never);
    const first = await stream.next();
    const length = first.done ? 0 : first.value.length;
    expect(length).toBeLessThan(1_000_000);
    writeFileSync(path, 'y'.repeat(1_000_000));
    let rest = '';
    for await (const bytes of stream) rest += Buffer.from(bytes).toString();
    expect(rest).toBe(`${'y'.repeat(1_000_000 - length)}\n`);
  });

  it('are files, and nothing that leads elsewhere or waits for ever', async () => {
    file('before', 'before\n');
    writeFileSync(join(directory, 'secret'), 'secret\n');
    symlinkSync(join(directory, 'secret'), file('link', undefined));
    mkdirSync(file('directory', undefined));
    const listener = createServer().listen(file('socket', undefined));
    await once(listener, 'listening');
    file('after', 'after\n');
    expect(await read()).toBe('before\nafter\n');
    expect(await read({ tailLines: 2 })).toBe('before\nafter\n');
    listener.close();
    const path = file('swapped', 'mine\n', true);
    const text = await followed([
      [
        'mine\n',
        () => {
          rmSync(path);
          symlinkSync(join(directory, 'secret'), path);
          setTimeout(() => end(path), 50);
        },
      ],
    ]);
    expect(text).toBe('before\nafter\nmine\n');
  });

  it('are not told again by what is kept of them when they begin anew', async () => {
    const path = file('anew', 'one\n', true);
    const text = await followed([
      [
        'one\n',
        () => {
          const kept = join(directory, 'kept');
          writeFileSync(kept, 'one\n');
          logs = [{ podUID: 'anew', path: kept, isLive: false }, ...logs];
          truncateSync(path, 0);
          appendFileSync(path, '2\n');
        },
      ],
      ['2\n', () => end(path)],
    ]);
    expect(text).toBe('one\n2\n');
    expect(await read()).toBe('one\n2\n');
  });

  it('are left when nobody reads on', async () => {
    file('left', 'x\n', true);
    const gone = new AbortController();
    const seen: string[] = [];
    for await (const bytes of streamLogs(async () => logs, { ...ALL, follow: true }, clock, gone.signal)) {
      seen.push(Buffer.from(bytes).toString());
      gone.abort();
    }
    expect(seen).toEqual(['x\n']);
  });
});
