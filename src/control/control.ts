import type { Env } from '../env/ports.ts';
import type { Client } from '../kube/client.ts';
import { EventRecorder } from '../kube/event-recorder.ts';
import type { KubeMetrics } from '../kube/metrics.ts';
import type { Service } from '../kube/service.ts';
import { SharedInformers } from '../kube/shared-informers.ts';
import type { ControlContext } from './context.ts';
import { DrainReports } from './evacuation/drain-reports.ts';
import { Evacuations } from './evacuation/evacuations.ts';
import { DisruptionBudgets } from './disruption-budget/disruption-budgets.ts';
import { Disruptions } from './disruption/disruptions.ts';
import { ControlMetrics } from './metrics/control-metrics.ts';
import { EqualPolicies } from './migration/equal-policies.ts';
import { MigrationLeftovers } from './migration/migration-leftovers.ts';
import { Migrations } from './migration/migrations.ts';
import { NodeCertificates } from './node-certificates/node-certificates.ts';
import { NodeHeartbeats } from './node-heartbeat/node-heartbeats.ts';
import { Restorations } from './restoration/restorations.ts';
import { Seizures } from './seizure/seizures.ts';
import { DirectoryVolumes } from './storage/directory-volumes.ts';
import { WorkloadUpdates } from './workload-update/workload-updates.ts';
import { VirtualMachines } from './vm/virtual-machines.ts';
import type { KubeletLaunchers } from './vmi/launcher-pod.ts';
import { VirtualMachineInstances } from './vmi/virtual-machine-instances.ts';

export interface ControlOptions {
  readonly env: Env;
  /** Speaks as the controllers' own identity. */
  readonly client: Client;
  readonly metrics: KubeMetrics;
  /** The launcher's image. */
  readonly launcherImage: string;
  /** How launcher pods are where kubelets run them; where absent, agents do. */
  readonly kubelets?: KubeletLaunchers | undefined;
  /** The host by which the API server is reached, where that is known. */
  readonly apiServerHost?: string;
}

/** As KubeVirt's controllers sign their events. */
const COMPONENT = 'virtualmachine-controller';

/** All of Godwit's own controllers and what they need, to be added to one manager. */
export function controlServices(options: ControlOptions): readonly Service[] {
  const { env, client, metrics, launcherImage, kubelets, apiServerHost } = options;
  const informers = new SharedInformers({ client, env });
  const recorder = new EventRecorder({ client, env, component: COMPONENT });
  const context = { env, client, informers, recorder, metrics } satisfies ControlContext;
  const controllers = [
    new VirtualMachines(context),
    new VirtualMachineInstances({ ...context, launcherImage, kubelets }),
    new Seizures(context),
    new Restorations(context),
    new Migrations({ ...context, launcherImage, kubelets }),
    new MigrationLeftovers(context),
    new EqualPolicies(context),
    new Disruptions(context),
    new Evacuations(context),
    new DrainReports(context),
    new DisruptionBudgets(context),
    new WorkloadUpdates({ ...context, launcherImage }),
    new NodeCertificates({ ...context, apiServerHost }),
    new NodeHeartbeats(context),
    new DirectoryVolumes(context),
    new ControlMetrics(context),
  ];
  return [...informers.all(), recorder, ...controllers];
}
