import type { KubeObject } from '../../api/meta.ts';
import type { Client } from '../../kube/client.ts';
import { virtualMachineInstanceMigrations, virtualMachines } from '../../kube/kubevirt-resources.ts';
import type { Resource } from '../../kube/resource.ts';
import type { MovePlan } from './plan.ts';
import type { Obstacle } from './planned-objects.ts';
import type { MoveRequest } from './seen.ts';

/** Whether one may do what a move does. */

const reviews: Resource<KubeObject & { readonly status?: { readonly allowed?: boolean } }> = {
  group: 'authorization.k8s.io',
  version: 'v1',
  plural: 'selfsubjectaccessreviews',
  kind: 'SelfSubjectAccessReview',
  namespaced: false,
};

interface Right {
  readonly verb: string;
  readonly resource: Resource;
  readonly namespace: string;
}

/** Of what is to be made: it is said there which attempt uses it, and it is removed where that fails. */
const REMOVED = ['patch', 'delete'];
const CHANGED = ['create', ...REMOVED];

/** All that has to be written, on each side. Pure. */
export function rightsOf(
  { machine, objects }: Pick<MovePlan, 'machine' | 'objects'>,
  { from, to }: Pick<MoveRequest, 'from' | 'to'>,
): { readonly source: readonly Right[]; readonly target: readonly Right[] } {
  const halves = virtualMachineInstanceMigrations as unknown as Resource;
  const machines = virtualMachines as unknown as Resource;
  const both = (namespace: string): Right[] =>
    ['create', 'delete'].map((verb) => ({ verb, resource: halves, namespace }));
  const ofMachine = { missing: CHANGED, made: REMOVED, 'taken back': ['patch'], there: [] }[machine.state];
  const needed = new Map<string, Right>();
  for (const { resource, state } of objects) {
    if (state === 'there') continue;
    for (const verb of state === 'missing' ? CHANGED : REMOVED)
      needed.set(`${verb} ${resource.plural}`, { verb, resource, namespace: resource.namespaced ? to.namespace : '' });
  }
  return {
    source: both(from.namespace),
    target: [
      ...both(to.namespace),
      ...ofMachine.map((verb) => ({ verb, resource: machines, namespace: to.namespace })),
      ...needed.values(),
    ],
  };
}

/** Asks for each, and answers what is missing. */
export async function missingRights(
  client: Client,
  rights: readonly Right[],
  where: string,
  signal: AbortSignal,
): Promise<Obstacle[]> {
  const answers = await Promise.all(
    rights.map(async ({ verb, resource, namespace }) => {
      const resourceAttributes = { verb, group: resource.group, resource: resource.plural, namespace };
      const review = { ...KIND, metadata: {}, spec: { resourceAttributes } };
      return (await client.create(reviews, review, signal)).status?.allowed === true;
    }),
  );
  return rights
    .filter((_, index) => answers[index] !== true)
    .map(({ verb, resource, namespace }) => ({
      what: `you may not ${verb} ${resource.plural}${namespace === '' ? '' : ` in ${namespace}`} ${where}`,
      fix: 'ask for that right, or whoever has it',
    }));
}

const KIND = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview' };
