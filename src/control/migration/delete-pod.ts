import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { ApiError } from '../../api/status.ts';
import type { EventTarget } from '../../kube/event-recorder.ts';
import type { ControlContext } from '../context.ts';
import { type LauncherPod, pods } from '../resources.ts';

/** Deletes a launcher pod of a guest, unless the guest runs there or may come to. */
export async function deletePod(
  { client, recorder }: Pick<ControlContext, 'client' | 'recorder'>,
  pod: LauncherPod,
  guest: VirtualMachineInstance | undefined,
  about: EventTarget,
  signal: AbortSignal,
): Promise<void> {
  const { namespace = '', name = '', uid = '', deletionTimestamp } = pod.metadata;
  const { holder, successor } = guest?.status?.rightToRun ?? {};
  if (deletionTimestamp !== undefined || holder?.podUID === uid || successor?.podUID === uid) return;
  try {
    await client.delete(pods, namespace, name, signal, { preconditions: { uid } });
    recorder.event(about, 'Normal', 'SuccessfulDelete', `Deleted pod ${name}`);
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return;
    recorder.event(about, 'Warning', 'FailedDelete', `Error deleting pod ${name}: ${String(error)}`);
    throw error;
  }
}
