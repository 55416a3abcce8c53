import type { Lease } from '../../kube/leader-lease.ts';
import type { Node } from '../../migration/fit/objects.ts';
import { readinessOf, readyConditionOf } from './conditions.ts';

/**
 * Since when nothing has been heard of nodes. A sign of life is any change of a node's heartbeat or of its lease, at
 * the moment in which this process sees it: what times are written in them is the node's clock's business. A process
 * that starts has heard of every node just now.
 */

interface Health {
  readonly uid: string | undefined;
  heartbeat: string | undefined;
  renewal: string | undefined;
  heardMs: number;
}

/** How long a node may be silent. */
const GRACE_MS = 50_000;
/** How long a new one may take until it says something for the first time. */
const STARTUP_GRACE_MS = 60_000;
/** Who notices this much too late that a node has been silent was away itself, and cannot tell who else was. */
const AWAY_MS = 10_000;

export class NodeHealth {
  readonly #byNode = new Map<string, Health>();

  /** Takes note of what a node looks like; true where nothing was known of it. */
  sawNode(node: Node, nowMs: number): boolean {
    const { name = '', uid } = node.metadata;
    const heartbeat = heartbeatOf(node);
    const known = this.#byNode.get(name);
    if (!known || known.uid !== uid) {
      this.#byNode.set(name, { uid, heartbeat, renewal: undefined, heardMs: nowMs });
      return true;
    }
    if (known.heartbeat !== heartbeat) known.heardMs = nowMs;
    known.heartbeat = heartbeat;
    return false;
  }

  /** Takes note of what the lease of a node looks like. */
  sawLease(lease: Lease, nowMs: number): void {
    const health = this.#byNode.get(lease.metadata.name ?? '');
    const renewal = lease.spec?.renewTime;
    if (!health || health.renewal === renewal) return;
    health.renewal = renewal;
    health.heardMs = nowMs;
  }

  /** How long the node may still be silent: nought or less when that is over. */
  graceMs(node: Node, nowMs: number): number {
    const health = this.#byNode.get(node.metadata.name ?? '');
    if (!health) return GRACE_MS;
    const allowedMs = readinessOf(node) === undefined ? STARTUP_GRACE_MS : GRACE_MS;
    if (nowMs - health.heardMs > allowedMs + AWAY_MS) health.heardMs = nowMs;
    return health.heardMs + allowedMs - nowMs;
  }

  /** Lets every node's time begin anew. */
  pardonAll(nowMs: number): void {
    for (const health of this.#byNode.values()) health.heardMs = nowMs;
  }

  forget(name: string): void {
    this.#byNode.delete(name);
  }
}

function heartbeatOf(node: Node): string | undefined {
  const ready = readyConditionOf(node);
  return ready && `at ${ready.lastHeartbeatTime ?? ''}`;
}
