import { listMap, map, message, quantity, str } from '../../../schema.ts';
import { CORE } from './package.ts';

/** Schemas of the compute resources that a container or a claim asks for. */

const resourceClaim = message(
  `${CORE}.ResourceClaim`,
  'A claim of the pod that a container uses.',
  {
    name: [1, str(), "Name of an entry in the pod's resourceClaims."],
    request: [2, str(), "Which of the claim's requests; all if empty."],
  },
  { required: ['name'] },
);

export const resourceRequirements = message(
  `${CORE}.ResourceRequirements`,
  'Compute resources that a container needs and may use.',
  {
    limits: [1, map(quantity()), 'The most that may be used.'],
    requests: [2, map(quantity()), 'What is reserved; the limits by default.'],
    claims: [
      3,
      listMap(['name'], resourceClaim, { 'x-kubernetes-patch-strategy': 'replace' }),
      'Claims of the pod that this container uses.',
    ],
  },
);

export const volumeResourceRequirements = message(`${CORE}.VolumeResourceRequirements`, 'Storage that a claim needs.', {
  limits: [1, map(quantity()), 'The most that may be given.'],
  requests: [2, map(quantity()), 'The least that is needed.'],
});
