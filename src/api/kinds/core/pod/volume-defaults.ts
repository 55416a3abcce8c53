import type { JsonObject } from '../../../meta.ts';
import { canonicalizeQuantity } from '../amounts.ts';
import { has, objectAt, objectsAt, setDefault, textAt } from '../fields.ts';
import { applyClaimSpecDefaults } from '../claim-defaults.ts';
import { pullPolicyFor } from './image.ts';
import { applyReferenceDefaults } from './reference-defaults.ts';

const FILE_MODE = 0o644;
const TOKEN_SECONDS = 3600;

/** Defaults of one volume of a pod; one without a source is an empty directory. */
export function applyVolumeDefaults(volume: JsonObject): void {
  if (Object.keys(volume).every((field) => field === 'name' || volume[field] === null)) volume['emptyDir'] = {};
  for (const field of ['secret', 'configMap', 'downwardAPI', 'projected']) {
    const source = objectAt(volume, field);
    if (source !== undefined && !has(source, 'defaultMode')) source['defaultMode'] = FILE_MODE;
  }
  const hostPath = objectAt(volume, 'hostPath');
  if (hostPath !== undefined && !has(hostPath, 'type')) hostPath['type'] = '';
  const image = objectAt(volume, 'image');
  if (image !== undefined) setDefault(image, 'pullPolicy', pullPolicyFor(textAt(image, 'reference')));
  canonicalizeQuantity(objectAt(volume, 'emptyDir'), 'sizeLimit');
  for (const file of objectsAt(objectAt(volume, 'downwardAPI'), 'items')) applyReferenceDefaults(file);
  for (const source of objectsAt(objectAt(volume, 'projected'), 'sources')) applyProjectionDefaults(source);
  const template = objectAt(objectAt(volume, 'ephemeral'), 'volumeClaimTemplate');
  const spec = objectAt(template, 'spec');
  if (spec !== undefined) applyClaimSpecDefaults(spec);
}

function applyProjectionDefaults(source: JsonObject): void {
  for (const file of objectsAt(objectAt(source, 'downwardAPI'), 'items')) applyReferenceDefaults(file);
  const token = objectAt(source, 'serviceAccountToken');
  if (token !== undefined && !has(token, 'expirationSeconds')) token['expirationSeconds'] = TOKEN_SECONDS;
}
