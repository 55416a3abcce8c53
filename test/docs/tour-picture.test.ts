import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { Likeness } from './likeness.ts';
import { commandsIn, fencedIn } from './page.ts';

/** The picture of the tour ends with what the README shows, and that is what a newcomer sees (`test/newcomer`). */

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

/** What is left to read at the end of a recording: lines that were written over are hidden then. */
function finalLines(svg: string): string[] {
  const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', quot: '"', apos: "'", amp: '&' };
  return [...svg.matchAll(/<text [^>]*style="([^"]*)">(.*)<\/text>/g)]
    .filter(([, style = '']) => !style.endsWith('visibility:hidden'))
    .map(([, , text = '']) =>
      text.replaceAll(/<[^>]+>/g, '').replaceAll(/&(\w+);/g, (whole, name: string) => entities[name] ?? whole),
    );
}

it('shows what the README shows', () => {
  const shown = fencedIn(read('README.md'), 'Start')
    .filter(({ language }) => language === 'console')
    .flatMap(commandsIn)
    .find(({ command }) => command === 'npm start')?.output;
  const tour = shown?.slice(shown.findIndex((line) => line.startsWith('A tour:'))) ?? [];
  expect(tour.length).toBeGreaterThan(10);
  const printed = finalLines(read('docs/tour.svg')).join('\n');
  expect(new Likeness().difference(tour, printed), printed).toBeUndefined();
});
