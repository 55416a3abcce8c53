import { flag, type Infer, listByKey, moment, needed, object, text } from '../typed-schema.ts';
import { cause } from './migration-cause.ts';

/** Why a guest has to leave the node that it is on, while it has to. */

const evacuationCause = object('Somebody or something that wants the guest off its node.', {
  cause: needed(cause('What it is.')),
  since: moment('When it came up.'),
  untilUncordon: flag('Whether it ends when the node takes pods again: it was asked for while the node took none.'),
  deadline: moment('When the guest must be gone: its pod is being deleted.'),
  podUID: text('The pod that is being deleted.'),
  message: text('The cause in words.'),
});

/** All of them, for as long as the guest is marked for the node that it is on. */
export const evacuationCauses = listByKey('Why the guest has to leave its node.', 'cause', evacuationCause);

export type EvacuationCause = Infer<typeof evacuationCause>;
