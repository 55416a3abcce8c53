import { clusterServices } from '../cluster/cluster.ts';
import type { ClusterLoop } from '../cluster/loop.ts';
import type { Program } from './component.ts';
import { managedProgram, type ManagedProgramOptions } from './managed-program.ts';

export interface LoopProgramOptions extends ManagedProgramOptions {
  readonly loops: readonly ClusterLoop[];
}

/** A process of the cluster's own loops, with informers and a manager of its own. */
export function loopProgram({ loops, ...options }: LoopProgramOptions): Program {
  return managedProgram(options, ({ env, clientOf, metrics }) => clusterServices({ env, clientOf, metrics, loops }));
}
