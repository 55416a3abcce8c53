import { describe, expect, it } from 'vitest';
import { customResourceDefinitionOf } from '../../src/api/kubevirt/custom-kind.ts';
import { KUBEVIRT_CRDS, KUBEVIRT_KINDS } from '../../src/api/kubevirt/crds.ts';
import { NOT_ACTED_ON } from '../../src/api/kubevirt/kept-fields.ts';
import type { Schema } from '../../src/api/schema.ts';
import {
  SUBRESOURCE_GROUP,
  SUBRESOURCE_VERSIONS,
  SUBRESOURCES,
  verbOf,
} from '../../src/extension/subresources/group.ts';
import { type Field, fieldRow, fieldsOf, placesOf, schemaOf } from './api-fields.ts';

/** docs/api.md is what the schemas say that the server serves; `kubectl explain` says the same. */

const PAGE = '../../docs/api.md';
const INTRODUCTION = `# API

This page is made from the schemas that the server serves: \`npx vitest run test/docs/api-page.test.ts -u\` writes it anew,
and a test fails where it is not what they say. \`kubectl explain vmim.spec.priority\` says the same, and
\`kubectl explain vm --recursive\` shows all of a kind.

- All kinds have \`apiVersion\`, \`kind\` and Kubernetes' \`metadata\`. Groups, names and fields are KubeVirt's; what is ours in
  addition is in [compatibility.md](compatibility.md).
- **Required** is what the schema asks for. What is left out and has a default gets it where the description says so; that of a
  machine and its guest is filled in when they are created ([guests.md](guests.md)). Further rules are told when they are broken, by field.
- A quantity is a number with a unit, such as \`2Gi\` or \`500m\`; a time is RFC 3339, such as \`2026-01-31T12:00:00Z\`.
- \`[]\` is each item of a list, \`{}\` each value of a map. An object that is kept is
  stored as it is written; only some of its fields are looked at, or none.
- Status is written by controllers and agents, each by its own rights ([nodes.md](nodes.md)), through the subresource \`status\`.
- The rest of the API is Kubernetes' own: [compatibility.md](compatibility.md) lists it.
`;

/** Where a shape that several kinds have is told in full: the first of these that has it. */
const TELLERS = ['KubeVirt', 'MigrationPolicy', 'VirtualMachineInstance', 'VirtualMachineInstanceMigration'];
/** A field with so many below it has a table of its own, folded. */
const OWN_TABLE_FROM = 8;

const schemas = new Map(KUBEVIRT_KINDS.map((kind) => [kind.kind, schemaOf(customResourceDefinitionOf(kind))]));
const inTellingOrder = [...TELLERS, ...[...schemas.keys()].filter((kind) => !TELLERS.includes(kind))];
const places = placesOf(inTellingOrder.map((kind) => [kind, schemas.get(kind) as Schema]));

function tables(fields: readonly Field[]): string[] {
  const shown: Field[] = [];
  const folded: string[] = [];
  for (const field of fields) {
    shown.push(field);
    const size = field.below.length;
    if (size >= OWN_TABLE_FROM) folded.push(...fold(field));
    else shown.push(...field.below);
  }
  return [
    '| field | type | |',
    '|---|---|---|',
    ...shown.map((field) => fieldRow(field, remarkOf(field))),
    '',
    ...folded,
  ];
}

/** Only guests have such fields, and what they are made from. */
function remarkOf({ path }: Field): string {
  return NOT_ACTED_ON.some((each) => `spec.${each}` === path) ? 'Kept, but nothing acts on it here.' : '';
}

function fold(field: Field): string[] {
  return [
    `<details><summary><code>${field.path}</code> – ${field.schema.description ?? ''}</summary>`,
    '',
    ...tables(field.children),
    '</details>',
    '',
  ];
}

