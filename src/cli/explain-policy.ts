import { unreachable } from '../api/unreachable.ts';
import type { Env } from '../env/ports.ts';
import type { PolicyExplanation } from '../extension/subresources/explain-policy.ts';
import type { Change } from '../migration/policies/counterfactuals.ts';
import type { Origin } from '../migration/policies/options.ts';
import type { OutputFormat } from './cluster-options.ts';
import { printValue } from './print-value.ts';
import { ask, type ClusterOptions, subresourcePath, wholeText, withCluster } from './cluster-connection.ts';

export interface ExplainOptions extends ClusterOptions {
  readonly output?: OutputFormat;
}

/** Asks which policy holds for a machine, and prints the answer. */
export async function explainPolicy(
  name: string,
  options: ExplainOptions,
  env: Env,
  print: (line: string) => void,
): Promise<void> {
  const told = await withCluster(options, env, async (connection) => {
    const path = subresourcePath(connection.namespace, 'virtualmachines', name, 'migrationpolicy');
    const response = await ask(connection, 'GET', path, { signal: new AbortController().signal });
    return JSON.parse(await wholeText(response.body)) as PolicyExplanation;
  });
  if (!printValue(told, options.output, print)) for (const line of explanationLines(told)) print(line);
}

/** An explanation for people. */
export function explanationLines(told: PolicyExplanation): string[] {
  return [
    ...headLines(told),
    ...section(
      'These match too, and lost:',
      told.beaten.map(({ policy, message }) => [policy, message]),
    ),
    ...section(
      'Options:',
      told.options.map(({ option, value, origin }) => [option, textOf(value), originText(origin)]),
    ),
    ...section(
      'Without effect:',
      told.ignored.map(({ message }) => [message]),
    ),
    ...section('What would change the policy:', told.changes.map(changeCells)),
  ];
}

function headLines({ metadata, policy, labelsOf, matchedLabels }: PolicyExplanation): string[] {
  const machine = `${metadata.namespace}/${metadata.name}`;
  const labels = matchedLabels.map(({ owner, key, value, isAnyValue }) => {
    const wanted = isAnyValue ? 'any value will do' : 'with this value';
    return [`${key}=${value}`, `of the ${ownerText(owner)}, ${wanted}`];
  });
  const isStopped = labelsOf === 'VirtualMachine' ? ['It does not run: the labels are those of its template.'] : [];
  if (policy === undefined)
    return [`No policy holds for ${machine}: the configuration of the cluster alone counts.`, ...isStopped];
  return [
    `The policy ${policy} holds for ${machine}.`,
    ...isStopped,
    ...(labels.length > 0 ? section('It asks for:', labels) : ['It asks for no labels, and is for every machine.']),
  ];
}

function originText(origin: Origin): string {
  if (origin.from === 'Policy') return `policy ${origin.policy}`;
  if (origin.from === 'Following') return `as ${origin.option} (${originText(origin.set)})`;
  return origin.from === 'Configuration' ? 'configuration of the cluster' : 'default';
}

function changeCells(change: Change): string[] {
  const outcome = change.winner === undefined ? 'no policy' : `policy ${change.winner}`;
  switch (change.kind) {
    case 'DeletePolicy':
      return [`without the policy ${change.policy}`, outcome];
    case 'RemoveLabel':
      return [`without the label ${change.key} of the ${ownerText(change.owner)}`, outcome];
    case 'SetLabel': {
      const label = change.value === undefined ? `${change.key}, of any value,` : `${change.key}=${change.value}`;
      return [`with the label ${label} of the ${ownerText(change.owner)}`, outcome];
    }
    default:
      return unreachable(change);
  }
}

function ownerText(owner: 'VirtualMachineInstance' | 'Namespace'): string {
  return owner === 'Namespace' ? 'namespace' : 'machine';
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Rows below a title, in columns; nothing where there are no rows. */
function section(title: string, rows: readonly (readonly string[])[]): string[] {
  if (rows.length === 0) return [];
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)));
  return [
    '',
    title,
    ...rows.map((row) => `  ${row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join('  ')}`.trimEnd()),
  ];
}
