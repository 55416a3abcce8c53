import { expect } from 'vitest';
import type { Anything, Api, EventStream } from './api.ts';
import { eventually } from './eventually.ts';

/** How many guests move at once, as a watch of migrations tells it, and what the controllers have written down of that. */

const SLOTS = '/api/v1/namespaces/kubevirt/configmaps/godwit-migration-slots';

/** Two migrations that are one move count as one. */
export const isOtherHalf = ({ spec }: Anything): boolean => spec.receive !== undefined;

/** Whether it has been handed to the agents: one that waits for room at its target has no slot until then. */
const isMoving = ({ status }: Anything): boolean =>
  ['PreparingTarget', 'TargetReady', 'Running'].includes(status?.phase);

/** The most that were seen to move at once, in all, from one node and to one node. */
export function mostAtOnce({ events }: EventStream): { all: number; from: number; to: number } {
  const now = new Map<string, Anything>();
  const found = { all: 0, from: 0, to: 0 };
  for (const { type, object } of events) {
    if (isOtherHalf(object)) continue;
    if (type === 'DELETED') now.delete(object.metadata.name);
    else now.set(object.metadata.name, object);
    const moving = [...now.values()].filter(isMoving);
    found.all = Math.max(found.all, moving.length);
    for (const [side, field] of [
      ['from', 'sourceNode'],
      ['to', 'targetNode'],
    ] as const) {
      const nodes = moving.map(({ status }) => status.migrationState?.[field]).filter((node) => node !== undefined);
      for (const node of nodes) found[side] = Math.max(found[side], nodes.filter((each) => each === node).length);
    }
  }
  return found;
}

/** Waits until no migration has a slot any more. */
export async function noSlotIsTaken(api: Api): Promise<void> {
  await eventually(async () => {
    const { json } = (await api.request('GET', SLOTS)).expect(200);
    expect(json.data.holders ?? '').toBe('');
  });
}
