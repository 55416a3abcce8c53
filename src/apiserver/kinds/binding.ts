import { type FieldError, notSupported, required } from '../../api/field-error.ts';
import type { KubeObject } from '../../api/meta.ts';
import { badRequest, conflict, invalidObject, pathNotFound, type Status } from '../../api/status.ts';
import { setOwn } from '../../machinery/clone.ts';
import type { Registry, WriteContext } from '../registry/contract.ts';
import { type Pod, setPodCondition } from './pod-conditions.ts';

interface Binding extends KubeObject {
  target?: { kind?: string; name?: string };
}

/** A request to bind a pod to a node. */
export interface BindRequest {
  readonly registry: Pick<Registry, 'definition' | 'update'>;
  readonly context: WriteContext;
  readonly namespace: string;
  readonly name: string;
  /** A core/v1 Binding, already admitted. */
  readonly binding: KubeObject;
  readonly nowMs: number;
}

const BINDINGS = { group: '', plural: 'pods/binding' };

/**
 * Gives a pod its node, once. Throws 409 where it has one already or is on its way out: a scheduler that lost a race
 * must not move a pod. A uid or resourceVersion in the binding is a precondition.
 */
export async function bindPod(request: BindRequest): Promise<Status> {
  const { registry, context, namespace, name, nowMs } = request;
  const binding = request.binding as Binding;
  if (binding.metadata?.name !== name) throw badRequest('name in URL does not match name in Binding object');
  const errors = validate(binding);
  if (errors.length > 0) throw invalidObject('', 'Binding', name, errors);
  const definition = registry.definition('', 'v1', 'pods');
  if (!definition) throw pathNotFound();
  const target = { definition, namespace, name, subresource: 'binding' };
  await registry.update({ ...context, isAdmitted: true, isUntracked: true }, target, (current) =>
    assign(current, binding, nowMs),
  );
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 };
}

function validate({ target }: Binding): FieldError[] {
  const errors: FieldError[] = [];
  const kind = target?.kind ?? '';
  if (kind !== '' && kind !== 'Node') errors.push(notSupported('target.kind', kind, ['Node', '<empty>']));
  if ((target?.name ?? '') === '') errors.push(required('target.name'));
  return errors;
}

function assign(pod: Pod, binding: Binding, nowMs: number): Pod {
  const name = pod.metadata.name ?? '';
  checkPreconditions(pod, binding);
  if (pod.metadata.deletionTimestamp !== undefined)
    throw conflict(BINDINGS, name, `pod ${name} is being deleted, cannot be assigned to a host`);
  const node = pod.spec?.nodeName ?? '';
  if (node !== '') throw conflict(BINDINGS, name, `pod ${name} is already assigned to node ${JSON.stringify(node)}`);
  if ((pod.spec?.schedulingGates ?? []).length > 0)
    throw conflict(BINDINGS, name, `pod ${name} has non-empty .spec.schedulingGates`);
  pod.spec = { ...pod.spec, nodeName: binding.target?.name ?? '' };
  addEntries(pod, 'annotations', binding);
  addEntries(pod, 'labels', binding);
  setPodCondition(pod, { type: 'PodScheduled', status: 'True' }, nowMs);
  return pod;
}

function checkPreconditions(pod: Pod, binding: Binding): void {
  const name = pod.metadata.name ?? '';
  const { uid = '', resourceVersion = '' } = binding.metadata;
  const refuse = (what: string, wanted: string, actual = ''): never => {
    const detail = `Precondition failed: ${what} in precondition: ${wanted}, ${what} in object meta: ${actual}`;
    throw conflict({ group: '', plural: 'pods' }, name, detail);
  };
  if (uid !== '' && uid !== pod.metadata.uid) refuse('UID', uid, pod.metadata.uid);
  if (resourceVersion !== '' && resourceVersion !== pod.metadata.resourceVersion)
    refuse('ResourceVersion', resourceVersion, pod.metadata.resourceVersion);
}

/** Puts the binding's entries over the pod's own. */
function addEntries(pod: Pod, field: 'annotations' | 'labels', binding: Binding): void {
  const more = Object.entries(binding.metadata[field] ?? {});
  if (more.length === 0) return;
  const all = (pod.metadata[field] ??= {});
  for (const [key, value] of more) setOwn(all, key, value);
}
