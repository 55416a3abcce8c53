import type { EventReason } from '../../api/event-reasons.ts';
import type { Sizing } from '../../api/kubevirt/guest-draft.ts';
import type { Instancetype } from '../../api/kubevirt/instancetype.ts';
import type { Preference } from '../../api/kubevirt/preference.ts';
import type { VirtualMachine, VirtualMachineStatus } from '../../api/kubevirt/virtual-machine.ts';
import type { KubeObject } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import type { Client } from '../../kube/client.ts';
import type { Resource } from '../../kube/resource.ts';
import { type ControllerRevision, controllerRevisions, INSTANCETYPES, PREFERENCES } from '../resources.ts';

/**
 * The instance type and the preference of a machine, as they were when it first referred to them: whoever changes or
 * deletes them later changes no machine that is there already. As in KubeVirt, copies are kept in ControllerRevisions
 * that the machine owns and whose names are in its status; a machine that shall follow the newest version is told so by
 * removing that reference. A `revisionName` in the spec names the copy to be used.
 */

type Reference = VirtualMachineStatus['instancetypeRef'];
type Matcher = VirtualMachine['spec']['instancetype'];

export interface KeptSizing {
  readonly sizing: Sizing;
  readonly references: Pick<VirtualMachineStatus, 'instancetypeRef' | 'preferenceRef'>;
}

/** What the machine refers to cannot be had: a reason for programs, a message for people. */
export class SizingError extends Error {
  readonly reason: EventReason;

  constructor(reason: EventReason, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'SizingError';
    this.reason = reason;
  }
}

/** Reads the copies, after making those that are missing. Rejects with SizingError where there is nothing to copy. */
export async function keepSizing(client: Client, machine: VirtualMachine, signal: AbortSignal): Promise<KeptSizing> {
  const { spec, status } = machine;
  const about = { client, machine, signal };
  const instancetype = await kept<Instancetype>(about, 'instancetype', INSTANCETYPES, {
    matcher: spec.instancetype,
    known: status?.instancetypeRef,
  });
  const preference = await kept<Preference>(about, 'preference', PREFERENCES, {
    matcher: spec.preference,
    known: status?.preferenceRef,
  });
  return {
    sizing: {
      ...(instancetype ? { instancetype: instancetype.object.spec } : {}),
      ...(preference ? { preference: preference.object.spec } : {}),
    },
    references: { instancetypeRef: instancetype?.reference, preferenceRef: preference?.reference },
  };
}

/** Whether the copies of what the machine refers to are made already: nothing need be read to know that. */
export function isSizingKept({ spec, status }: VirtualMachine): boolean {
  return (
    isKept('instancetype', spec.instancetype, status?.instancetypeRef) &&
    isKept('preference', spec.preference, status?.preferenceRef)
  );
}

function isKept(what: string, matcher: Matcher, known: Reference): boolean {
  if (!matcher || !known) return !matcher && !known;
  const { revisionName } = matcher;
  const name = known.controllerRevisionRef?.name;
  return isOf(known, what, matcher) && (revisionName ? revisionName === name : name !== undefined);
}

/** Whether a reference is to what the machine refers to now. */
function isOf(known: Reference, what: string, matcher: NonNullable<Matcher>): boolean {
  return known?.name === matcher.name && known?.kind === kindOf(what, matcher);
}

function kindOf(what: string, { kind }: NonNullable<Matcher>): string {
  return (kind || `virtualmachinecluster${what}`).toLowerCase().replace(/s$/, '');
}

interface About {
  readonly client: Client;
  readonly machine: VirtualMachine;
  readonly signal: AbortSignal;
}

interface Kept<T> {
  readonly object: T;
  readonly reference: Reference;
}

async function kept<T extends KubeObject>(
  about: About,
  what: 'instancetype' | 'preference',
  resources: ReadonlyMap<string, Resource<T>>,
  { matcher, known }: { readonly matcher: Matcher; readonly known: Reference },
): Promise<Kept<T> | undefined> {
  if (!matcher) return undefined;
  const kind = kindOf(what, matcher);
  const resource = resources.get(kind);
  if (!resource) throw new SizingError('FailedFindKind', `unknown kind of ${what}: ${matcher.kind}`);
  if (!matcher.name) throw new SizingError('FailedInfer', `the ${what} names none; volumes are not asked for one`);
  const recorded =
    matcher.revisionName || (isOf(known, what, matcher) ? known?.controllerRevisionRef?.name : undefined);
  const revision = recorded ? await revisionNamed(about, recorded) : await newRevision(about, resource, matcher.name);
  const reference = { name: matcher.name, kind, controllerRevisionRef: { name: revision.metadata.name ?? '' } };
  return { object: revision.data as T, reference };
}

async function revisionNamed({ client, machine, signal }: About, name: string): Promise<ControllerRevision> {
  try {
    return await client.get(controllerRevisions, machine.metadata.namespace ?? '', name, signal);
  } catch (error) {
    if (!isCode(error, 404)) throw error;
    throw new SizingError('FailedFindRevision', `the ControllerRevision ${name} does not exist`, error);
  }
}

async function newRevision<T extends KubeObject>(
  about: About,
  resource: Resource<T>,
  name: string,
): Promise<ControllerRevision> {
  const { client, machine, signal } = about;
  const { namespace = '', uid = '', name: machineName = '' } = machine.metadata;
  const source = await found(about, resource, name);
  const { uid: sourceUid = '', generation = 1 } = source.metadata;
  const revision: ControllerRevision = {
    apiVersion: 'apps/v1',
    kind: 'ControllerRevision',
    metadata: {
      name: `${machineName}-${name}-${sourceUid}-${generation}`,
      namespace,
      ownerReferences: [
        {
          apiVersion: 'kubevirt.io/v1',
          kind: 'VirtualMachine',
          name: machineName,
          uid,
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
      labels: {
        'instancetype.kubevirt.io/object-generation': String(generation),
        'instancetype.kubevirt.io/object-kind': resource.kind,
        'instancetype.kubevirt.io/object-name': name,
        'instancetype.kubevirt.io/object-uid': sourceUid,
        'instancetype.kubevirt.io/object-version': resource.version,
      },
    },
    data: source,
    revision: 0,
  };
  try {
    return await client.create(controllerRevisions, revision, signal);
  } catch (error) {
    if (!isCode(error, 409)) throw error;
    const old = await revisionNamed(about, revision.metadata.name ?? '');
    // One of a machine that is gone, and will go with it.
    if (old.metadata.ownerReferences?.every((owner) => owner.uid !== uid))
      throw new Error(`the ControllerRevision ${old.metadata.name} is of another machine`, { cause: error });
    return old;
  }
}

async function found<T extends KubeObject>(
  { client, machine, signal }: About,
  resource: Resource<T>,
  name: string,
): Promise<T> {
  const namespace = resource.namespaced ? (machine.metadata.namespace ?? '') : '';
  try {
    const object = await client.get(resource, namespace, name, signal);
    const { managedFields: _, ...metadata } = object.metadata;
    return { ...object, metadata };
  } catch (error) {
    if (!isCode(error, 404)) throw error;
    throw new SizingError(
      `FailedFind${resource.kind.includes('Preference') ? 'Preference' : 'Instancetype'}`,
      `${resource.kind} ${name} does not exist`,
      error,
    );
  }
}

function isCode(error: unknown, code: number): boolean {
  return error instanceof ApiError && error.code === code;
}
