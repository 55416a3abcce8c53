import type { ClusterOptions } from '../cluster-connection.ts';
import type { CommandNode, NamedKind, OptionNode } from './command-tree.ts';

/** Which names of the cluster can follow what was typed; pure. */

export interface WantedNames {
  readonly kinds: readonly NamedKind[];
  /** The cluster, and the namespace, as far as they were typed. */
  readonly cluster: ClusterOptions;
}

/** Options that name the cluster, or who asks it, by the field that they set. */
const CLUSTER_OPTIONS: ReadonlyMap<string, keyof ClusterOptions> = new Map([
  ['--kubeconfig', 'kubeconfig'],
  ['--context', 'context'],
  ['--data-dir', 'dataDir'],
  ['--namespace', 'namespace'],
  ['--as', 'as'],
  ['--as-uid', 'asUid'],
  ['--server', 'server'],
  ['--tls-server-name', 'tlsServerName'],
  ['--certificate-authority', 'certificateAuthority'],
  ['--token', 'token'],
  ['--client-certificate', 'clientCertificate'],
  ['--client-key', 'clientKey'],
  ['--cluster', 'cluster'],
  ['--user', 'user'],
]);

/** What is wanted after these words of a command line, without the program's own name; undefined for nothing. */
export function wantedNames(root: CommandNode, typed: readonly string[]): WantedNames | undefined {
  let node = root;
  const places: string[] = [];
  const texts = new Map<keyof ClusterOptions, string>();
  const asGroup: string[] = [];
  let insecureSkipTlsVerify = false;
  for (let at = 0; at < typed.length; at++) {
    const word = typed[at] ?? '';
    if (word.startsWith('-')) {
      const [name = '', value] = word.split(/=(.*)/s);
      const option = optionOf(root, node, name);
      insecureSkipTlsVerify ||= option?.long === '--insecure-skip-tls-verify' && value !== 'false';
      if (!option?.takesValue) continue;
      const field = CLUSTER_OPTIONS.get(option.long ?? '');
      if (value === undefined) at++;
      const said = value ?? typed[at];
      if (field !== undefined && said !== undefined) texts.set(field, said);
      if (option.long === '--as-group' && said !== undefined) asGroup.push(said);
      continue;
    }
    const child = places.length === 0 ? childOf(node, word) : undefined;
    if (child) node = child;
    else places.push(word);
  }
  const cluster: ClusterOptions = {
    ...(Object.fromEntries(texts) as ClusterOptions),
    ...(asGroup.length > 0 ? { asGroup } : {}),
    ...(insecureSkipTlsVerify ? { insecureSkipTlsVerify } : {}),
  };
  const [first, ...rest] = places;
  if (first === undefined) return node.names.length > 0 ? { kinds: node.names, cluster } : undefined;
  const kind = node.names.find((each) => each === first);
  return kind !== undefined && rest.length === 0 && node.words.includes(kind) ? { kinds: [kind], cluster } : undefined;
}

function childOf({ children }: CommandNode, word: string): CommandNode | undefined {
  return children.find(({ name, aliases }) => name === word || aliases.includes(word));
}

function optionOf(root: CommandNode, node: CommandNode, name: string): OptionNode | undefined {
  return [...node.options, ...root.options].find(({ long, short }) => long === name || short === name);
}

const NAME = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;

/** Each once, in order, of those that are names: shells expand the words that they are offered, and a server may say anything. */
export function offered(names: readonly string[]): readonly string[] {
  return [...new Set(names.filter((name) => NAME.test(name)))].sort();
}
