import { Gauge } from 'prom-client';
import type { KubeMetrics } from '../kube/metrics.ts';
import { addSampledGauge } from '../kube/sampled-gauge.ts';
import { VERSION } from './version.ts';

/** Which of the processes of a cluster this is. */
export type ProcessName = 'control-plane' | 'controllers' | 'extension' | 'agent' | 'synchronization';

/** Adds what every process tells of itself. */
export function addProcessMetrics({ registry }: KubeMetrics, name: ProcessName): void {
  new Gauge({
    name: 'kubevirt_info',
    help: 'Which process of Godwit this is, and of which version.',
    labelNames: ['process', 'kubeversion'],
    registers: [registry],
  }).set({ process: name, kubeversion: VERSION }, 1);
  addSampledGauge({
    registry,
    name: 'process_resident_memory_bytes',
    help: 'Resident memory of this process.',
    samples: () => [[{}, process.memoryUsage.rss()]],
  });
  addSampledGauge({
    registry,
    name: 'process_cpu_seconds_total',
    help: 'Processor time that this process has used.',
    type: 'counter',
    samples: () => {
      const { user, system } = process.cpuUsage();
      return [[{}, (user + system) / 1e6]];
    },
  });
  addSampledGauge({
    registry,
    name: 'process_start_time_seconds',
    help: 'When this process began, as seconds since 1970.',
    samples: () => [[{}, performance.timeOrigin / 1000]],
  });
}
