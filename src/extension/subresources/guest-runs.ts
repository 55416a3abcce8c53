import type { GuestRun } from '../../api/guest-run.ts';
import { ApiError } from '../../api/status.ts';
import type { Logger } from '../../env/ports.ts';
import { type Agents, guestPath, textOf } from './agents.ts';

/** Which nodes a guest was on, and in which order. */

/** A guest's name, whichever guest has it now. */
export interface GuestName {
  readonly namespace: string;
  readonly name: string;
}

/** A run, and the node that has its log. */
export interface FoundRun extends GuestRun {
  readonly node: string;
}

export interface Whereabouts {
  /** The node that the guest is on, if it is on one: what that one has is not done without. */
  readonly current: string | undefined;
  /** All nodes that may have something. */
  readonly nodes: readonly string[];
}

/** Nodes that are asked at once. */
const NODES_AT_ONCE_MAX = 16;

/**
 * All runs of guests of a name, in the order in which they were. Nodes that cannot be reached are left out, unless the
 * guest is there now.
 */
export async function findRuns(
  agents: Agents,
  of: GuestName,
  { current, nodes }: Whereabouts,
  log: Logger,
  signal: AbortSignal,
): Promise<FoundRun[]> {
  const left = new Set(current === undefined ? nodes : [current, ...nodes]).values();
  const found: FoundRun[] = [];
  const askOn = async (): Promise<void> => {
    for (const node of left) {
      try {
        found.push(...(await runsOn(agents, node, of, signal)));
      } catch (error) {
        if (signal.aborted || node === current) throw error;
        // Its machine may be off; what the others have is worth having without it.
        log.debug('no serial log from a node', { node, error: String(error) });
      }
    }
  };
  await Promise.all(Array.from({ length: NODES_AT_ONCE_MAX }, askOn));
  return inOrder(found);
}

async function runsOn(agents: Agents, node: string, of: GuestName, signal: AbortSignal): Promise<FoundRun[]> {
  const path = guestPath(of.namespace, of.name, 'runs');
  const { status, body } = await agents.send(node, { method: 'GET', path, signal });
  const text = await textOf(body);
  if (status === 404) return [];
  const runs = status === 200 ? parsedRuns(text) : undefined;
  if (!runs) throw new ApiError(502, 'InternalError', `node ${node} answered ${status}: ${text.slice(0, 200)}`);
  return runs.map((run) => ({ ...run, node }));
}

/** Undefined for what no agent says. */
function parsedRuns(text: string): GuestRun[] | undefined {
  try {
    const { runs } = JSON.parse(text) as { runs?: unknown };
    return Array.isArray(runs) && runs.every(isRun) ? runs : undefined;
  } catch {
    return undefined;
  }
}

function isRun(value: unknown): value is GuestRun {
  const { podUID, guestUID, startedAtMs, machineUID, epoch, isLive } = (value ?? {}) as Partial<GuestRun>;
  const isOrdered =
    machineUID === undefined ? epoch === undefined : typeof machineUID === 'string' && Number.isSafeInteger(epoch);
  const isNamed = typeof podUID === 'string' && typeof guestUID === 'string';
  return isNamed && typeof startedAtMs === 'number' && isOrdered && typeof isLive === 'boolean';
}

/**
 * By epochs, which count the runs of one virtual machine wherever they were; clocks of nodes, which may differ, only tell
 * one virtual machine from the next of the same name.
 */
function inOrder(runs: readonly FoundRun[]): FoundRun[] {
  const lives = new Map<string, FoundRun[]>();
  for (const run of runs) {
    const life = run.machineUID === undefined ? `guest ${run.guestUID}` : `machine ${run.machineUID}`;
    lives.set(life, [...(lives.get(life) ?? []), run]);
  }
  const startOf = (life: readonly FoundRun[]): number => Math.min(...life.map(({ startedAtMs }) => startedAtMs));
  return [...lives.values()]
    .map((life) => life.toSorted((a, b) => (a.epoch ?? 0) - (b.epoch ?? 0) || a.startedAtMs - b.startedAtMs))
    .toSorted((a, b) => startOf(a) - startOf(b))
    .flat();
}

/** Whether the second run is the first one's guest, moved: it may go on in the middle of a line. */
export function goesOn(before: GuestRun, next: GuestRun): boolean {
  const { machineUID, epoch } = before;
  return machineUID !== undefined && machineUID === next.machineUID && next.epoch === (epoch ?? 0) + 1;
}
