import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { customResourceDefinitionOf } from '../../src/api/kubevirt/custom-kind.ts';
import { ALWAYS_ON, FEATURE_GATES, WITHOUT_EFFECT } from '../../src/api/kubevirt/feature-gates.ts';
import { kubeVirt } from '../../src/api/kubevirt/kube-virt.ts';
import { installation } from '../../src/control/installation/install.ts';
import { type Field, fieldRow, fieldsOf, schemaOf } from './api-fields.ts';
import { DIRECTORIES, ENVIRONMENT, OBJECTS, PORTS, PORTS_BETWEEN_CLUSTERS, READERS, TOLD_ONCE } from './settings.ts';

/** docs/configuration.md has every setting: fields, gates and variables are those of the code. */

const PAGE = '../../docs/configuration.md';
const SOURCES = fileURLToPath(new URL('../../src', import.meta.url));

const fields = fieldsOf('KubeVirt', schemaOf(customResourceDefinitionOf(kubeVirt)), new Map());

/** The settings: what has nothing below it, or only what is kept. */
function leaves(all: readonly Field[]): Field[] {
  return all.flatMap((field) => (field.children.length > 0 ? leaves(field.children) : [field]));
}

const settings = leaves(fields.filter(({ path }) => path === 'spec'));

/** Who reads a field: by its own path, or that of what it is in. */
function readersOf(path: string): string | undefined {
  const [found] = Object.entries(READERS)
    .filter(([each]) => path === each || path.startsWith(`${each}.`))
    .toSorted(([one], [other]) => other.length - one.length);
  return found?.[1];
}

function settingRow(field: Field): string {
  return `${fieldRow(field)} ${readersOf(field.path) ?? ''} |`;
}

const initialGates = (): readonly string[] => {
  const [configuration] = installation({ ours: [], initial: [] }).initial as unknown as {
    spec: { configuration: { developerConfiguration: { featureGates: string[] } } };
  }[];
  return configuration?.spec.configuration.developerConfiguration.featureGates ?? [];
};

function gateRow([name, { stage, description }]: [string, { stage: string; description: string }]): string {
  const isOn = stage === 'Beta' || initialGates().includes(name);
  return `| \`${name}\` | ${stage} | ${isOn ? 'on' : 'off'} | ${description} |`;
}

const names = (gates: ReadonlySet<string>): string => [...gates].map((gate) => `\`${gate}\``).join(', ');

const table = (head: string, rows: readonly (readonly string[])[]): string[] => [
  `| ${head} |`,
  `|${'---|'.repeat(head.split(' | ').length)}`,
  ...rows.map((row) => `| ${row.join(' | ')} |`),
  '',
];

const INTRODUCTION = `# Configuration

The lists of this page come from the code: \`npx vitest run test/docs/configuration-page.test.ts -u\` writes it anew, and a test
fails where it is not the same.

There is no configuration file. What holds for the whole cluster is in one object, the KubeVirt resource; what holds for some
guests is in [MigrationPolicies](api.md#migrationpolicy); what holds for one machine is in its own spec; what holds for a
process is on its [command line](commands.md).
`;

const CLUSTER = `## The cluster: the KubeVirt resource

\`kubectl edit kubevirt kubevirt -n kubevirt\`. A change holds at once, for migrations that have not been handed to agents; those
that have keep what they began with (\`status.migrationState.migrationConfiguration\`). Fields that are not listed are KubeVirt's,
kept, and not acted on. A new installation has \`network.defaultNetworkInterface: masquerade\` and the gates that are marked
below; from then on the object is yours.

| field | type | | read by |
|---|---|---|---|`;

const GATES = `### Feature gates

\`spec.configuration.developerConfiguration.featureGates\` switches on, \`disabledFeatureGates\` off; one that is in both is on. Alpha
is off unless it is switched on, Beta on unless it is switched off; "new" is how a new installation has it.

| gate | stage | new | what it does |
|---|---|---|---|`;

describe('the configuration', () => {
  it('is on its page', async () => {
    const page = [
      INTRODUCTION,
      CLUSTER,
      ...settings.map(settingRow),
      '',
      GATES,
      ...Object.entries(FEATURE_GATES).map(gateRow),
      '',
      `Always there, whatever is said of their gates: ${names(ALWAYS_ON)}.`,
      '',
      `KubeVirt's, without effect here (who sets one is warned): ${names(WITHOUT_EFFECT)}.`,
      '',
      '## Environment variables',
      '',
      ...table(
        'variable | read by | what it says',
        ENVIRONMENT.map(([name, ...rest]) => [`\`${name}\``, ...rest]),
      ),
      '## Ports',
      '',
      ...table('process | listens at | protocol, and how callers prove who they are | who dials', PORTS),
      'Agents of one cluster dial each other; where clusters are two, each source agent dials the target agent as well, whose address the halves tell.',
      'What a firewall between two clusters has to let through, from where guests are to where they go:',
      '',
      ...table('port | what for', PORTS_BETWEEN_CLUSTERS),
      '## The data directory',
      '',
      '`--data-dir`, or `GODWIT_DATA_DIR`, or `~/.godwit`. It is private, and one process holds it at a time. What has to be backed up, and how, is in [operations.md](operations.md).',
      '',
      ...table(
        'file or directory | what is in it | if it is lost',
        DIRECTORIES.map(([name, ...rest]) => [`\`${name}\``, ...rest]),
      ),
      '## Objects with settings or state of our own',
      '',
      ...table('object | what is in it', OBJECTS),
    ].join('\n');
    await expect(`${page.trimEnd()}\n`).toMatchFileSnapshot(PAGE);
  });

  it('is the only one that says which ports are taken', () => {
    const docs = fileURLToPath(new URL('../../docs', import.meta.url));
    const others = readdirSync(docs, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.md'));
    // The reference has the words of the schema, and an address is an example of one.
    const telling = others
      .filter((name) => !['configuration.md', 'api.md'].includes(name))
      .filter((name) => {
        const text = readFileSync(join(docs, name), 'utf8');
        return TOLD_ONCE.flatMap((range) => range.split(' to ')).some((port) =>
          new RegExp(`(?<!:)\\b${port}\\b`).test(text),
        );
      });
    expect(telling).toEqual([]);
  });

  it('says of each field who reads it', () => {
    expect(settings.map(({ path }) => path).filter((path) => readersOf(path) === undefined)).toEqual([]);
    const unknown = Object.keys(READERS).filter(
      (each) => !settings.some(({ path }) => path === each || path.startsWith(`${each}.`)),
    );
    expect(unknown).toEqual([]);
  });

  it('has the environment variables that the code reads, and no others', () => {
    const code = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts') && !name.endsWith('.fixture.ts'))
      .map((name) => readFileSync(join(SOURCES, name), 'utf8'))
      .join('\n');
    const read = [...code.matchAll(/(?:process\.env|environment)(?:\.|\[')([A-Z][A-Z0-9_]+)/g)].map(
      ([, name = '']) => name,
    );
    expect([...new Set(read)].toSorted()).toEqual(ENVIRONMENT.map(([name]) => name).toSorted());
  });
});
