import { Gauge } from 'prom-client';
import type { KubeObject } from '../../api/meta.ts';
import type { Informer } from '../../kube/informer.ts';
import type { KubeMetrics } from '../../kube/metrics.ts';
import { addSampledGauge } from '../../kube/sampled-gauge.ts';
import type { Service } from '../../kube/service.ts';
import type { ControlContext } from '../context.ts';
import type { DefineGauge } from './define-gauge.ts';
import { guestGauges } from './guest-gauges.ts';
import { machineGauges } from './machine-gauges.ts';
import { migrationGauges } from './migration-gauges.ts';
import { nodeGauges } from './node-gauges.ts';
import { phaseTimes } from './phase-times.ts';

export interface ControlMetricsOptions extends ControlContext {
  readonly metrics: KubeMetrics;
}

/**
 * What is known of machines, guests, migrations and nodes, for monitoring. Numbers that are of the cluster, and not of this
 * process, are told by the one that leads alone: whoever adds up what all replicas say counts nothing twice.
 */
export class ControlMetrics implements Service {
  readonly name = 'metrics of the cluster';
  readonly needsLeadership = true;
  readonly #leading: Gauge;
  #isLeading = false;

  constructor(options: ControlMetricsOptions) {
    const { informers, metrics } = options;
    const { registry } = metrics;
    this.#leading = new Gauge({
      name: 'kubevirt_virt_controller_leading_status',
      help: 'Whether the controllers of this process are the ones that work.',
      registers: [registry],
    });
    addSampledGauge({
      registry,
      name: 'kubevirt_virt_controller_ready_status',
      help: 'Whether the controllers of this process know all that they need to work.',
      samples: () => [[{}, informers.all().every(({ hasSynced }: Informer<KubeObject>) => hasSynced) ? 1 : 0]],
    });
    const define: DefineGauge = (metric, samples) =>
      addSampledGauge({ ...metric, registry, samples: () => (this.#isLeading ? samples() : []) });
    migrationGauges(options, define);
    guestGauges(options, define);
    machineGauges(options, define);
    nodeGauges(options, define);
    phaseTimes(options, registry);
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#lead(true);
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
    this.#lead(false);
  }

  #lead(isLeading: boolean): void {
    this.#isLeading = isLeading;
    this.#leading.set(isLeading ? 1 : 0);
  }
}
