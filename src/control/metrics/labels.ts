/** What several metrics say of an object in the same words. */

const LABEL_LENGTH_MAX = 128;

type Annotations = Readonly<Record<string, string>> | undefined;

/** What people have written on a machine about what runs in it, as KubeVirt's templates do. */
export function systemOf(annotations: Annotations): {
  readonly [label in 'os' | 'workload' | 'flavor']: string;
} {
  const of = (name: string): string => valueOf(annotations, `vm.kubevirt.io/${name}`);
  return { os: of('os'), workload: of('workload'), flavor: of('flavor') };
}

/** The instance type and the preference that a guest was made with. */
export function sizingOf(annotations: Annotations): { readonly [label in 'instance_type' | 'preference']: string } {
  const of = (kind: string): string =>
    valueOf(annotations, `kubevirt.io/${kind}-name`) || valueOf(annotations, `kubevirt.io/cluster-${kind}-name`);
  return { instance_type: of('instancetype'), preference: of('preference') };
}

function valueOf(annotations: Annotations, key: string): string {
  return annotations && Object.hasOwn(annotations, key) ? shortened(annotations[key] ?? '') : '';
}

/** What users write, as a label: whoever collects metrics keeps each of them. */
export function shortened(text: string): string {
  return text.slice(0, LABEL_LENGTH_MAX);
}

/** A moment as seconds since 1970; undefined where there is none. */
export function secondsOf(moment: string | null | undefined): number | undefined {
  const ms = Date.parse(moment ?? '');
  return Number.isNaN(ms) ? undefined : ms / 1000;
}
