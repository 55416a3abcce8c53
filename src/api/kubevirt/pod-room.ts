import type { KubeObject } from '../meta.ts';
import type { VirtualMachineInstance } from './virtual-machine-instance.ts';
import { SOCKETS_ANNOTATION } from './well-known.ts';

/**
 * What a launcher pod was made for. Its node has set aside that much and no more: a guest that is to grow beyond it has to
 * move to a pod that was made for the guest as it is to be.
 */

/** Annotations of a pod that is made for a guest as it is to be now. */
export function roomAnnotations({ spec }: Pick<VirtualMachineInstance, 'spec'>): Record<string, string> {
  return { [SOCKETS_ANNOTATION]: String(wantedSockets({ spec })) };
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
