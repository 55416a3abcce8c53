import { stringify } from 'yaml';
import { SYSTEM_NAMESPACE } from '../../api/kubevirt/well-known.ts';
import type { KubeObject } from '../../api/meta.ts';
import { TRUST_OBJECTS } from '../../sync/trust/objects.ts';
import { YES } from '../boolean-arguments.ts';
import { VERSION } from '../version.ts';
import { AGENTS } from './agents.ts';
import { manifests, usualSettings } from './manifests.ts';
import { PARTS } from './parts.ts';
import { GROUPS, type OpenSettings, Placeholder } from './settings.ts';
import { VALUES_SCHEMA } from './values-schema.ts';

/**
 * The Helm chart: the very objects of `godwit manifests`, with `{{ toJson .Values.… }}` wherever an admin may want something
 * else, and nothing else that would have to be understood. JSON is YAML, too, so this stands for text, numbers, lists and maps
 * alike; pure.
 */

/** Text of each file by its path within the chart. */
export type Chart = ReadonlyMap<string, string>;

/** The files of the chart. */
export function chart(): Chart {
  const { crds, ...rest } = manifests(openSettings());
  const templates = PARTS.filter((part): part is keyof typeof rest => part !== 'crds').map(
    (part) => [`templates/${part}.yaml`, template(rest[part])] as const,
  );
  return new Map([
    ['Chart.yaml', stringify(DESCRIPTION)],
    ['values.yaml', values()],
    ['values.schema.json', `${JSON.stringify(VALUES_SCHEMA, undefined, 2)}\n`],
    ['crds/crds.yaml', documents(crds)],
    ['templates/namespace-check.yaml', NAMESPACE_CHECK],
    ['templates/agents-check.yaml', AGENTS_CHECK],
    ['templates/NOTES.txt', NOTES],
    ...templates,
  ]);
}

/** The objects of a part as the chart has them: what uninstalling must not take away says so. */
export function chartObjects(objects: readonly KubeObject[]): KubeObject[] {
  return objects
    .filter(({ kind }) => kind !== 'Namespace')
    .map((object) => (isKept(object) ? { ...object, metadata: { ...object.metadata, annotations: KEEP } } : object));
}

/** YAML of several objects, in one text. */
export function documents(objects: readonly KubeObject[]): string {
  // Once through JSON: what is absent is absent, and no object is written as a reference to another.
  return objects.map((each) => stringify(JSON.parse(JSON.stringify(each)), { lineWidth: 0 })).join('---\n');
}

const DESCRIPTION = {
  apiVersion: 'v2',
  name: 'godwit',
  description: 'Live-migration control plane for virtual machines, API-compatible with KubeVirt',
  type: 'application',
  version: VERSION,
  appVersion: VERSION,
  kubeVersion: '>= 1.30.0-0',
};

const KEEP = { 'helm.sh/resource-policy': 'keep' };

/** Whom this cluster trusts, by which keys others trust it, and what the admin has configured. */
function isKept({ kind, metadata }: KubeObject): boolean {
  if (kind === 'KubeVirt') return true;
  return kind !== 'Role' && TRUST_OBJECTS.some((kept) => kept.kind === kind && kept.metadata.name === metadata.name);
}

/** There is one installation in a cluster, since its kinds are the cluster's, and its namespace has one name. */
const NAMESPACE_CHECK = `{{- if ne .Release.Namespace "${SYSTEM_NAMESPACE}" }}
{{- fail "install it with --namespace ${SYSTEM_NAMESPACE} --create-namespace: that is where its components look for each other" }}
{{- end }}
`;

/** A pattern for arguments, put together with blanks, among which a flag is: in any of the forms in which ours are read. */
function given(flag: string): string {
  return `(^| )${flag}(=(${YES.join('|')}))?( |$)`;
}

/**
 * Refuses values that do not go together, or not with the agents that run: guests would lose their power, have no agent, or not start.
 */
