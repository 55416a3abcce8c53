type Labels = { readonly [key: string]: string };

/** Domains whose labels are Kubernetes' own: workloads may be kept to nodes by them, so nodes do not choose them. */
const KUBERNETES_DOMAINS = ['kubernetes.io', 'k8s.io'];

/** Of those, what a node has always said of itself. */
const NODE_LABELS: ReadonlySet<string> = new Set([
  'kubernetes.io/hostname',
  'kubernetes.io/os',
  'kubernetes.io/arch',
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/arch',
  'beta.kubernetes.io/instance-type',
  'node.kubernetes.io/instance-type',
  'topology.kubernetes.io/region',
  'topology.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
]);
const NODE_DOMAINS = ['kubelet.kubernetes.io', 'node.kubernetes.io'];

/** Those of the labels in which two states of a Node differ that the node itself may neither set, change nor remove. */
export function forbiddenLabels(labels: Labels, old: Labels): string[] {
  const all = new Set([...Object.keys(labels), ...Object.keys(old)]);
  return [...all].filter((key) => valueOf(labels, key) !== valueOf(old, key) && isForbidden(key)).sort();
}

function valueOf(labels: Labels, key: string): string | undefined {
  return Object.hasOwn(labels, key) ? labels[key] : undefined;
}

/** Labels of `node-restriction.kubernetes.io` are there for exactly this: to be no node's own. */
function isForbidden(key: string): boolean {
  const slash = key.indexOf('/');
  const domain = slash < 0 ? '' : key.slice(0, slash);
  if (!KUBERNETES_DOMAINS.some((each) => isWithin(domain, each))) return false;
  return !NODE_LABELS.has(key) && !NODE_DOMAINS.some((each) => isWithin(domain, each));
}

function isWithin(domain: string, parent: string): boolean {
  return domain === parent || domain.endsWith(`.${parent}`);
}