function section(kind: (typeof KUBEVIRT_KINDS)[number]): string[] {
  const { group, version, olderVersions = [], plural, scope, shortNames, columns } = kind;
  const fields = fieldsOf(kind.kind, schemas.get(kind.kind) as Schema, places);
  const older = olderVersions.map((each) => `, and \`${group}/${each}\` (deprecated)`).join('');
  const short = shortNames.length > 0 ? ` (${shortNames.map((name) => `\`${name}\``).join(', ')})` : '';
  const shown = columns.map(({ name, priority = 0 }) => (priority > 0 ? `${name} (wide)` : name));
  return [
    `## ${kind.kind}`,
    '',
    kind.description,
    '',
    `\`${group}/${version}\`${older}, \`${plural}\`${short}, ${scope === 'Cluster' ? 'of the whole cluster' : 'in a namespace'}${kind.hasStatus ? ', with the subresource `status`' : ''}.`,
    ...(shown.length > 0 ? [`Columns of \`kubectl get\`: ${shown.join(', ')}.`] : []),
    '',
    ...fields
      .filter(({ path }) => !['apiVersion', 'kind', 'metadata'].includes(path))
      .flatMap((field) => [
        `**\`${field.path}\`** – ${field.schema.description ?? ''}`,
        '',
        ...(field.children.length > 0 ? tables(field.children) : []),
      ]),
  ];
}

function subresourceRows(): string[] {
  return SUBRESOURCES.map((each) => {
    const { resource, subresource, method, description, body = {}, query = {} } = each;
    const fields = [
      ...Object.entries(body).map(([field, what]) => `\`${field}\`: ${what}`),
      ...Object.entries(query).map(([field, what]) => `\`?${field}=\`: ${what}`),
    ];
    return `| \`${method} …/${resource}/NAME/${subresource}\` | \`${verbOf(each)}\` | ${description} | ${fields.join('<br>')} |`;
  });
}

const SUBRESOURCES_SECTION = `## Subresources

\`/apis/${SUBRESOURCE_GROUP}/${SUBRESOURCE_VERSIONS[0]}/namespaces/NAMESPACE/…\` is an aggregated API, as in KubeVirt
(\`${SUBRESOURCE_VERSIONS[1]}\` is still answered). Bodies are JSON or YAML, and may be left out. \`dryRun: ["All"]\` in the body, or
\`?dryRun=All\`, changes nothing. The verb is what a role has to allow for \`RESOURCE/SUBRESOURCE\` of the group
\`${SUBRESOURCE_GROUP}\`. Answers: 200 or 202 without a body, unless it says otherwise; else a Status with the reason.

| request | verb | what it does | body and query |
|---|---|---|---|
`;

describe('the API', () => {
  it('is on its page', async () => {
    const names = KUBEVIRT_KINDS.map(
      ({ kind, group, version, description }) =>
        `| [${kind}](#${kind.toLowerCase()}) | \`${group}/${version}\` | ${description} |`,
    );
    const page = [
      INTRODUCTION,
      '| kind | | |',
      '|---|---|---|',
      ...names,
      `| [Subresources](#subresources) | \`${SUBRESOURCE_GROUP}/${SUBRESOURCE_VERSIONS[0]}\` | What can be done with machines and guests besides reading and writing them. |`,
      '',
      ...KUBEVIRT_KINDS.flatMap(section),
      `${SUBRESOURCES_SECTION}${subresourceRows().join('\n')}`,
    ].join('\n');
    await expect(`${page.trimEnd()}\n`).toMatchFileSnapshot(PAGE);
  });

  it('is that of the definitions which are applied', () => {
    expect(KUBEVIRT_CRDS.map((definition) => schemaOf(definition))).toEqual([...schemas.values()]);
  });

  it.each([...schemas])('describes each field of %s', (kind, schema) => {
    const undescribed = (fields: readonly Field[]): string[] =>
      fields.flatMap((field) => [
        ...(field.schema.description ? [] : [field.path]),
        ...undescribed(field.children.filter(() => field.path !== 'metadata')),
      ]);
    expect(undescribed(fieldsOf(kind, schema, new Map())).filter((path) => path !== 'metadata')).toEqual([]);
  });
});
