import { readFileSync } from 'node:fs';
import { parser } from '@prometheus-io/lezer-promql';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { DescribedMetric } from '../../src/kube/metrics.ts';
import { anchorsIn } from '../docs/page.ts';
import { metricsOfProcesses } from '../support/process-metrics.ts';

/**
 * Alert rules and the dashboard ask for nothing that is not there, and are sentences by the grammar of Prometheus' own editor. No
 * Prometheus is run: whether an expression means what its alert says is for whoever reads it.
 */

interface Rule {
  readonly alert?: string;
  readonly record?: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly targets?: readonly { readonly expr: string }[];
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
}

const read = (name: string): string => readFileSync(new URL(`../../monitoring/${name}`, import.meta.url), 'utf8');
const { groups } = parse(read('alerts.yaml')) as { readonly groups: readonly { readonly rules: readonly Rule[] }[] };
const { panels } = JSON.parse(read('dashboard.json')) as { readonly panels: readonly Panel[] };
const RUNBOOKS = anchorsIn(readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8'));
const rules = groups.flatMap((group) => group.rules);
const alerts = rules.filter(({ alert }) => alert !== undefined);
const queries = [
  ...rules.map(({ alert, record, expr }) => ({ of: alert ?? record ?? '', expr })),
  ...panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ of: title, expr }))),
];

/** What Prometheus adds to every series. */
const TARGET_LABELS = ['instance', 'job'];
const HISTOGRAM_ENDINGS = /_(?:bucket|sum|count)$/;

interface Selector {
  readonly metric: string;
  readonly labels: readonly string[];
}

/** What an expression asks for; `broken` where it is none. */
function lookAt(expr: string): { selectors: Selector[]; groupings: string[]; isBroken: boolean } {
  const selectors: { metric: string; labels: string[] }[] = [];
  const groupings: string[] = [];
  let isBroken = false;
  let isGrouping = false;
  parser.parse(expr).iterate({
    enter: ({ name, type, from, to }) => {
      const text = expr.slice(from, to);
      if (type.isError) isBroken = true;
      else if (name === 'VectorSelector') selectors.push({ metric: '', labels: [] });
      else if (name === 'GroupingLabels') isGrouping = true;
      else if (name === 'LabelName' && isGrouping) groupings.push(text);
      const last = selectors.at(-1);
      if (last && name === 'Identifier') last.metric = text;
      else if (last && name === 'LabelName' && !isGrouping) last.labels.push(text);
    },
    leave: ({ name }) => {
      if (name === 'GroupingLabels') isGrouping = false;
    },
  });
  return { selectors, groupings, isBroken };
}

describe('rules and the dashboard', async () => {
  const metrics = new Map<string, DescribedMetric>();
  for (const each of [...(await metricsOfProcesses()).values()].flat()) metrics.set(each.name, each);

  /** The labels of the series of a name; undefined where there is no such series. */
  function labelsOf(name: string): readonly string[] | undefined {
    const histogram = metrics.get(name.replace(HISTOGRAM_ENDINGS, ''));
    if (HISTOGRAM_ENDINGS.test(name) && histogram?.type === 'histogram')
      return [...histogram.labels, ...(name.endsWith('_bucket') ? ['le'] : []), ...TARGET_LABELS];
    const metric = metrics.get(name);
    return metric && metric.type !== 'histogram' ? [...metric.labels, ...TARGET_LABELS] : undefined;
  }

  it.each(queries)('$of asks for series that there are, in words that Prometheus knows', ({ expr }) => {
    const { selectors, groupings, isBroken } = lookAt(expr);
    expect(isBroken).toBe(false);
    expect(selectors).not.toEqual([]);
    for (const { metric, labels } of selectors) {
      expect(metrics.size > 0 && labelsOf(metric), metric).toBeDefined();
      for (const label of [...labels, ...groupings]) expect(labelsOf(metric), metric).toContain(label);
    }
  });

  it.each(alerts)('$alert says how bad it is, what is wrong and what to do', ({ alert, expr, labels, annotations }) => {
    expect(alert).toMatch(/^Godwit[A-Z]/);
    expect(['critical', 'warning', 'info']).toContain(labels?.['severity']);
    const { summary = '', description = '', runbook = '' } = annotations ?? {};
    expect(summary).toMatch(/^[A-Z].*[^.]$/);
    expect(description).toMatch(/\.$/);
    const [page, anchor = ''] = runbook.split('#');
    expect(page).toBe('docs/operations.md');
    expect(RUNBOOKS).toContain(anchor);
    const named = [...description.matchAll(/\$labels\.(\w+)/g)].map(([, label]) => label);
    const { selectors, groupings } = lookAt(expr);
    const known = selectors.flatMap(({ metric }) => labelsOf(metric) ?? []);
    const kept = expr.includes('by (') ? groupings : known;
    for (const label of named) expect(kept).toContain(label);
  });

  it('name each alert once', () => {
    const names = rules.map(({ alert, record }) => alert ?? record);
    expect(new Set(names).size).toBe(names.length);
  });

  it('show nothing upon something else', () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const isUpon = ({ gridPos: a }: Panel, { gridPos: b }: Panel): boolean =>
      a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
    const wrong = panels.filter((panel, index) => panels.slice(0, index).some((other) => isUpon(panel, other)));
    expect(wrong.map(({ title }) => title)).toEqual([]);
    expect(panels.filter(({ gridPos: { x, w } }) => x + w > 24)).toEqual([]);
  });
});
