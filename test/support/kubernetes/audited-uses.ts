import { randomUUID } from 'node:crypto';
import { createReadStream, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { SYSTEM_NAMESPACE } from '../../../src/api/kubevirt/well-known.ts';
import { NODES_GROUP } from '../../../src/machinery/node-user.ts';
import type { Use } from './unused-rights.ts';

/** What Godwit's components have used of their rights, by the audit logs of API servers. */

/** As in audit.k8s.io/v1, at the level Metadata. */
interface AuditEvent {
  readonly verb: string;
  /** Without a name where nobody knows who it was. */
  readonly user: { readonly username?: string; readonly groups?: readonly string[] };
  readonly userAgent?: string;
  readonly objectRef?: {
    readonly apiGroup?: string;
    readonly resource?: string;
    readonly subresource?: string;
    readonly name?: string;
    readonly namespace?: string;
  };
  readonly responseStatus?: { readonly code?: number };
  readonly requestURI?: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** What our clients call themselves: kubelets and tests, which are the same users, do not. */
const OURS = '/godwit';
const ACCOUNTS = `system:serviceaccount:${SYSTEM_NAMESPACE}:`;

/** What a line of an audit log shows that a component of ours has used; nothing where it was refused, or somebody else's. */
export function usesIn(line: string): Use[] {
  if (!line.includes(OURS)) return [];
  const event = eventOf(line);
  const { resource, subresource, apiGroup: group = '', name = '', namespace = '' } = event?.objectRef ?? {};
  const code = event?.responseStatus?.code ?? 0;
  const holder = event && holderOf(event);
  if (!event?.userAgent?.endsWith(OURS) || holder === undefined || resource === undefined) return [];
  if (code === 0 || code >= 400) return [];
  const what = subresource === undefined ? resource : `${resource}/${subresource}`;
  const use = { holder, verb: event.verb, group, resource: what, name, namespace };
  // Who applies what is not there needs the right to create it, too.
  return event.verb === 'patch' && code === 201 ? [use, { ...use, verb: 'create' }] : [use];
}

/** What a line of an audit log shows that a component of ours was forbidden to do. */
export function refusalIn(line: string): string | undefined {
  if (!line.includes(ACCOUNTS)) return undefined;
  const { user, annotations, verb, requestURI } = eventOf(line) ?? {};
  const isOurs = user?.username?.startsWith(ACCOUNTS) === true;
  return isOurs && annotations?.[DECISION] === 'forbid' ? `${user.username} ${verb} ${requestURI}` : undefined;
}
const DECISION = 'authorization.k8s.io/decision';

function eventOf(line: string): AuditEvent | undefined {
  try {
    return JSON.parse(line) as AuditEvent;
  } catch {
    // A server that was killed has not finished it.
    return undefined;
  }
}

/** All nodes are one: their rights are those of their group. */
function holderOf({ user: { username, groups = [] } }: AuditEvent): string | undefined {
  if (groups.includes(NODES_GROUP)) return NODES_GROUP;
  return username?.startsWith(ACCOUNTS) ? username : undefined;
}

/** The lines of an audit log, and of what was moved aside as it grew. */
async function* linesOf(logDirectory: string, logName: string): AsyncGenerator<string> {
  const stem = logName.replace(/\.log$/, '');
  const isOfLog = (name: string): boolean => name === logName || (name.startsWith(`${stem}-`) && name.endsWith('.log'));
  for (const name of readdirSync(logDirectory).filter(isOfLog))
    yield* createInterface({ input: createReadStream(join(logDirectory, name), 'utf8') });
}

/** Writes a file into a directory with what this audit log shows. */
export async function collectUses(logDirectory: string, logName: string, into: string): Promise<void> {
  const uses = new Set<string>();
  for await (const line of linesOf(logDirectory, logName))
    for (const use of usesIn(line)) uses.add(JSON.stringify(use));
  mkdirSync(into, { recursive: true });
  writeFileSync(join(into, randomUUID()), [...uses].join('\n'));
}

/** All that our components were forbidden to do, by this audit log. */
export async function refusals(logDirectory: string, logName: string): Promise<string[]> {
  const found: string[] = [];
  for await (const line of linesOf(logDirectory, logName))
    found.push(...[refusalIn(line)].filter((each) => each !== undefined));
  return found;
}

/** All that was collected into the directory. */
export function collectedUses(directory: string): Use[] {
  const lines = readdirSync(directory).flatMap((name) => readFileSync(join(directory, name), 'utf8').split('\n'));
  return [...new Set(lines)].filter((line) => line !== '').map((line) => JSON.parse(line) as Use);
}
