import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { EVENT_REASONS } from '../../src/api/event-reasons.ts';
import { failureRemedy } from '../../src/cli/why/failure-remedies.ts';
import { FAILURE_REASONS, failure } from '../../src/migration/phase/failure.ts';
import { CONDITIONS } from './conditions.ts';

/** docs/events.md is made of the reasons that the code knows; what conditions say is held against the code. */

const PAGE = '../../docs/events.md';
const SOURCES = fileURLToPath(new URL('../../src', import.meta.url));
/** Rooms whose conditions are on the page; the rest is Kubernetes' own. */
const ROOMS = ['control', 'migration', 'node', 'sync'];

/** Conditions that the code sets of objects of Kubernetes alone: requests for certificates, and pods. */
const OF_OTHERS = ['Approved', 'DisruptionTarget'];

const INTRODUCTION = `# Events and conditions

This page is made from what the code knows: \`npx vitest run test/docs/events-page.test.ts -u\` writes it anew, and a test
fails where it is not the same.

\`kubectl events --for vmi/NAME\`, or \`kubectl describe\`, shows what happened to an object; \`godwit why VM|MIGRATION|NODE\`
puts it into one answer, with what comes next and what you could do. Events go an hour after they
were last written; one that repeats is counted.
`;

const cell = (text: string): string => text.replaceAll('|', '\\|');

function eventTable(kind: string, meanings: (typeof EVENT_REASONS)[keyof typeof EVENT_REASONS]): string[] {
  const rows = Object.entries(meanings).map(
    ([reason, meaning]: [string, { type: string; when: string; remedy?: string }]) =>
      `| ${reason} | ${meaning.type} | ${cell(meaning.when)} | ${cell(meaning.remedy ?? '')} |`,
  );
  return [
    kind === 'Any' ? '### Events of any object' : `### Events of a ${kind}`,
    '',
    '| reason | type | when | what to do |',
    '|---|---|---|---|',
    ...rows,
    '',
  ];
}

function conditionTable(kind: string): string[] {
  const rows = Object.entries(CONDITIONS[kind] ?? {}).map(([type, { says, reasons = {} }]) => {
    const all = Object.entries(reasons).map(([reason, meaning]) => `${reason}: ${meaning}`);
    return `| ${type} | ${cell(says)} | ${cell(all.join('<br>'))} |`;
  });
  return [`### Conditions of a ${kind}`, '', '| type | what it says | reasons |', '|---|---|---|', ...rows, ''];
}

function failureTable(): string[] {
  const rows = FAILURE_REASONS.toSorted().map(
    (reason) => `| ${reason} | ${cell(failure(reason).message)} | ${cell(failureRemedy(reason))} |`,
  );
  return [
    '## Why migrations fail',
    '',
    'The reason of the condition `migrationFailed`; `status.migrationState.failureReason` has the words, with what the agents say.',
    '',
    '| reason | message | what to do |',
    '|---|---|---|',
    ...rows,
    '',
  ];
}

function sourcesOf(room: string): string {
  return readdirSync(join(SOURCES, room), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts') && !name.endsWith('.fixture.ts'))
    .map((name) => readFileSync(join(SOURCES, room, name), 'utf8'))
    .join('\n');
}

describe('events and conditions', () => {
  it('are all on their page', async () => {
    const page = [
      INTRODUCTION,
      '## Conditions',
      '',
      'They are True while they are there, unless it says otherwise. A machine also has the conditions of its guest.',
      '',
      ...Object.keys(CONDITIONS).flatMap(conditionTable),
      ...failureTable(),
      '## Events',
      '',
      ...Object.entries(EVENT_REASONS).flatMap(([kind, meanings]) => eventTable(kind, meanings)),
    ].join('\n');
    await expect(`${page.trimEnd()}\n`).toMatchFileSnapshot(PAGE);
  });

  it('has all conditions that the code sets, and no others', () => {
    const code = ROOMS.map(sourcesOf).join('\n');
    const known = new Set(Object.values(CONDITIONS).flatMap((types) => Object.keys(types)));
    const set = [...code.matchAll(/\btype: '(\w+)',\s*status:/g)].map(([, type = '']) => type);
    expect([...new Set(set)].filter((type) => !known.has(type) && !OF_OTHERS.includes(type))).toEqual([]);
    const lacking = [...known].filter((type) => !new RegExp(`['"]${type}['"]|\\b${type}:`).test(code));
    expect(lacking).toEqual([]);
  });

  it('has no reason of a condition that the code does not give', () => {
    const code = [...ROOMS, 'cluster'].map(sourcesOf).join('\n');
    const reasons = Object.values(CONDITIONS)
      .flatMap((types) => Object.values(types))
      .flatMap(({ reasons: all = {} }) => Object.keys(all));
    expect(reasons.filter((reason) => !new RegExp(`['"]${reason}['"]|\\b${reason}:`).test(code))).toEqual([]);
  });

  it('says what to do about each warning of which somebody can do something', () => {
    for (const meanings of Object.values(EVENT_REASONS))
      for (const { when } of Object.values(meanings) as { when: string }[]) expect(when).toMatch(/^[A-Z].*\.$/);
  });
});
