import type { RightToRun, Runner } from '../../api/kubevirt/right-to-run.ts';
import type {
  CdromSpec,
  CpuSpec,
  DevicePlace,
  DiskSpec,
  KernelSpec,
  MachineSpec,
  NetworkSpec,
  PortForward,
} from '../../hypervisor/machine.ts';
import type { MigrationAddress, MultipleChannels } from '../../hypervisor/migration.ts';
import type { Across, Attempt } from '../../migration/right-to-run/attempt.ts';
import type { Message } from '../../migration/right-to-run/plan.ts';
import type { CopySecrets } from './copy-relays.ts';
import type {
  AllowedPorts,
  DescribedMachine,
  Opened,
  PeerAnswer,
  PeerRequest,
  SourceCredentials,
  WantedMethod,
} from './peer.ts';
import { choice, flag, integer, listOf, mapOf, oneOf, optional, type Reader, shape, text } from './reader.ts';

/** Requests and answers as they are read from the wire. Both sides are nodes; neither believes the other's every word. */

const NAME_LENGTH_MAX = 253;
const UID_LENGTH_MAX = 128;
const PATH_LENGTH_MAX = 4096;
const PEM_LENGTH_MAX = 16 * 1024;
const VOLUMES_MAX = 256;
const DEVICES_MAX = 256;
const FORWARDS_MAX = 1024;
const FEATURES_MAX = 1024;
const PLACES_MAX = 4096;
const LETTERS_MAX = 8;
const CHANNELS_MAX = 64;
const SECRET_LENGTH_MAX = 64;
const DAY_MS = 86_400_000;

const uid = text(UID_LENGTH_MAX);
const port = integer(1, 65_535);
const count = integer(0, Number.MAX_SAFE_INTEGER);
const path = text(PATH_LENGTH_MAX);
const word = text(NAME_LENGTH_MAX);

const runner = shape<Runner>({ node: word, nodeUID: uid, podUID: uid });

type Volume = NonNullable<RightToRun['volumes']>[number];
const volume = shape<Volume>({ name: word, claimUID: uid, imageEpoch: count });

const epoch = integer(1, Number.MAX_SAFE_INTEGER);

const attempt = shape<Attempt>({
  epoch,
  source: runner,
  target: runner,
  sourceMigrationUID: uid,
  targetMigrationUID: uid,
  volumes: optional(listOf(volume, VOLUMES_MAX) as Reader<Volume[]>),
  across: optional(shape<Across>({ targetEpoch: epoch })),
  // Each side has its own, and nobody is told where to write what.
  images: () => undefined,
});

const message = shape<Message>({
  kind: choice('grant', 'taken', 'refused', 'aborted', 'please-refuse', 'is-it-over'),
  attempt,
  isPostCopy: optional(flag),
  isPaused: optional(flag),
});

const place = shape<DevicePlace>({
  bus: choice('virtio', 'sata', 'virtio-mmio'),
  at: integer(0, PLACES_MAX),
});
const cardPlace = shape<NetworkSpec['place']>({
  bus: choice('virtio', 'virtio-mmio'),
  at: integer(0, PLACES_MAX),
});

const channels = shape<MultipleChannels>({ count: integer(1, CHANNELS_MAX), compression: choice('none', 'zstd') });

const method = shape<WantedMethod>({ allowsPostCopy: flag, channels: optional(channels), isEncrypted: flag });

const request = oneOf<PeerRequest>({
  open: shape({
    kind: choice('open'),
    attempt,
    method,
    ports: optional(shape<AllowedPorts>({ first: port, last: port })),
    copiedDisks: listOf(place, DEVICES_MAX),
  }),
  look: shape({ kind: choice('look'), attempt }),
  letter: shape({ kind: choice('letter'), message, stoppedForMs: optional(integer(0, DAY_MS)) }),
  'listen-again': shape({ kind: choice('listen-again'), attempt }),
});

