import { choice, type Infer, listOf, moment, needed, object, text } from '../typed-schema.ts';

/** Conditions as KubeVirt has them: unlike those of Kubernetes, nothing but type and status must be said. */

const condition = object("One aspect of the object's state.", {
  type: needed(text('What aspect this is.')),
  status: needed(choice('True, False or Unknown.', ['True', 'False', 'Unknown'])),
  reason: text('One word for the cause.'),
  message: text('The cause in words.'),
  lastProbeTime: moment('When this was last looked at.'),
  lastTransitionTime: moment('When the status last changed.'),
});

export type KubeVirtCondition = Infer<typeof condition>;

/** The conditions of a status. Replaced as a whole, as in KubeVirt: their writer is one. */
export const conditions = listOf("The object's state, one aspect each.", condition);
