import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { readLines } from './lines.ts';

async function* pieces(...texts: readonly string[]): AsyncGenerator<string> {
  yield* texts;
}

async function collect(source: AsyncIterable<string>): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of source) lines.push(line);
  return lines;
}

it('puts lines together however they are cut', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.string().map((text) => text.replaceAll('\n', ''))),
      fc.array(fc.nat(20)),
      async (lines, cuts) => {
        let text = lines.map((line) => `${line}\n`).join('');
        const parts: string[] = [];
        for (const cut of cuts) {
          parts.push(text.slice(0, cut));
          text = text.slice(cut);
        }
        expect(await collect(readLines(pieces(...parts, text)))).toEqual(lines);
      },
    ),
  );
});

it('leaves out a last line that was cut off', async () => {
  expect(await collect(readLines(pieces('a\nb')))).toEqual(['a']);
});
