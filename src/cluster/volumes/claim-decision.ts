import type { EventReason } from '../../api/event-reasons.ts';
import { BETA_STORAGE_CLASS, SELECTED_NODE } from '../../api/storage.ts';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '../../migration/fit/objects.ts';
import {
  bestVolume,
  isBindCompleted,
  isReservedFor,
  mismatch,
  storageClassNameOf,
} from '../../migration/fit/volume-match.ts';

/** What people are told about a claim, or a volume. */
export interface Notice {
  readonly type: 'Normal' | 'Warning';
  readonly reason: EventReason;
  readonly message: string;
}

/** What the binder knows besides the claim. */
export interface ClaimView {
  readonly volume: (name: string) => PersistentVolume | undefined;
  /** Volumes that name a claim of this name. */
  readonly volumesFor: (claim: PersistentVolumeClaim) => Iterable<PersistentVolume>;
  /** Volumes of a storage class that name no claim. */
  readonly freeVolumes: (storageClass: string) => Iterable<PersistentVolume>;
  readonly storageClass: (name: string) => StorageClass | undefined;
  /** The class of claims that name none. */
  readonly defaultClass: () => string | undefined;
}

/** What to do about a claim. */
export type ClaimDecision =
  /** The two belong together; whatever does not say so yet is made to. */
  | { readonly type: 'bind'; readonly volume: PersistentVolume }
  | { readonly type: 'wait'; readonly notice: Notice | undefined }
  /** Whoever makes volumes of its class is told to make one. */
  | { readonly type: 'provision'; readonly provisioner: string; readonly notice: Notice }
  | { readonly type: 'choose-class'; readonly storageClass: string }
  | { readonly type: 'lose'; readonly notice: Notice };

/** Decides about a claim. It is lost only by what is known: whoever may be behind has to make sure first. */
export function decideClaim(claim: PersistentVolumeClaim, view: ClaimView): ClaimDecision {
  const name = claim.spec?.volumeName ?? '';
  if (isBindCompleted(claim)) return decideBound(claim, name === '' ? undefined : view.volume(name));
  // Nobody can use what is about to go.
  if (claim.metadata.deletionTimestamp !== undefined) return { type: 'wait', notice: undefined };
  return name === '' ? decideFree(claim, view) : decideNamed(claim, name, view.volume(name));
}

function decideBound(claim: PersistentVolumeClaim, volume: PersistentVolume | undefined): ClaimDecision {
  if ((claim.spec?.volumeName ?? '') === '')
    return lost('ClaimLost', 'Bound claim has lost reference to PersistentVolume. Data on the volume is lost!');
  if (!volume) return lost('ClaimLost', 'Bound claim has lost its PersistentVolume. Data on the volume is lost!');
  const { claimRef } = volume.spec ?? {};
  if (!claimRef || claimRef.uid === claim.metadata.uid) return { type: 'bind', volume };
  return lost('ClaimMisbound', 'Two claims are bound to the same volume, this one is bound incorrectly');
}

/** Of a claim that asks for one volume by name. */
function decideNamed(claim: PersistentVolumeClaim, name: string, volume: PersistentVolume | undefined): ClaimDecision {
  if (!volume) return { type: 'wait', notice: undefined };
  if (volume.spec?.claimRef) {
    if (isReservedFor(volume, claim)) return { type: 'bind', volume };
    return wait('Warning', 'FailedBinding', `volume ${JSON.stringify(name)} already bound to a different claim.`);
  }
  const problem = mismatch(volume, claim);
  if (problem === undefined) return { type: 'bind', volume };
  return wait('Warning', 'VolumeMismatch', `Cannot bind to requested volume ${JSON.stringify(name)}: ${problem}`);
}

function decideFree(claim: PersistentVolumeClaim, view: ClaimView): ClaimDecision {
  for (const volume of view.volumesFor(claim)) {
    const isLeaving = volume.metadata.deletionTimestamp !== undefined;
    if (!isLeaving && isReservedFor(volume, claim) && suffices(volume, claim)) return { type: 'bind', volume };
  }
  const className = storageClassNameOf(claim);
  if (className === '' && isClassOpen(claim)) {
    const chosen = view.defaultClass();
    if (chosen !== undefined) return { type: 'choose-class', storageClass: chosen };
  }
  const storageClass = view.storageClass(className);
  if (storageClass?.volumeBindingMode === 'WaitForFirstConsumer') {
    // From here on the scheduler chooses, among volumes as among nodes.
    if (claim.metadata.annotations?.[SELECTED_NODE] === undefined)
      return wait('Normal', 'WaitForFirstConsumer', 'waiting for first consumer to be created before binding');
  } else {
    const volume = bestVolume(claim, view.freeVolumes(className));
    if (volume) return { type: 'bind', volume };
  }
  if (className === '')
    return wait(
      'Normal',
      'FailedBinding',
      'no persistent volumes available for this claim and no storage class is set',
    );
  return provision(className, storageClass);
}

/** A volume that was set aside for a claim need not be of its class. */
function suffices(volume: PersistentVolume, claim: PersistentVolumeClaim): boolean {
  const problem = mismatch(volume, claim);
  return problem === undefined || problem === 'storageClassName does not match';
}

/** An empty name asks for no class; none at all, for whichever is the default. */
function isClassOpen({ metadata, spec }: PersistentVolumeClaim): boolean {
  return spec?.storageClassName === undefined && !Object.hasOwn(metadata.annotations ?? {}, BETA_STORAGE_CLASS);
}

function provision(className: string, storageClass: StorageClass | undefined): ClaimDecision {
  if (!storageClass)
    return wait('Warning', 'ProvisioningFailed', `storageclass.storage.k8s.io ${JSON.stringify(className)} not found`);
  const { provisioner = '' } = storageClass;
  // Those were part of Kubernetes once, and some never made anything.
  if (provisioner.startsWith('kubernetes.io/'))
    return wait('Warning', 'ProvisioningFailed', `no volume plugin matched name: ${provisioner}`);
  const message =
    `Waiting for a volume to be created either by the external provisioner '${provisioner}' or manually by the system ` +
    'administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered.';
  return { type: 'provision', provisioner, notice: { type: 'Normal', reason: 'ExternalProvisioning', message } };
}

function wait(type: Notice['type'], reason: EventReason, message: string): ClaimDecision {
  return { type: 'wait', notice: { type, reason, message } };
}

function lost(reason: EventReason, message: string): ClaimDecision {
  return { type: 'lose', notice: { type: 'Warning', reason, message } };
}
