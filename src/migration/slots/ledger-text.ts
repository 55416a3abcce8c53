import type { SlotLedger, SlotLimits } from './ledger.ts';
import type { MigrationKind, MigrationReference, SlotHolder, SlotState } from './request.ts';

/** The ledger as people and machines read it: one line of JSON for the limits, and one for each holder. */

export interface LedgerText {
  readonly limits: string;
  readonly holders: string;
}

/** A ledger that makes no sense. Nobody guesses what it may have said: whoever deletes it has it made anew. */
export class LedgerTextError extends Error {
  constructor(message: string, cause?: unknown) {
    super(`the ledger of migration slots cannot be read: ${message}`, { cause });
    this.name = 'LedgerTextError';
  }
}

export function formatLedger({ limits, limitsVersion, holders }: SlotLedger): LedgerText {
  const { perCluster, outboundPerNode, inboundPerNode } = limits;
  return {
    limits: JSON.stringify({ perCluster, outboundPerNode, inboundPerNode, version: limitsVersion }),
    holders: [...holders.values()].map(lineOf).join(''),
  };
}

/** Holders never change, and most are written down again and again. */
const lines = new WeakMap<SlotHolder, string>();

function lineOf(holder: SlotHolder): string {
  const known = lines.get(holder);
  if (known !== undefined) return known;
  const { sinceMs, uid, kind, state, members, sourceNode, targetNode } = holder;
  const since = new Date(sinceMs).toISOString();
  const line = `${JSON.stringify({ uid, kind, state, since, sourceNode, targetNode, members })}\n`;
  lines.set(holder, line);
  return line;
}

/** Throws LedgerTextError. */
export function parseLedger(text: Partial<LedgerText>): SlotLedger {
  const fields = fieldsOf(text.limits ?? '');
  const limits: SlotLimits = {
    perCluster: countAt(fields, 'perCluster'),
    outboundPerNode: countAt(fields, 'outboundPerNode'),
    inboundPerNode: countAt(fields, 'inboundPerNode'),
  };
  const holders = new Map<string, SlotHolder>();
  for (const line of (text.holders ?? '').split('\n')) {
    if (line === '') continue;
    const holder = parseHolder(line);
    if (holders.has(holder.uid)) throw new LedgerTextError(`${holder.uid} is in it twice`);
    holders.set(holder.uid, holder);
  }
  return { limits, limitsVersion: textAt(fields, 'version'), holders };
}

type Fields = ReadonlyMap<string, unknown>;

const KINDS: readonly MigrationKind[] = ['local', 'send', 'receive'];
const STATES: readonly SlotState[] = ['reserved', 'committed'];

function parseHolder(line: string): SlotHolder {
  const fields = fieldsOf(line);
  const kind = choiceAt(fields, 'kind', KINDS);
  const sourceNode = fields.get('sourceNode') === undefined ? undefined : textAt(fields, 'sourceNode');
  if ((sourceNode === undefined) !== (kind === 'receive')) throw new LedgerTextError(`who ${kind}s leaves a node`);
  const members = fields.get('members');
  if (!Array.isArray(members) || members.length === 0) throw new LedgerTextError('a holder has no members');
  return {
    uid: textAt(fields, 'uid'),
    kind,
    members: members.map(parseMember),
    sourceNode,
    targetNode: fields.get('targetNode') === undefined ? undefined : textAt(fields, 'targetNode'),
    state: choiceAt(fields, 'state', STATES),
    sinceMs: timeAt(fields, 'since'),
  };
}

function parseMember(member: unknown): MigrationReference {
  const fields = mapOf(member);
  return { namespace: textAt(fields, 'namespace'), name: textAt(fields, 'name'), uid: textAt(fields, 'uid') };
}

function fieldsOf(line: string): Fields {
  try {
    return mapOf(JSON.parse(line));
  } catch (error) {
    if (error instanceof LedgerTextError) throw error;
    throw new LedgerTextError('a line is no JSON', error);
  }
}

function mapOf(value: unknown): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new LedgerTextError('no object');
  return new Map(Object.entries(value));
}

function textAt(fields: Fields, name: string): string {
  const value = fields.get(name);
  if (typeof value !== 'string' || value === '') throw new LedgerTextError(`${name} is no text`);
  return value;
}

function countAt(fields: Fields, name: string): number {
  const value = fields.get(name);
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw new LedgerTextError(`${name} is no count`);
  return value as number;
}

function timeAt(fields: Fields, name: string): number {
  const timeMs = Date.parse(textAt(fields, name));
  if (Number.isNaN(timeMs)) throw new LedgerTextError(`${name} is no time`);
  return timeMs;
}

function choiceAt<T extends string>(fields: Fields, name: string, choices: readonly T[]): T {
  const value = choices.find((choice) => choice === fields.get(name));
  if (value === undefined) throw new LedgerTextError(`${name} is none of ${choices.join(', ')}`);
  return value;
}
