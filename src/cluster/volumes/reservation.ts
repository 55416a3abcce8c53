import { BOUND_BY_CONTROLLER } from '../../api/storage.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../../migration/fit/objects.ts';

/**
 * The volume, set aside for this very claim. Where nobody had set it aside for a claim of this name before, it says that
 * no person chose: then it may go to another claim if this one ends up elsewhere.
 */
export function reservation(volume: PersistentVolume, claim: PersistentVolumeClaim): PersistentVolume {
  const { metadata, spec } = volume;
  const { namespace = '', name = '', uid = '', resourceVersion = '' } = claim.metadata;
  const claimRef = { kind: 'PersistentVolumeClaim', namespace, name, uid, apiVersion: 'v1', resourceVersion };
  const isChosen = spec?.claimRef === undefined;
  const annotations = { ...metadata.annotations, ...(isChosen ? { [BOUND_BY_CONTROLLER]: 'yes' } : {}) };
  return { ...volume, metadata: { ...metadata, annotations }, spec: { ...spec, claimRef } };
}
