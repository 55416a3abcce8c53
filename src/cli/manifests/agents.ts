import { AGENT_DIRECTORY } from '../../api/kubevirt/launcher-container.ts';
import { GUESTS_ONLY } from '../../api/kubevirt/node-labels.ts';
import { SYSTEM_NAMESPACE } from '../../api/kubevirt/well-known.ts';
import type { KubeObject } from '../../api/meta.ts';
import { NODES_GROUP } from '../../machinery/node-user.ts';
import { TOKEN_GROUP } from '../bootstrap-tokens.ts';
import { metadataOf } from './deployments.ts';
import type { OpenSettings } from './settings.ts';

/**
 * Agents: who may become one, and the DaemonSet that runs one on each machine that is chosen for guests. Usually each is a node of
 * its own beside that of the machine's kubelet, and the machine's guests are its pod's processes: whoever deletes the pod ends them.
 * So the pods are replaced only by those who delete them, and nothing probes them to death. Those that serve the kubelet's node
 * (`--kubelet`, which wins over what is said here) have guests that are pods themselves; pure.
 */

export const AGENTS = 'virt-handler';
/** Not one of `godwit-…`, which may do what users may not: it is there to become a node, and has no other rights. */
const ACCOUNT = 'kubevirt-agent';
const RBAC = 'rbac.authorization.k8s.io';
const MIN_READY_SECONDS = 10;

/**
 * Who may ask to become a node: agents that are pods, each of which an admin approves, since all of them have one account, and
 * a request may be for any name; and whoever has a token that `godwit token create` made, which has an end and so needs no
 * approval. Nodes may renew, as clusters that kubeadm made let them already. Those clusters let kubeadm's tokens join; where
 * an admin has taken that back, it stays so.
 */
export function bootstrapRights(): KubeObject[] {
  const account = { kind: 'ServiceAccount', name: ACCOUNT, namespace: SYSTEM_NAMESPACE };
  const tokens = { kind: 'Group', apiGroup: RBAC, name: TOKEN_GROUP };
  const nodes = { kind: 'Group', apiGroup: RBAC, name: NODES_GROUP };
  const automatic = 'system:certificates.k8s.io:certificatesigningrequests';
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: metadataOf(ACCOUNT, AGENTS) },
    binding('godwit:node-bootstrapper', 'system:node-bootstrapper', [account, tokens]),
    binding('godwit:node-bootstrapper:approve', `${automatic}:nodeclient`, [tokens]),
    binding('godwit:node-renewal', `${automatic}:selfnodeclient`, [nodes]),
  ];
}

function binding(name: string, role: string, subjects: readonly object[]): KubeObject {
  return {
    apiVersion: `${RBAC}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: { name },
    roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: role },
    subjects,
  };
}

/** The agents' DaemonSet. */
export function agents(settings: OpenSettings): KubeObject {
  const metadata = metadataOf(AGENTS);
  return {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata,
    spec: {
      selector: { matchLabels: { 'kubevirt.io': AGENTS } },
      updateStrategy: settings.agent.updateStrategy,
      // One that ends again at once is not taken for one that works: a bad update stops at the first node.
      minReadySeconds: MIN_READY_SECONDS,
      template: { metadata: { labels: metadata.labels }, spec: podSpec(settings) },
    },
  };
}

function podSpec(settings: OpenSettings): object {
  const { agent: own, logLevel } = settings;
  const options = {
    name: '$(NODE_NAME)-guests',
    address: '$(HOST_IP)',
    'data-dir': AGENT_DIRECTORY,
    'log-level': logLevel,
    'register-with-taints': `${GUESTS_ONLY}=true:NoSchedule`,
  };
  return {
    serviceAccountName: ACCOUNT,
    priorityClassName: 'system-node-critical',
    imagePullSecrets: settings.imagePullSecrets,
    nodeSelector: own.nodeSelector,
    // Whatever drives others off a machine, its guests are the last to go: only an agent can move them away.
    tolerations: [{ operator: 'Exists' }],
    // Guests come and go by the machine's own addresses, as the cluster's network reaches no QEMU.
    hostNetwork: true,
    hostPID: own.hostPID,
    dnsPolicy: 'ClusterFirstWithHostNet',
    containers: [
      {
        name: AGENTS,
        image: settings.image,
        imagePullPolicy: settings.imagePullPolicy,
        // By the address of the API server's Service: names of Services are for clusters whose DNS is up already.
        command: ['godwit', 'agent', '--bootstrap-pod', ...flagsOf(options)],
        args: own.arguments,
        env: [field('NODE_NAME', 'spec.nodeName'), field('HOST_IP', 'status.hostIP')],
        resources: own.resources,
        // For /dev/kvm, /dev/net/tun and bridges. Its guests have none of its rights: QEMU runs as nobody.
        securityContext: { privileged: true, runAsUser: 0 },
        volumeMounts: [{ name: 'data', mountPath: AGENT_DIRECTORY, mountPropagation: 'HostToContainer' }],
      },
    ],
    volumes: [{ name: 'data', hostPath: { path: AGENT_DIRECTORY, type: 'DirectoryOrCreate' } }],
  };
}

function flagsOf(options: Readonly<Record<string, unknown>>): unknown[] {
  return Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
}

function field(name: string, fieldPath: string): object {
  return { name, valueFrom: { fieldRef: { fieldPath } } };
}
