import type { KubeObject } from '../meta.ts';
import { bytesOf } from './memory-room.ts';
import type { VirtualMachineInstance } from './virtual-machine-instance.ts';
import { MEMORY_ANNOTATION, SOCKETS_ANNOTATION } from './well-known.ts';

/**
 * What a launcher pod was made for. Its node has set aside that much and no more: a guest that is to grow beyond it has to
 * move to a pod that was made for the guest as it is to be.
 */

/** Annotations of a pod that is made for a guest as it is to be now. */
export function roomAnnotations({ spec }: Pick<VirtualMachineInstance, 'spec'>): Record<string, string> {
  const { guest: memory } = spec.domain.memory ?? {};
  return {
    [SOCKETS_ANNOTATION]: String(wantedSockets({ spec })),
    ...(memory === undefined ? {} : { [MEMORY_ANNOTATION]: String(memory) }),
  };
}

/** For how much memory of its guest, in bytes, a pod was made; none where it does not say so. */
export function memoryBytesOfPod({ metadata }: Pick<KubeObject, 'metadata'>): number {
  return bytesOf(metadata.annotations?.[MEMORY_ANNOTATION]) ?? 0;
}

/** How much memory, in bytes, a guest is to have. */
export function wantedMemoryBytes({ spec }: Pick<VirtualMachineInstance, 'spec'>): number {
  return bytesOf(spec.domain.memory?.guest) ?? 0;
}

/** For how many sockets a pod was made; none where it does not say so. */
export function socketsOfPod({ metadata }: Pick<KubeObject, 'metadata'>): number {
  const sockets = Number(metadata.annotations?.[SOCKETS_ANNOTATION]);
  return Number.isSafeInteger(sockets) ? sockets : 0;
}

/** How many sockets a guest is to have. */
export function wantedSockets({ spec }: Pick<VirtualMachineInstance, 'spec'>): number {
  return spec.domain.cpu?.sockets || 1;
}