const AGENTS_CHECK = `{{- $isOnDelete := eq (.Values.agent.updateStrategy).type "OnDelete" }}
{{- $kubelet := "${given('--kubelet')}" }}
{{- $servesKubelets := regexMatch "${given('--kubelets')}" (join " " .Values.controllers.arguments) }}
{{- if not (regexMatch $kubelet (join " " .Values.agent.arguments)) }}
{{- if not $isOnDelete }}
{{- fail "agent.updateStrategy.type has to be OnDelete unless agent.arguments have --kubelet: guests are processes of the agents' pods, and lose their power where these are replaced" }}
{{- end }}
{{- else if not .Values.agent.hostPID }}
{{- fail "agent.hostPID has to be true where agent.arguments have --kubelet: agents see the guests in other pods by their processes" }}
{{- else if not (regexMatch "(^| )--name[ =]" (join " " .Values.agent.arguments)) }}
{{- fail "agent.arguments have to have --name, $(NODE_NAME) where they have --kubelet: the node of a kubelet is not called like one of an agent beside it" }}
{{- else if not $servesKubelets }}
{{- fail "controllers.arguments have to have --kubelets where agent.arguments have --kubelet: on the nodes of kubelets other launcher pods end without a guest" }}
{{- end }}
{{- range $pod := (lookup "v1" "Pod" "${SYSTEM_NAMESPACE}" "").items }}
{{- range $pod.spec.containers }}
{{- $isOfKubelet := regexMatch $kubelet (join " " .args) }}
{{- if and (eq .name "${AGENTS}") $isOfKubelet (not $servesKubelets) }}
{{- fail (printf "controllers.arguments have to have --kubelets while agents with --kubelet run, as %s: on their nodes other launcher pods end without a guest; docs/kubernetes.md says how nodes go back one by one" $pod.metadata.name) }}
{{- end }}
{{- if and (eq .name "${AGENTS}") (not $isOfKubelet) }}
{{- if not $isOnDelete }}
{{- fail (printf "agent.updateStrategy.type has to be OnDelete while pods of agents without --kubelet run, as %s: their guests lose their power where their pods are replaced; docs/kubernetes.md says how nodes go over one by one, and that of a host that is gone goes with its Node" $pod.metadata.name) }}
{{- end }}
{{- $node := dig "metadata" (dict) (lookup "v1" "Node" "" ($pod.spec.nodeName | default "none")) }}
{{- range $label, $value := $.Values.agent.nodeSelector }}
{{- if and $node (ne (toString (dig "labels" $label "" $node)) (toString $value)) }}
{{- fail (printf "agent.nodeSelector has to choose the node %s, where the agent %s runs (%s=%v is not its label): its guests lose their power where its pod is taken away; drain its node, take the label from the host by which it was chosen, and wait until the pod is gone, before" $node.name $pod.metadata.name $label $value) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
`;

/** What Helm prints once all is installed. */
const NOTES = `Godwit {{ .Chart.AppVersion }} is installed. docs/kubernetes.md says more of what follows.

Wait until it serves:
  kubectl -n ${SYSTEM_NAMESPACE} rollout status deployment virt-controller virt-api virt-synchronization-controller

Choose nodes for guests, look whose name their agents ask for, approve what is right, and see them become ready:
{{- range $label, $value := .Values.agent.nodeSelector }}
  kubectl label node NODE {{ $label }}={{ $value }}
{{- end }}
  kubectl get csr
  kubectl describe csr node-csr-…
  kubectl certificate approve node-csr-…
  kubectl get nodes -l kubevirt.io/schedulable=true

Create machines, whose images their nodes have to have (docs/tutorials/kubernetes.md):
  kubectl apply -f examples/shop.yaml
`;

const ORIGIN =
  '# Made from src/cli/manifests: see docs/kubernetes.md. `npx vitest run src/cli/manifests -u` writes it anew.\n';

function template(objects: readonly KubeObject[]): string {
  const text = documents(chartObjects(objects));
  const open = text.replaceAll(/"?<<([\w.]+)>>"?/g, (_, path: string) => `{{ toJson .Values.${path} }}`);
  return ORIGIN + open;
}

/** Everything that may be otherwise, left open. */
function openSettings(): OpenSettings {
  const settings = usualSettings();
  const open = (value: object, path = ''): object =>
    Object.fromEntries(Object.keys(value).map((key) => [key, new Placeholder(path + key)]));
  const groups = GROUPS.map((group) => [group, open(settings[group], `${group}.`)]);
  return { ...open(settings), ...Object.fromEntries(groups) } as OpenSettings;
}

const REMARKS: ReadonlyMap<string, string> = new Map([
  [
    'image',
    'One image for all components, launchers included. Nobody publishes it: docs/kubernetes.md says how you make one.',
  ],
  [
    'tolerations',
    'Of all components but agents, which tolerate everything. They may run on nodes of control planes, which may be the only kubelets.',
  ],
  ['controllers', 'Of the controllers: one works, the others wait for its lease.'],
  ['extension', 'Webhooks and subresources.kubevirt.io: all replicas serve.'],
  [
    'synchronization',
    'Migrations to and from other clusters; 0 replicas where there are none. arguments: ["--advertise", "HOST:PORT"] says\nwhere others reach it.',
  ],
  [
    'agent',
    'On machines that are chosen for guests. arguments: ["--memory", "64Gi"] leaves the rest of the memory to the kubelet.\nGuests are processes of the pod of their agent, and lose their power with it: so updateStrategy stays OnDelete, and a node is drained before\nanother nodeSelector, or the loss of its label, takes its agent away. Where guests run in containers of kubelets they go on;\ndocs/kubernetes.md says what else is to be set there.',
  ],
  [
    'configuration',
    'spec.configuration of the KubeVirt object: feature gates, migrations with their limits and ports.',
  ],
]);

function values(): string {
  return Object.entries(usualSettings())
    .map(([key, value]) => {
      const remark = REMARKS.get(key);
      const comment = remark === undefined ? '' : `${remark.replaceAll(/^/gm, '# ')}\n`;
      return `${comment}${stringify({ [key]: value as unknown }, { lineWidth: 0, aliasDuplicateObjects: false })}`;
    })
    .join('');
}
