import { CONTROLLER_IDENTITY } from '../../control/installation/rights.ts';
import { EXTENSION_IDENTITY } from '../../extension/identity.ts';
import { NODES_GROUP } from '../../machinery/node-user.ts';
import { SYNCHRONIZATION_IDENTITY } from '../../sync/rights.ts';

/** docs/kubernetes-rights.md: what each component may do, as an API server answers it, whatever the roles are made of. */

export interface Who {
  readonly user: string;
  readonly groups: readonly string[];
}

export interface Component extends Who {
  readonly title: string;
}

/** As in the status of a SelfSubjectRulesReview. */
export interface Rule {
  readonly verbs: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
}

/** What somebody may do with one resource. */
export interface Right {
  /** The component's user, or the group that all of it are in. */
  readonly holder: string;
  /** A namespace, or `EVERYWHERE`. */
  readonly where: string;
  readonly group: string;
  /** With its subresource, where there is one. */
  readonly resource: string;
  /** Of these objects alone; of all where there are none. */
  readonly names: readonly string[];
  readonly verbs: readonly string[];
}

/** Asks an API server what somebody may do in a namespace. */
export type AskRules = (who: Who, namespace: string) => Promise<readonly Rule[]>;

const ACCOUNTS = ['system:serviceaccounts', 'system:serviceaccounts:kubevirt'];
export const COMPONENTS: readonly Component[] = [
  { title: 'The controllers', ...CONTROLLER_IDENTITY },
  { title: 'The extension: webhooks and subresources', ...EXTENSION_IDENTITY },
  { title: 'The synchronization controller', ...SYNCHRONIZATION_IDENTITY },
  {
    title: 'Agents before they have joined, where they are pods',
    user: 'system:serviceaccount:kubevirt:kubevirt-agent',
    groups: ACCOUNTS,
  },
];
// By group alone: what the Node authorizer lets a node do depends on its pods, and is no list.
const AGENT: Component = {
  title: 'Agents, besides what every node may do',
  user: 'an-agent',
  groups: [NODES_GROUP],
};
export const EVERYWHERE = 'everywhere';

const INTRODUCTION = `# What each component may do on a cluster

This page is made by asking an API server on which \`godwit manifests\` is installed: \`npx vitest run src/cli/manifests -u\`
writes it anew, and a test fails where it is not what the server answers; \`test/kubernetes/install\` asks kube-apiserver. What
everybody may do who is authenticated is left out. \`kubevirt\` and \`kube-system\` are namespaces: what is said there goes for them alone.
\`npm run test:kubernetes\` fails where none of its suites has used one of these rights; the few that none can use have their reason in
\`test/kubernetes/rights-used.test.ts\`.
`;

/** The page, by the word of an API server. */
export async function rightsPage(ask: AskRules): Promise<string> {
  const sections: string[] = [];
  for (const [who, rights] of await rightsOfComponents(ask)) {
    const name = who === AGENT ? `the group \`${NODES_GROUP}\`` : `\`${who.user}\``;
    sections.push(`## ${who.title}`, '', `As ${name}.`, '', '| where | group | what | verbs |', '|---|---|---|---|');
    sections.push(...rights.map((right) => `| ${right.where} | ${lineOf(right)} |`), '');
  }
  return `${[INTRODUCTION, ...sections].join('\n').trimEnd()}\n`;
}

/** What each component may do, by the word of an API server, in the order of the page. */
export async function rightsOfComponents(ask: AskRules): Promise<ReadonlyMap<Component, readonly Right[]>> {
  const linesFor = async (who: Who, namespace: string): Promise<Map<string, Grant>> =>
    new Map((await ask(who, namespace)).flatMap(grantsOf).map((grant) => [lineOf(grant), grant]));
  const everywhere = 'a-namespace-of-nobody';
  const shared = await linesFor({ user: 'somebody', groups: ['system:serviceaccounts'] }, everywhere);
  const components = new Map<Component, readonly Right[]>();
  for (const who of [...COMPONENTS, AGENT]) {
    const holder = who === AGENT ? NODES_GROUP : who.user;
    const cluster = await linesFor(who, everywhere);
    const rights = besides(cluster, shared).map((grant) => ({ holder, where: EVERYWHERE, ...grant }));
    for (const where of ['kubevirt', 'kube-system']) {
      const own = besides(await linesFor(who, where), shared, cluster);
      rights.push(...own.map((grant) => ({ holder, where, ...grant })));
    }
    components.set(who, rights);
  }
  return components;
}

type Grant = Omit<Right, 'holder' | 'where'>;

/** Those that none of the others has, in the order of their lines. */
function besides(grants: ReadonlyMap<string, Grant>, ...others: readonly ReadonlyMap<string, Grant>[]): Grant[] {
  const lines = [...grants.keys()].filter((line) => !others.some((other) => other.has(line))).toSorted();
  return lines.flatMap((line) => grants.get(line) ?? []);
}

/** One for each resource, so that two lists can be compared. */
function grantsOf({ verbs, apiGroups = [], resources = [], resourceNames: names = [] }: Rule): Grant[] {
  return apiGroups.flatMap((group) => resources.map((resource) => ({ group, resource, names, verbs })));
}

function lineOf({ group, resource, names, verbs }: Grant): string {
  const what = names.length > 0 ? `${resource} ${names.join(', ')}` : resource;
  return `${group === '' ? 'core' : group} | ${what} | ${verbs.join(', ')}`;
}
