import type { VirtualMachineInstanceStatus } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { GuestAgentClient } from './guest-agent-client.ts';

/** What is told of a guest by its own word. */
export interface GuestAgentInfo {
  /** The agent's version. */
  readonly version: string;
  readonly hostname: string;
  readonly os: NonNullable<VirtualMachineInstanceStatus['guestOSInfo']>;
}

/** No name or version is longer, and everybody who reads the guest reads it. */
const TEXT_LENGTH_MAX = 256;

const OS_FIELDS = {
  id: 'id',
  name: 'name',
  prettyName: 'pretty-name',
  version: 'version',
  versionId: 'version-id',
  kernelRelease: 'kernel-release',
  kernelVersion: 'kernel-version',
  machine: 'machine',
} as const;

/** Asks an agent all that is told of its guest. Rejects with a GuestAgentError where it does not answer. */
export async function askInfo(client: GuestAgentClient): Promise<GuestAgentInfo> {
  await client.sync();
  // One question at a time.
  const information = await client.ask('guest-info');
  const system = await client.ask('guest-get-osinfo');
  const host = await client.ask('guest-get-host-name');
  const fields = Object.entries(OS_FIELDS).map(([field, name]) => [field, textIn(system, name)]);
  return {
    version: textIn(information, 'version'),
    hostname: textIn(host, 'host-name'),
    os: Object.fromEntries(fields.filter(([, value]) => value !== '')) as GuestAgentInfo['os'],
  };
}

/** A text of one line, shortened; empty where the guest does not say it. */
function textIn(answer: unknown, field: string): string {
  if (typeof answer !== 'object' || answer === null || !Object.hasOwn(answer, field)) return '';
  const value = (answer as Readonly<Record<string, unknown>>)[field];
  if (typeof value !== 'string') return '';
  const printable = value.slice(0, TEXT_LENGTH_MAX).replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, ' ');
  return printable.trim();
}
