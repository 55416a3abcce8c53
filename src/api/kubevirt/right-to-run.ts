import type { ValidationRule } from '../schema.ts';
import { flag, type Infer, listByKey, long, needed, object, text } from '../typed-schema.ts';

/**
 * The record of who may execute a guest. Agents and the seizer all write it, each change along one of the transitions
 * of the protocol. The rules here are the API server's own check of that, whoever makes the change, and
 * `right-to-run-transition` is the same for our code:
 *
 *   start    nobody holds it            epoch + 1, the agent holds it
 *   reserve  the holder stays           same epoch, a successor is named
 *   abort    the holder stays           same epoch, the successor is forgotten
 *   take     the successor holds it     epoch + 1
 *   refuse   the holder stays           epoch + 1, the successor is forgotten
 *   seize    nobody holds it            epoch + 1, the successor is forgotten
 *   give     the successor holds it     epoch + 1; it executes the guest of another object, and has a record of its own
 *
 * Where the guest goes to another object, `across` says so of its successor, and of the holder that this one becomes:
 * then nothing is left here to be executed, and nobody follows that holder but nobody, when an admin reclaims the guest.
 *
 * An agent whose journal is ahead of the record (the API's data was restored) raises the epoch by more than one and
 * changes nothing else.
 */

/** Names of nodes and UIDs are short; saying so keeps the estimated cost of the rules low. */
const NODE_NAME_LENGTH_MAX = 253;
const UID_LENGTH_MAX = 128;

/** A launcher pod, with what tells it from all others. */
export const runner = (description: string) =>
  object(description, {
    node: needed(text('Name of the node.', { maxLength: NODE_NAME_LENGTH_MAX })),
    nodeUID: needed(text('UID of the node: one that registers anew is another.', { maxLength: UID_LENGTH_MAX })),
    podUID: needed(text('UID of the launcher pod.', { maxLength: UID_LENGTH_MAX })),
  });

const volume = object('Which contents of a volume are the true ones.', {
  name: needed(text('Name of the volume.')),
  claimUID: needed(text('UID of the claim.', { maxLength: UID_LENGTH_MAX })),
  imageEpoch: needed(
    long(
      'The last epoch in which a guest was started there, or came there; 0 where its image bears no stamp for all nodes.',
      {
        minimum: 0,
      },
    ),
  ),
});
const volumes = listByKey('Which contents of its volumes are the true ones.', 'name', volume);

/** Two runners are one. Written out, since to CEL objects of two fields are of two types and cannot be compared. */
const same = (one: string, other: string): string =>
  `(${['node', 'nodeUID', 'podUID'].map((field) => `${one}.${field} == ${other}.${field}`).join(' && ')})`;

const HOLDER_STAYS = `has(self.holder) == has(oldSelf.holder) && (!has(self.holder) || ${same('self.holder', 'oldSelf.holder')})`;

/** Whether the guest goes to another object, or went there. */
const across = (record: string): string => `(has(${record}.across) && ${record}.across)`;
/** Whether it went. */
const away = (record: string): string => `(${across(record)} && !has(${record}.successor))`;

const RULES: readonly ValidationRule[] = [
  {
    rule: `!has(self.successor) || (has(self.holder) && !${same('self.successor', 'self.holder')})`,
    message: 'a successor is somebody else than the holder, who must be there to name it',
    fieldPath: '.successor',
  },
  {
    rule: 'self.epoch >= oldSelf.epoch',
    message: 'the epoch may only grow',
    fieldPath: '.epoch',
  },
  {
    rule: `self.epoch > oldSelf.epoch || (${HOLDER_STAYS})`,
    message: 'the holder may only change with a new epoch',
  },
  {
    rule: `self.epoch > oldSelf.epoch || !has(self.successor) || !has(oldSelf.successor) || ${same('self.successor', 'oldSelf.successor')}`,
    message: 'a successor may not be exchanged for another: the first must be aborted',
  },
  {
    rule: 'self.epoch == oldSelf.epoch || !has(self.successor)',
    message: 'a new epoch begins without a successor',
  },
  {
    rule: `self.epoch != oldSelf.epoch + 1 || !has(self.holder) || !has(oldSelf.holder) || ${same('self.holder', 'oldSelf.holder')} || (has(oldSelf.successor) && ${same('self.holder', 'oldSelf.successor')})`,
    message: 'the right passes only from nobody, to nobody, or to the successor that was reserved',
  },
  {
    rule: `self.epoch <= oldSelf.epoch + 1 || (${HOLDER_STAYS})`,
    message: 'an epoch that is raised by more than one changes no holder',
  },
  {
    rule: 'self.epoch > oldSelf.epoch || (has(self.volumes) == has(oldSelf.volumes) && (!has(self.volumes) || self.volumes == oldSelf.volumes))',
    message: 'volumes are on other claims only with a new epoch',
    fieldPath: '.volumes',
  },
  {
    rule: `!${across('self')} || has(self.holder)`,
    message: 'a guest goes to another object only from a holder, or to one',
    fieldPath: '.across',
  },
  {
    rule: `self.epoch > oldSelf.epoch || (${away('self')} == ${away('oldSelf')} && (!has(self.successor) || !has(oldSelf.successor) || ${across('self')} == ${across('oldSelf')}))`,
    message: 'whether the successor executes the guest of another object is said when it is reserved',
    fieldPath: '.across',
  },
  {
    rule: `self.epoch == oldSelf.epoch || !has(self.holder) || !has(oldSelf.holder) || ${across('self')} == (${same('self.holder', 'oldSelf.holder')} ? ${away('oldSelf')} : ${across('oldSelf')})`,
    message: 'only the successor in another object executes its guest there',
    fieldPath: '.across',
  },
];

/** The record in a guest's status. */
export const rightToRun = object(
  'Who may execute the guest. Changed only along the transitions of the protocol.',
  {
    epoch: needed(long('Grows by one whenever the right changes hands or is confirmed.', { minimum: 1 })),
    holder: runner('Who may execute the guest; nobody when absent.'),
    successor: runner('Who may be granted the right next.'),
    across: flag('Whether that one, or the holder that it became, executes the guest of another object than this.'),
    volumes,
  },
  { 'x-kubernetes-validations': RULES },
);

export type RightToRun = Infer<typeof rightToRun>;
export type Runner = NonNullable<RightToRun['holder']>;

/** For the whole object: a record that exists is never removed, since that would let an old epoch begin again. */
export const RIGHT_TO_RUN_STAYS: ValidationRule = {
  rule: '!has(oldSelf.status) || !has(oldSelf.status.rightToRun) || (has(self.status) && has(self.status.rightToRun))',
  message: 'the right to run may not be forgotten',
  fieldPath: '.status.rightToRun',
};

/** What a VirtualMachine remembers of its guests' right, since they can be deleted and made anew. */
export const rememberedRight = object(
  'What is remembered of the right to run from one guest to the next.',
  {
    epoch: needed(long('The last epoch of any guest of this machine.', { minimum: 1 })),
    grantedAway: flag('Whether the guest went to another cluster or namespace: it must not start here again.'),
    volumes,
  },
  {
    'x-kubernetes-validations': [
      { rule: 'self.epoch >= oldSelf.epoch', message: 'the epoch may only grow', fieldPath: '.epoch' },
    ],
  },
);
