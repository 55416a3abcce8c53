import { choice, flag, type Infer, listOf, long, mapOf, moment, needed, object, text } from '../typed-schema.ts';

/**
 * What two halves of a migration have to know of each other beyond what KubeVirt lets them tell: Godwit's own fields of
 * `migrationState.sourceState` and `targetState`. All of it has limits, since one half is written by another cluster.
 */

const KEYS_MAX = 8;
/** SHA-256 in base64. */
const KEY_PATTERN = '^[A-Za-z0-9+/]{43}=$';
const VOLUMES_MAX = 256;
const NAME_LENGTH_MAX = 253;
/** Of what is said of a half's end: whoever says more is not heard. */
export const WORD_LENGTH_MAX = 128;
export const SENTENCE_LENGTH_MAX = 2048;
const INTERFACES_MAX = 64;

/** By which keys the agent of a side is known to the other's, for this migration and no other. */
export const agentKeys = listOf(
  "SHA-256 of the public keys by which the node's agent is known, in base64.",
  text('A key.', { pattern: KEY_PATTERN, maxLength: 44 }),
  { maxItems: KEYS_MAX },
);

/** What a side's node keeps free for the migration. */
export const slotState = choice('Whether a slot is kept for it, or is its own for good.', [
  'reserved',
  'committed',
] as const);

/** Said by a source. A guest that went ahead of its memory waits for the rest in vain then. */
export const sourceEnd = flag('Whether its machine ended before all memory was known to be over: none comes any more.');

/** The disks of a side, by the names of their volumes. */
export const halfVolumes = listOf(
  "The guest's disks on this side.",
  object('A disk.', {
    name: needed(text('Name of the volume.', { maxLength: NAME_LENGTH_MAX })),
    sizeBytes: needed(long('Its size.', { minimum: 0 })),
    isBlock: needed(flag('Whether it is a block device, and no file.')),
  }),
  { maxItems: VOLUMES_MAX },
);

/** What stays the guest's wherever it runs. */
export const guestIdentity = object('What the guest takes along.', {
  firmwareUUID: text("The firmware's UUID.", { maxLength: WORD_LENGTH_MAX }),
  firmwareSerial: text("The firmware's serial number.", { maxLength: WORD_LENGTH_MAX }),
  macAddresses: {
    ...mapOf('MAC addresses by the names of their interfaces.', text('An address.', { maxLength: WORD_LENGTH_MAX })),
    maxProperties: INTERFACES_MAX,
  },
});

/** How a half ended. Only its own side says so. */
export const halfVerdict = object('How the migration ended on this side.', {
  phase: needed(choice('The verdict.', ['Succeeded', 'Failed'] as const)),
  reason: text('One word for why it failed.', { maxLength: WORD_LENGTH_MAX }),
  message: text('Why it failed.', { maxLength: SENTENCE_LENGTH_MAX }),
  time: moment('When.'),
});

export type HalfVerdict = Infer<typeof halfVerdict>;
export type HalfVolume = Infer<typeof halfVolumes>[number];
export type GuestIdentity = Infer<typeof guestIdentity>;
