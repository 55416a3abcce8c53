import type { JsonObject, KubeObject } from '../../../meta.ts';
import { dnsLabelErrors } from '../../../names.ts';
import { formatQuantity, parseQuantity } from '../../../quantity.ts';
import { has, numberAt, objectAt, objectsAt, textAt } from '../fields.ts';

/** What whoever writes a pod should know, though it is taken: in kube-apiserver's words and order. */

const DEPRECATED_LABELS: ReadonlyMap<string, string> = new Map([
  ['beta.kubernetes.io/arch', 'deprecated since v1.14; use "kubernetes.io/arch" instead'],
  ['beta.kubernetes.io/os', 'deprecated since v1.14; use "kubernetes.io/os" instead'],
  ['failure-domain.beta.kubernetes.io/region', 'deprecated since v1.17; use "topology.kubernetes.io/region" instead'],
  ['failure-domain.beta.kubernetes.io/zone', 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead'],
  ['beta.kubernetes.io/instance-type', 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead'],
]);

const DEPRECATED_ANNOTATIONS: readonly (readonly [key: string, advice: string])[] = [
  ['scheduler.alpha.kubernetes.io/critical-pod', 'non-functional in v1.16+; use the "priorityClassName" field instead'],
  ['security.alpha.kubernetes.io/sysctls', 'non-functional in v1.11+; use the "sysctls" field instead'],
  ['security.alpha.kubernetes.io/unsafe-sysctls', 'non-functional in v1.11+; use the "sysctls" field instead'],
];

const DEPRECATED_VOLUMES: readonly (readonly [source: string, advice: string])[] = [
  ['photonPersistentDisk', 'deprecated in v1.11, non-functional in v1.16+'],
  ['gitRepo', 'deprecated in v1.11, and disabled by default in v1.33+'],
  ['scaleIO', 'deprecated in v1.16, non-functional in v1.22+'],
  ['flocker', 'deprecated in v1.22, non-functional in v1.25+'],
  ['storageos', 'deprecated in v1.22, non-functional in v1.25+'],
  ['quobyte', 'deprecated in v1.22, non-functional in v1.25+'],
  ['glusterfs', 'deprecated in v1.25, non-functional in v1.26+'],
  ['cephfs', 'deprecated in v1.28, non-functional in v1.31+'],
  ['rbd', 'deprecated in v1.28, non-functional in v1.31+'],
];

/** Of these there are no parts. */
const WHOLE_BYTES = ['memory', 'ephemeral-storage'];
const UNIT = 1_000_000_000n;
/** A port is compared with so many others of its number: whoever repeats one more often has read it by then. */
const SAME_NUMBER_MAX = 100;

/** Warnings for a pod that is created or updated. */
export function podWarnings(pod: KubeObject, old: KubeObject | undefined): string[] {
  const spec = objectAt(pod, 'spec') ?? {};
  return [...nameWarnings(pod, old), ...podSpecWarnings(spec, pod.metadata.annotations ?? {})];
}

function nameWarnings(pod: KubeObject, old: KubeObject | undefined): string[] {
  const messages = old === undefined ? dnsLabelErrors(pod.metadata.name ?? '') : [];
  if (messages.length === 0) return [];
  const advice =
    "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended";
  return [`${advice}: [${messages.join(' ')}]`];
}

function podSpecWarnings(spec: JsonObject, annotations: { readonly [key: string]: string }): string[] {
  return [
    ...Object.keys(objectAt(spec, 'nodeSelector') ?? {}).flatMap((label) =>
      deprecatedLabel(label, `spec.nodeSelector[${label}]: `),
    ),
    ...objectsAt(spec, 'topologySpreadConstraints').flatMap(spreadWarnings),
    ...DEPRECATED_ANNOTATIONS.filter(([key]) => Object.hasOwn(annotations, key)).map(
      ([key, advice]) => `metadata.annotations[${key}]: ${advice}`,
    ),
    ...objectsAt(spec, 'volumes').flatMap((volume, index) =>
      DEPRECATED_VOLUMES.filter(([source]) => has(volume, source)).map(
        ([source, advice]) => `spec.volumes[${index}].${source}: ${advice}`,
      ),
    ),
    ...repeated(spec, 'hostAliases', 'ip'),
    ...repeated(spec, 'imagePullSecrets', 'name'),
    ...namelessSecrets(spec),
    ...fractions(spec, 'overhead', 'spec'),
    ...containersOf(spec).flatMap(([container, path]) => [
      ...resourceWarnings(container, path),
      ...hidden(container, path),
    ]),
    ...portWarnings(spec),
    ...affinityWarnings(objectAt(spec, 'affinity')),
  ];
}

function deprecatedLabel(label: string, prefix: string): string[] {
  const advice = DEPRECATED_LABELS.get(label);
  return advice === undefined ? [] : [`${prefix}${advice}`];
}

function spreadWarnings(constraint: JsonObject, index: number): string[] {
  const path = `spec.topologySpreadConstraints[${index}]`;
  const key = textAt(constraint, 'topologyKey');
  return [...deprecatedLabel(key, `${path}.topologyKey: ${key} is `), ...unselective(constraint, path)];
}

function unselective(parent: JsonObject | undefined, path: string): string[] {
  if (has(parent, 'labelSelector')) return [];
  return [`${path}.labelSelector: a null labelSelector results in matching no pod`];
}

function affinityWarnings(affinity: JsonObject | undefined): string[] {
  return ['podAffinity', 'podAntiAffinity'].flatMap((kind) => {
    const terms = objectAt(affinity, kind);
    const [required, preferred] = [
      'requiredDuringSchedulingIgnoredDuringExecution',
      'preferredDuringSchedulingIgnoredDuringExecution',
    ] as const;
    const path = `spec.affinity.${kind}`;
    return [
      ...objectsAt(terms, required).flatMap((term, index) => unselective(term, `${path}.${required}[${index}]`)),
      ...objectsAt(terms, preferred).flatMap((term, index) =>
        unselective(objectAt(term, 'podAffinityTerm'), `${path}.${preferred}[${index}].podAffinityTerm`),
      ),
    ];
  });
}

function repeated(spec: JsonObject, list: string, key: string): string[] {
  const seen = new Set<string>();
  return objectsAt(spec, list).flatMap((item, index) => {
    const value = textAt(item, key);
    if (seen.has(value)) return [`spec.${list}[${index}].${key}: duplicate ${key} ${JSON.stringify(value)}`];
    seen.add(value);
    return [];
  });
}

function namelessSecrets(spec: JsonObject): string[] {
  return objectsAt(spec, 'imagePullSecrets').flatMap((secret, index) =>
    textAt(secret, 'name') === '' ? [`spec.imagePullSecrets[${index}].name: invalid empty name ""`] : [],
  );
}

function containersOf(spec: JsonObject): [container: JsonObject, path: string][] {
  return ['initContainers', 'containers', 'ephemeralContainers'].flatMap((list) =>
    objectsAt(spec, list).map((container, index): [JsonObject, string] => [container, `spec.${list}[${index}]`]),
  );
}

function resourceWarnings(container: JsonObject, path: string): string[] {
  const resources = objectAt(container, 'resources');
  const own = `${path}.resources`;
  return WHOLE_BYTES.flatMap((name) => [
    ...fractions(resources, 'limits', own, name),
    ...fractions(resources, 'requests', own, name),
  ]);
}

function fractions(parent: JsonObject | undefined, field: string, path: string, ...names: string[]): string[] {
  const amounts = objectAt(parent, field);
  return (names.length > 0 ? names : WHOLE_BYTES).flatMap((name) => {
    const quantity = parseQuantity(amounts?.[name]);
    if (quantity === undefined || quantity.amount % UNIT === 0n) return [];
    const shown = JSON.stringify(formatQuantity(quantity));
    return [`${path}.${field}[${name}]: fractional byte value ${shown} is invalid, must be an integer`];
  });
}

/** Variables that take the place of one of the same name, without making use of its value. */
function hidden(container: JsonObject, path: string): string[] {
  const seen = new Set<string>();
  return objectsAt(container, 'env').flatMap((variable, index) => {
    const name = textAt(variable, 'name');
    const [value, reference] = [textAt(variable, 'value'), `$(${name})`];
    const isExtended = !has(variable, 'valueFrom') && value !== reference && value.includes(reference);
    const isHiding = seen.has(name) && !isExtended;
    seen.add(name);
    if (!isHiding) return [];
    const consequence = 'which may be dropped when using apply';
    return [`${path}.env[${index}]: hides previous definition of ${JSON.stringify(name)}, ${consequence}`];
  });
}

/** Ports that say the same twice, or that share a name. */
function portWarnings(spec: JsonObject): string[] {
  const ports = containersOf(spec).flatMap(([container, path]) =>
    objectsAt(container, 'ports').map((port, index) => ({ port, path: `${path}.ports[${index}]` })),
  );
  const byNumber = new Map<string, typeof ports>();
  const sameNumber = ports.flatMap(({ port, path }) => {
    const number = numberOf(port);
    const others = byNumber.get(number) ?? [];
    const warnings = others.flatMap((other) =>
      overlap(port, other.port).map((problem) => `${path}: ${problem} with ${other.path}`),
    );
    if (others.length < SAME_NUMBER_MAX) byNumber.set(number, [...others, { port, path }]);
    return warnings;
  });
  const byName = new Map<string, string>();
  const sameName = ports.flatMap(({ port, path }) => {
    const name = textAt(port, 'name');
    const first = byName.get(name);
    if (name !== '' && first === undefined) byName.set(name, path);
    if (first === undefined) return [];
    const use = `services and probes that select ports by name will use ${first}`;
    return [`${path}: duplicate port name ${JSON.stringify(name)} with ${first}, ${use}`];
  });
  return [...sameNumber, ...sameName];
}

function numberOf(port: JsonObject): string {
  return `${numberAt(port, 'containerPort') ?? 0}/${textAt(port, 'protocol')}`;
}

function overlap(port: JsonObject, other: JsonObject): string[] {
  const [host, otherHost] = [numberAt(port, 'hostPort') ?? 0, numberAt(other, 'hostPort') ?? 0];
  const [address, otherAddress] = [textAt(port, 'hostIP'), textAt(other, 'hostIP')];
  if (host === otherHost && address === otherAddress) return ['duplicate port definition'];
  if (host === 0 || otherHost === 0) return ['overlapping port definition'];
  const isAmbiguous = host === otherHost && (address === '') !== (otherAddress === '');
  return isAmbiguous ? ['dangerously ambiguous port definition'] : [];
}
