import type { Node } from '../../migration/fit/objects.ts';
import { readinessOf } from './conditions.ts';

/**
 * How fast nodes that are lost may be given up, by zone. One that is lost alone is probably broken. Where most of a zone
 * is lost it may be the network between it and us: then nodes are given up slowly, or, in a small zone, not at all.
 * Where all zones are lost it is us: then none is given up, and nodes that had been are taken back.
 *
 * What changes is counted as it changes; nothing here walks over all nodes.
 */

/** Nodes per second. */
const RATE = 0.1;
const REDUCED_RATE = 0.01;
/** From how large a part of a zone on it is disrupted. */
const UNHEALTHY_PART = 0.55;
/** So few lost nodes say nothing about a zone. */
const UNHEALTHY_COUNT_MIN = 3;
/** Zones of up to so many nodes wait, where most of them are lost. */
const SMALL_ZONE_SIZE_MAX = 50;

const EXCLUDED = 'node.kubernetes.io/exclude-disruption';
const REGIONS = ['topology.kubernetes.io/region', 'failure-domain.beta.kubernetes.io/region'];
const ZONES = ['topology.kubernetes.io/zone', 'failure-domain.beta.kubernetes.io/zone'];

interface Member {
  readonly zone: string;
  readonly isReady: boolean;
}

interface Counts {
  ready: number;
  notReady: number;
}

type State = 'normal' | 'partly disrupted' | 'fully disrupted';

/** The zone that a node is in; nodes that say nothing of it share one. */
export function zoneOf({ metadata: { labels = {} } }: Node): string {
  const first = (names: readonly string[]): string =>
    names.map((name) => labels[name] ?? '').find((each) => each !== '') ?? '';
  return `${first(REGIONS)}\n${first(ZONES)}`;
}

export class Zones {
  readonly #members = new Map<string, Member>();
  readonly #counts = new Map<string, Counts>();
  #disruptedCount = 0;

  /** Whether every zone is lost, and nothing is believed of any node. */
  get areAllLost(): boolean {
    return this.#counts.size > 0 && this.#disruptedCount === this.#counts.size;
  }

  setNode(node: Node): void {
    const { name = '', labels = {} } = node.metadata;
    this.deleteNode(name);
    if (Object.hasOwn(labels, EXCLUDED)) return;
    const member = { zone: zoneOf(node), isReady: readinessOf(node) === 'True' };
    this.#members.set(name, member);
    this.#count(member, 1);
  }

  deleteNode(name: string): void {
    const member = this.#members.get(name);
    if (!member) return;
    this.#members.delete(name);
    this.#count(member, -1);
  }

  /** How many nodes of the zone may be given up per second; 0 for none at all. */
  rateOf(zone: string): number {
    if (this.areAllLost) return 0;
    const counts = this.#counts.get(zone);
    if (!counts || stateOf(counts) !== 'partly disrupted') return RATE;
    return counts.ready + counts.notReady > SMALL_ZONE_SIZE_MAX ? REDUCED_RATE : 0;
  }

  #count({ zone, isReady }: Member, change: 1 | -1): void {
    const counts = this.#counts.get(zone) ?? { ready: 0, notReady: 0 };
    const before = stateOf(counts);
    counts[isReady ? 'ready' : 'notReady'] += change;
    const isEmpty = counts.ready + counts.notReady === 0;
    if (isEmpty) this.#counts.delete(zone);
    else this.#counts.set(zone, counts);
    this.#disruptedCount += Number(stateOf(counts) === 'fully disrupted') - Number(before === 'fully disrupted');
  }
}

function stateOf({ ready, notReady }: Counts): State {
  if (ready === 0 && notReady > 0) return 'fully disrupted';
  const isUnhealthy = notReady >= UNHEALTHY_COUNT_MIN && notReady / (notReady + ready) >= UNHEALTHY_PART;
  return isUnhealthy ? 'partly disrupted' : 'normal';
}
