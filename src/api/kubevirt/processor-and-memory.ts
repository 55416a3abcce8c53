import { count, flag, type Infer, kept, listOf, mapOf, needed, object, quantity, text } from '../typed-schema.ts';

/** What a guest computes with, and what its launcher pod asks of the node for that. */

const cpuFeature = object('A feature of the processor.', {
  name: needed(text('Its name.')),
  policy: text('force, require, optional, disable or forbid; require by default.'),
});

/** The processor that a guest sees. */
export const cpu = object('The processor that the guest sees.', {
  sockets: count('Sockets; each has all the cores.'),
  cores: count('Cores of each socket.'),
  threads: count('Threads of each core.'),
  maxSockets: count('Sockets that there may be once more are plugged in.'),
  model: text('Model: a name that QEMU knows, host-model or host-passthrough.'),
  features: listOf('Features that the model has, or has not, of its own.', cpuFeature),
  dedicatedCpuPlacement: flag("Whether processors of the node are the guest's alone."),
  isolateEmulatorThread: flag("Whether QEMU's own work gets a processor of its own."),
  numa: kept("How the guest's memory follows that of the node."),
  realtime: kept('Which processors run in real time.'),
});

/** The memory that a guest sees. */
export const memory = object('The memory that the guest sees.', {
  guest: quantity('How much the guest sees.'),
  maxGuest: quantity('How much it may see once more is plugged in.'),
  hugepages: object('Takes the memory from huge pages.', { pageSize: text('Size of the pages, such as 2Mi.') }),
  reservedOverhead: kept('Memory that is added to what the launcher asks for.'),
});

/** What the launcher pod asks for. */
export const resources = object('What the launcher pod asks of the node, for the guest.', {
  requests: mapOf('What it is sure to get.', quantity('An amount.')),
  limits: mapOf('What it may use at most.', quantity('An amount.')),
  overcommitGuestOverhead: flag('Whether the memory that QEMU itself needs is left out of what is asked for.'),
});

/** How many processors a guest has now. */
export const cpuTopology = object('How many processors the guest has.', {
  sockets: count('Sockets.'),
  cores: count('Cores of each socket.'),
  threads: count('Threads of each core.'),
});

/** How much memory a guest has now. */
export const memoryStatus = object('How much memory the guest has.', {
  guestAtBoot: quantity('What it started with.'),
  guestCurrent: quantity('What it has.'),
  guestRequested: quantity('What it was asked to have.'),
  memoryOverhead: quantity('What QEMU takes beside it.'),
});

export type Cpu = Infer<typeof cpu>;
