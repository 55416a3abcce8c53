import { BOUND_BY_CONTROLLER, PROVISIONED_BY } from '../../api/storage.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../../migration/fit/objects.ts';
import type { Notice } from './claim-decision.ts';

/** What to do about a volume. */
export type VolumeDecision =
  | {
      readonly type: 'phase';
      readonly phase: 'Available' | 'Bound' | 'Released' | 'Failed';
      readonly notice: Notice | undefined;
    }
  /** The claim that it is for has to be looked at. */
  | { readonly type: 'ask-claim' }
  /** Its claim has another volume, so that it is free, or at least free for a claim of that name. */
  | { readonly type: 'unbind'; readonly volume: PersistentVolume }
  | { readonly type: 'nothing' };

/** Decides about a volume, given the claim that it names, if that is there. */
export function decideVolume(volume: PersistentVolume, claim: PersistentVolumeClaim | undefined): VolumeDecision {
  const { claimRef } = volume.spec ?? {};
  if (!claimRef || (claimRef.uid ?? '') === '') return phase(volume, 'Available');
  if (!claim || claim.metadata.uid !== claimRef.uid) return release(volume);
  const name = claim.spec?.volumeName ?? '';
  if (name === volume.metadata.name) return phase(volume, 'Bound');
  if (name === '') return { type: 'ask-claim' };
  if (isProvisioned(volume) && volume.spec?.persistentVolumeReclaimPolicy === 'Delete') return release(volume);
  return { type: 'unbind', volume: unbound(volume) };
}

function phase(volume: PersistentVolume, next: 'Available' | 'Bound'): VolumeDecision {
  return volume.status?.phase === next ? { type: 'nothing' } : { type: 'phase', phase: next, notice: undefined };
}

/** Nobody has the volume any more. Who made it will see to the rest; what nobody made, nobody can unmake. */
function release(volume: PersistentVolume): VolumeDecision {
  const known = volume.status?.phase;
  if (known === 'Failed') return { type: 'nothing' };
  if (known !== 'Released') return { type: 'phase', phase: 'Released', notice: undefined };
  const policy = volume.spec?.persistentVolumeReclaimPolicy ?? 'Retain';
  if (policy === 'Retain' || isProvisioned(volume)) return { type: 'nothing' };
  const what = policy === 'Delete' ? 'deletable' : 'recyclable';
  const name = JSON.stringify(volume.metadata.name ?? '');
  const message = `error getting ${policy === 'Delete' ? 'deleter' : 'recycler'} volume plugin for volume ${name}: no ${what} volume plugin matched`;
  const reason = policy === 'Delete' ? 'VolumeFailedDelete' : 'VolumeFailedRecycle';
  return { type: 'phase', phase: 'Failed', notice: { type: 'Warning', reason, message } };
}

function isProvisioned({ metadata }: PersistentVolume): boolean {
  return (metadata.annotations?.[PROVISIONED_BY] ?? '') !== '';
}

/** What the binder chose it forgets; what a person chose stays, for the next claim of that name. */
function unbound(volume: PersistentVolume): PersistentVolume {
  const { claimRef, ...spec } = volume.spec ?? {};
  const { [BOUND_BY_CONTROLLER]: chosen, ...annotations } = volume.metadata.annotations ?? {};
  if (chosen !== undefined) return { ...volume, metadata: { ...volume.metadata, annotations }, spec };
  const { uid: _uid, resourceVersion: _version, ...name } = claimRef ?? {};
  return { ...volume, spec: { ...spec, claimRef: name } };
}
