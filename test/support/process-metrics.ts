import { ApiServerMetrics } from '../../src/apiserver/observability/metrics.ts';
import { addProcessMetrics, type ProcessName } from '../../src/cli/process-metrics.ts';
import { controlServices } from '../../src/control/control.ts';
import { testEnv } from '../../src/env/test.ts';
import { extensionServices } from '../../src/extension/extension.ts';
import { Client } from '../../src/kube/client.ts';
import { type DescribedMetric, describeRegistry, KubeMetrics } from '../../src/kube/metrics.ts';
import { NodeMetrics } from '../../src/node/node-metrics.ts';
import { StreamMetrics } from '../../src/sync/wire/stream-metrics.ts';

/** What each process of a cluster has registered to count, without any of them running. */
export async function metricsOfProcesses(): Promise<ReadonlyMap<ProcessName, readonly DescribedMetric[]>> {
  const env = testEnv();
  const nobody = { send: () => Promise.reject(new Error('there is no server')), close: () => undefined };
  const of = (name: ProcessName): KubeMetrics => {
    const metrics = new KubeMetrics(env.clock);
    addProcessMetrics(metrics, name);
    return metrics;
  };
  const plane = of('control-plane');
  const client = new Client(nobody, 'test');
  controlServices({ env, client, metrics: plane, launcherImage: 'launcher' });
  const listen = { host: '127.0.0.1', port: 0 };
  extensionServices({ env, client, metrics: plane, listen, reach: 'address', version: 'test' });
  const server = await describeRegistry(new ApiServerMetrics(env.clock, () => []).registry);
  const agent = of('agent');
  void new NodeMetrics({ registry: agent.registry, clock: env.clock, node: 'node-1', guests: () => 0 });
  const synchronization = of('synchronization');
  void new StreamMetrics(synchronization.registry);
  return new Map<ProcessName, readonly DescribedMetric[]>([
    ['control-plane', [...server, ...(await plane.describe())]],
    ['agent', await agent.describe()],
    ['synchronization', await synchronization.describe()],
  ]);
}
