import { unreachable } from '../unreachable.ts';
import type { PreferenceSpec } from './preference.ts';

/** How a number of processors becomes sockets, cores and threads. */

export interface ProcessorLayout {
  readonly sockets: number;
  readonly cores: number;
  readonly threads: number;
}

/** What a layout is made of, by the newer names. */
export type LayoutPreference = 'sockets' | 'cores' | 'threads' | 'spread' | 'any';
export type Spread = 'SocketsCores' | 'CoresThreads' | 'SocketsCoresThreads';

const ONE: ProcessorLayout = { sockets: 1, cores: 1, threads: 1 };
const SPREAD_RATIO = 2;
const THREADS_PER_CORE = 2;

/** What a preference asks for; sockets by default. */
export function layoutPreference(preference: PreferenceSpec | undefined): LayoutPreference {
  const topology = preference?.cpu?.preferredCPUTopology ?? 'sockets';
  switch (topology) {
    case 'sockets':
    case 'preferSockets':
      return 'sockets';
    case 'cores':
    case 'preferCores':
      return 'cores';
    case 'threads':
    case 'preferThreads':
      return 'threads';
    case 'spread':
    case 'preferSpread':
      return 'spread';
    case 'any':
    case 'preferAny':
      return 'any';
    default:
      return unreachable(topology);
  }
}

/** Across what processors are spread, and how many of the smaller there are in one of the larger. */
export function spreadOf(preference: PreferenceSpec | undefined): { readonly across: Spread; readonly ratio: number } {
  const { across = 'SocketsCores', ratio } = preference?.cpu?.spreadOptions ?? {};
  return { across, ratio: ratio || preference?.preferSpreadSocketToCoreRatio || SPREAD_RATIO };
}

/** The layout of so many processors. What cannot be divided evenly is rounded down, as in KubeVirt. */
export function processorLayout(count: number, preference: PreferenceSpec | undefined): ProcessorLayout {
  if (count === 1) return ONE;
  const layout = layoutPreference(preference);
  switch (layout) {
    case 'sockets':
    case 'any':
      return { ...ONE, sockets: count };
    case 'cores':
      return { ...ONE, cores: count };
    case 'threads':
      return { ...ONE, threads: count };
    case 'spread':
      return spread(count, preference);
    default:
      return unreachable(layout);
  }
}

function spread(count: number, preference: PreferenceSpec | undefined): ProcessorLayout {
  const { across, ratio } = spreadOf(preference);
  switch (across) {
    case 'SocketsCores':
      return { sockets: Math.floor(count / ratio), cores: ratio, threads: 1 };
    case 'CoresThreads':
      return { sockets: 1, cores: Math.floor(count / ratio), threads: ratio };
    case 'SocketsCoresThreads':
      return { sockets: Math.floor(count / THREADS_PER_CORE / ratio), cores: ratio, threads: THREADS_PER_CORE };
    default:
      return unreachable(across);
  }
}
