import { HypervisorError } from '../hypervisor.ts';
import type { CopyMethod, CopyTarget, MigrationLimits, SendOptions } from '../migration.ts';

/** What QEMU is told about a migration before it begins: functions of our options alone. */

type Arguments = Readonly<Record<string, unknown>>;

/** By what QEMU knows the credentials of a migration, and the peer that they must show. */
export const TLS_OBJECT = 'migration-tls';
export const PEER_OBJECT = 'migration-peer';

/** More streams than this help nobody, and QEMU takes no more than 255. */
const CHANNELS_MAX = 64;
/** QEMU has no word for no limit; JSON has no greater number. */
const UNLIMITED_BYTES_PER_SECOND = Number.MAX_SAFE_INTEGER;

/** The arguments of `migrate-set-capabilities` for a target. */
export function targetCapabilities(options: CopyMethod): Arguments {
  // Its disks may still be the source's until its guest is continued.
  return capabilities({ ...common(options), 'late-block-activate': true });
}

/** The arguments of `migrate-set-capabilities` for a source; all are named, as QEMU keeps those of the last attempt. */
export function sourceCapabilities(options: SendOptions): Arguments {
  return capabilities({
    ...common(options),
    'pause-before-switchover': true,
    'auto-converge': options.allowsAutoConverge,
  });
}

function common({ allowsPostCopy, channels }: CopyMethod): Readonly<Record<string, boolean>> {
  // Some versions of QEMU take both, and corrupt the guest.
  if (allowsPostCopy && channels)
    throw new HypervisorError('Refused', 'memory cannot be copied over several channels where post-copy is allowed');
  return {
    events: true,
    // Without it a source says that all is over when its target has refused the last of it.
    'return-path': true,
    'postcopy-ram': allowsPostCopy,
    multifd: channels !== undefined,
  };
}

function capabilities(states: Readonly<Record<string, boolean>>): Arguments {
  return { capabilities: Object.entries(states).map(([capability, state]) => ({ capability, state })) };
}

/** The arguments of `migrate-set-parameters` for a target. */
export function targetParameters({ tls, channels }: CopyMethod): Arguments {
  return {
    ...channelParameters(channels),
    'tls-creds': tls ? TLS_OBJECT : '',
    ...(tls && { 'tls-authz': PEER_OBJECT }),
  };
}

/** The arguments of `migrate-set-parameters` for a source. */
export function sourceParameters({ tls, channels, limits }: SendOptions): Arguments {
  return {
    ...channelParameters(channels),
    ...limitParameters(limits),
    'tls-creds': tls ? TLS_OBJECT : '',
    'tls-hostname': tls ? peerName(tls.peer) : '',
  };
}

function channelParameters(channels: CopyMethod['channels']): Arguments {
  if (!channels) return {};
  const { count, compression } = channels;
  if (!Number.isInteger(count) || count < 1 || count > CHANNELS_MAX)
    throw new HypervisorError('Refused', `memory cannot be copied over ${count} channels`);
  return { 'multifd-channels': count, 'multifd-compression': compression };
}

/** The arguments of `migrate-set-parameters` that change limits. */
export function limitParameters({ bandwidthBytesPerSecond, downtimeMs }: Partial<MigrationLimits>): Arguments {
  for (const limit of [bandwidthBytesPerSecond, downtimeMs])
    if (limit !== undefined && !(limit >= 0)) throw new HypervisorError('Refused', `${limit} is no limit`);
  const bandwidth =
    bandwidthBytesPerSecond === undefined
      ? undefined
      : Math.round(bandwidthBytesPerSecond) || UNLIMITED_BYTES_PER_SECOND;
  return {
    // Pages that a guest waits for in post-copy are sent ahead of any limit.
    ...(bandwidth !== undefined && { 'max-bandwidth': bandwidth, 'max-postcopy-bandwidth': bandwidth }),
    ...(downtimeMs !== undefined && { 'downtime-limit': Math.round(downtimeMs) }),
  };
}

/** Checks that a name means the same in a certificate and in a distinguished name. */
export function peerName(name: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9.:_-]{0,252}$/.test(name)) return name;
  throw new HypervisorError('Refused', `${JSON.stringify(name)} cannot be the name of the other side`);
}

/** An address as QEMU's URIs have it; paths are seen from the directory that QEMU was started in. */
export function migrationUri(target: CopyTarget): string {
  if ('path' in target) return `unix:${target.path}`;
  const { host, port } = target;
  if (!/^[A-Za-z0-9.:_%-]+$/.test(host)) throw new HypervisorError('Refused', `${JSON.stringify(host)} is no address`);
  return `tcp:${host.includes(':') ? `[${host}]` : host}:${port}`;
}
