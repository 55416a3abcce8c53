import { CONTROLLER_IDENTITY } from '../../control/installation/rights.ts';
import { EXTENSION_IDENTITY } from '../../extension/identity.ts';
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
  groups: ['system:nodes'],
};

const INTRODUCTION = `# What each component may do on a cluster

This page is made by asking an API server on which \`godwit manifests\` is installed: \`npx vitest run src/cli/manifests -u\`
writes it anew, and a test fails where it is not what the server answers; \`test/kubernetes/install\` asks kube-apiserver. What
everybody may do who is authenticated is left out. \`kubevirt\` and \`kube-system\` are namespaces: what is said there goes for them alone.
`;

/** The page, by the word of an API server. */
export async function rightsPage(ask: AskRules): Promise<string> {
  const linesFor = async (who: Who, namespace: string): Promise<string[]> =>
    (await ask(who, namespace)).flatMap(linesOf);
  const everywhere = 'a-namespace-of-nobody';
  const shared = new Set(await linesFor({ user: 'somebody', groups: ['system:serviceaccounts'] }, everywhere));
  const sections: string[] = [];
  for (const who of [...COMPONENTS, AGENT]) {
    const cluster = (await linesFor(who, everywhere)).filter((line) => !shared.has(line));
    const rows = [...new Set(cluster)].toSorted().map((line) => `| everywhere | ${line} |`);
    for (const namespace of ['kubevirt', 'kube-system']) {
      const own = (await linesFor(who, namespace)).filter((line) => !shared.has(line) && !cluster.includes(line));
      rows.push(...[...new Set(own)].toSorted().map((line) => `| ${namespace} | ${line} |`));
    }
    const name = who === AGENT ? 'the group `system:nodes`' : `\`${who.user}\``;
    sections.push(`## ${who.title}`, '', `As ${name}.`, '', '| where | group | what | verbs |', '|---|---|---|---|');
    sections.push(...rows, '');
  }
  return `${[INTRODUCTION, ...sections].join('\n').trimEnd()}\n`;
}

/** One for each resource, so that two lists can be compared. */
function linesOf({ verbs, apiGroups = [], resources = [], resourceNames = [] }: Rule): string[] {
  const names = resourceNames.length > 0 ? ` ${resourceNames.join(', ')}` : '';
  return apiGroups.flatMap((group) =>
    resources.map((resource) => `${group === '' ? 'core' : group} | ${resource}${names} | ${verbs.join(', ')}`),
  );
}
