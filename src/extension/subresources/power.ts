import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { JsonObject, KubeObject } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import type { Client } from '../../kube/client.ts';
import { virtualMachineInstances, virtualMachines } from '../../kube/kubevirt-resources.ts';
import type { Resource } from '../../kube/resource.ts';
import { controllerOf } from '../../kube/owner.ts';
import { found } from '../find-object.ts';
import { planPower, type PowerAction, type PowerOptions } from './power-requests.ts';

/** How often it is decided anew when somebody else writes at the same time. */
const ATTEMPTS_MAX = 10;

export interface PowerRequest {
  readonly action: PowerAction;
  readonly namespace: string;
  readonly name: string;
  readonly options: PowerOptions;
  readonly dryRun: boolean;
}

/** Starts, stops or restarts a machine: asks for it where the controller will see it, whoever writes at the same time. */
export async function changePower(client: Client, request: PowerRequest, signal: AbortSignal): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await attemptPower(client, request, signal);
    } catch (error) {
      if (!isStale(error) || attempt === ATTEMPTS_MAX) throw error;
    }
  }
}

async function attemptPower(client: Client, request: PowerRequest, signal: AbortSignal): Promise<void> {
  const { action, namespace, name, options, dryRun } = request;
  const machine = await found(client, virtualMachines, namespace, name, signal);
  const named = await client.find(virtualMachineInstances, namespace, name, signal);
  const guest = named && isOf(named, machine) ? named : undefined;
  const plan = planPower(action, machine, guest, options);
  const write = async <T extends KubeObject>(
    resource: Resource<T>,
    { metadata }: T,
    change: JsonObject | undefined,
    subresource?: string,
  ): Promise<void> => {
    if (!change) return;
    const { uid = '', resourceVersion = '' } = metadata;
    const patch = { type: 'merge', body: { ...change, metadata: { uid, resourceVersion } } } as const;
    const how = { dryRun, ...(subresource === undefined ? {} : { subresource }) };
    await client.patch(resource, namespace, name, patch, signal, how).catch((error: unknown) => {
      throw isConflict(error) ? new StaleError(error) : error;
    });
  };
  // First: once the guest is told to stop, it is too late to say how long that may take.
  if (guest) await write(virtualMachineInstances, guest, plan.guest);
  await write(virtualMachines, machine, plan.machine);
  await write(virtualMachines, machine, plan.machineStatus, 'status');
}

/** A conflict of writers, as opposed to one with what is asked for. */
class StaleError extends ApiError {
  constructor(cause: ApiError) {
    super(cause.code, cause.reason, cause.message, cause.details, cause);
  }
}

function isStale(error: unknown): boolean {
  return error instanceof StaleError;
}

function isConflict(error: unknown): error is ApiError {
  return error instanceof ApiError && error.code === 409;
}

function isOf(guest: VirtualMachineInstance, machine: VirtualMachine): boolean {
  return controllerOf(guest)?.uid === machine.metadata.uid;
}