const cpu = shape<CpuSpec>({
  model: word,
  features: optional(listOf(shape({ name: word, isEnabled: flag }), FEATURES_MAX)),
  sockets: count,
  socketsMax: optional(count),
  cores: count,
  threads: count,
});

const disk = shape<DiskSpec>({
  volume: optional(word),
  place,
  path,
  claim: optional(shape({ name: word, uid: word })),
  format: choice('raw', 'qcow2'),
  isDevice: optional(flag),
  sizeBytes: optional(count),
  cache: choice('none', 'writeback', 'writethrough'),
  isReadOnly: optional(flag),
  serial: optional(text(NAME_LENGTH_MAX, 0)),
  bootOrder: optional(count),
});

const cdrom = shape<CdromSpec>({
  volume: optional(word),
  port: integer(0, PLACES_MAX),
  path,
  format: optional(choice('raw', 'qcow2')),
  isDevice: optional(flag),
  sizeBytes: optional(count),
  bootOrder: optional(count),
});

const forward = shape<PortForward>({
  protocol: choice('tcp', 'udp'),
  hostAddress: word,
  hostPort: integer(0, 65_535),
  guestPort: integer(0, 65_535),
});

const network = shape<NetworkSpec>({
  place: cardPlace,
  mac: word,
  backend: oneOf<NetworkSpec['backend']>({
    user: shape({ kind: choice('user'), forwards: listOf(forward, FORWARDS_MAX) }),
    tap: shape({ kind: choice('tap'), interfaceName: word }),
  }),
});

const kernel = shape<KernelSpec>({
  path,
  initrdPath: optional(path),
  commandLine: optional(text(PATH_LENGTH_MAX, 0)),
});

const spec = shape<MachineSpec>({
  name: text(2 * NAME_LENGTH_MAX),
  uuid: uid,
  serial: optional(text(NAME_LENGTH_MAX, 0)),
  machineType: word,
  accelerator: choice('kvm', 'tcg'),
  cpu,
  memoryBytes: count,
  memoryRoom: optional(shape({ unitBytes: count, slots: count, plugged: count })),
  disks: optional(listOf(disk, DEVICES_MAX)),
  cdroms: optional(listOf(cdrom, DEVICES_MAX)),
  networks: optional(listOf(network, DEVICES_MAX)),
  kernel: optional(kernel),
  agentPlace: optional(cardPlace),
  incoming: optional(shape({ ramBytes: count })),
});

const machine = shape<DescribedMachine>({
  spec,
  ramBytes: count,
  processorCount: optional(count),
  pluggedMemory: optional(count),
  diskBytes: optional(mapOf(count, DEVICES_MAX, NAME_LENGTH_MAX)),
});

const pem = text(PEM_LENGTH_MAX);
const credentials = shape<SourceCredentials>({ authorityPem: pem, certificatePem: pem, keyPem: pem, peer: word });

const secrets = shape<CopySecrets>({
  memory: listOf(text(SECRET_LENGTH_MAX), CHANNELS_MAX + 1),
  disks: listOf(text(SECRET_LENGTH_MAX), DEVICES_MAX),
});

const opened = shape<Opened>({
  host: word,
  memoryPort: port,
  disksPort: optional(port),
  credentials: optional(credentials),
  secrets: optional(secrets),
  isPostCopyPossible: flag,
  machine,
  diskFiles: optional(mapOf(text(PATH_LENGTH_MAX), DEVICES_MAX, NAME_LENGTH_MAX)),
});

const answer = shape<PeerAnswer>({
  machine: choice('running', 'paused', 'postmigrate', 'inmigrate', 'postcopy', 'dead', 'unknown'),
  letters: listOf(message, LETTERS_MAX),
  opened: optional(opened),
  listening: optional(shape<MigrationAddress>({ host: word, port })),
});

/** What another agent asks. Throws a ShapeError. */
export function parseRequest(sent: unknown): PeerRequest {
  return request(sent, '');
}

/** What another agent answers. Throws a ShapeError. */
export function parseAnswer(sent: unknown): PeerAnswer {
  return answer(sent, '');
}
