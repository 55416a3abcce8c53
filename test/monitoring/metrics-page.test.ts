import { describe, expect, it } from 'vitest';
import type { ProcessName } from '../../src/cli/process-metrics.ts';
import type { DescribedMetric } from '../../src/kube/metrics.ts';
import { metricsOfProcesses } from '../support/process-metrics.ts';

/** Every metric is documented; the tables of docs/metrics.md are what the processes register. */

const PAGE = '../../docs/metrics.md';
const INTRODUCTION = `# Metrics

The tables of this page are made from what the processes register: \`npx vitest run test/monitoring/metrics-page.test.ts -u\`
writes it anew, and a test fails where it is not so. Metrics that KubeVirt has are named as there; others that Kubernetes'
own controllers and servers have, as there; what is only here begins with \`godwit_\`.

- [\`monitoring/alerts.yaml\`](../monitoring/alerts.yaml): rules for Prometheus, each with what to do about it in
  [operations.md](operations.md). \`kubevirt_vmi_phase_count\` and \`kubevirt_number_of_vms\` are sums that it records.
- [\`monitoring/dashboard.json\`](../monitoring/dashboard.json): a dashboard for Grafana (Dashboards, Import).

## Where they are

| process | where | who may read them |
|---|---|---|
| \`godwit up\`: API server, controllers, extension | \`/metrics\` of the API server | whoever may \`get\` the path \`/metrics\` |
| \`godwit agent\` | \`/metrics\` of its port, which the Node's \`daemonEndpoints\` name; or \`/api/v1/nodes/NODE/proxy/metrics\`. On a kubelet's node both lead to the kubelet: there the annotation \`godwit.dev/agent-port\` has the agent's port | whoever may \`get\` \`nodes/metrics\`; through the API server \`nodes/proxy\`, which is far more |
| \`godwit controllers\`, \`godwit extension\` on Kubernetes | \`--metrics HOST:PORT\`, without TLS; the manifests have it at port 8080 of their pods | whoever reaches the port |
| \`godwit sync\` | \`--metrics HOST:PORT\`, without TLS; \`godwit up\` has it on 127.0.0.1, at the port in the file \`synchronization-metrics-port\` of the data directory | whoever reaches the port |

The role \`system:monitoring\` may read the first two, and nothing else. An account for Prometheus, and its token:

\`\`\`console
$ kubectl create serviceaccount prometheus -n kubevirt
$ kubectl create clusterrolebinding prometheus --clusterrole=system:monitoring --serviceaccount=kubevirt:prometheus
$ kubectl create token prometheus -n kubevirt --duration=8760h > prometheus-token
\`\`\`

With the certificate of the cluster's authority (\`certificate-authority-data\` of the kubeconfig) in \`cluster-ca.pem\`:

\`\`\`yaml
scrape_configs:
  - job_name: godwit
    scheme: https
    authorization: { credentials_file: prometheus-token }
    tls_config: { ca_file: cluster-ca.pem }
    static_configs:
      - targets: ['127.0.0.1:6443']
  - job_name: node-1
    scheme: https
    authorization: { credentials_file: prometheus-token }
    # Only agents of machines other than the API server's are known by their addresses, too.
    tls_config: { ca_file: cluster-ca.pem, server_name: node-1 }
    static_configs:
      - targets: ['127.0.0.1:9186']
rule_files: [alerts.yaml]
\`\`\`

Numbers that are of the cluster, and not of a process (those of machines, guests, migrations and nodes), are told by the
control plane that leads alone, so that sums over all of them count nothing twice. Series of a copy that is over are told
for five minutes more, since most copies take less time than passes between two looks.

Labels are KubeVirt's, too; where there are more of them here (\`process\` of \`kubevirt_info\`, whose \`kubeversion\` is Godwit's
version, and \`priority\` of \`kubevirt_workqueue_depth\`), sums over them are what KubeVirt tells.

## What KubeVirt counts and this does not

| of | metrics |
|---|---|
| what a guest itself does: processor, memory, network, disks, file systems, load | \`kubevirt_vmi_cpu_*\`, \`kubevirt_vmi_vcpu_*\`, \`kubevirt_vmi_memory_*\`, \`kubevirt_vmi_network_*\`, \`kubevirt_vmi_storage_*\`, \`kubevirt_vmi_filesystem_*\`, \`kubevirt_vmi_guest_*\`, \`kubevirt_vmi_gpu_info\`, \`kubevirt_vmi_node_cpu_affinity\`; \`kubevirt_vmi_dirty_rate_bytes_per_second\`, but while it moves (\`kubevirt_vmi_migration_dirty_memory_rate_bytes\`) |
| connections to guests | \`kubevirt_console_active_connections\`, \`kubevirt_vnc_active_connections\`, \`kubevirt_portforward_active_tunnels\`, \`kubevirt_usbredir_active_connections\`, \`kubevirt_vmi_last_api_connection_timestamp_seconds\` |
| what is in the manifests of machines and guests | \`kubevirt_vm_create_date_timestamp_seconds\`, \`kubevirt_vm_created_*\`, \`kubevirt_vm_disk_allocated_size_bytes\`, \`kubevirt_vm_labels\`, \`kubevirt_vm_resource_*\`, \`kubevirt_vm_vnic_info\`, \`kubevirt_vmi_vnic_info\`, \`kubevirt_vmi_status_addresses\`, \`kubevirt_vmi_launcher_memory_overhead_bytes\` |
| parts that are not here: the operator, snapshots, a limit to requests within clients, emulation and types of machines by configuration | \`kubevirt_virt_operator_*\`, \`kubevirt_vmsnapshot_*\`, \`kubevirt_rest_client_rate_limiter_duration_seconds\`, \`kubevirt_configuration_emulation_enabled\`, \`kubevirt_node_deprecated_machine_types\` |
| how often a guest was looked at, which \`controller_runtime_reconcile_total\` tells of all controllers | \`kubevirt_vmi_sync_total\` |
`;

const SECTIONS: readonly (readonly [title: string, name: ProcessName])[] = [
  ['The control plane', 'control-plane'],
  ['Agents', 'agent'],
  ['Synchronization', 'synchronization'],
];

const cell = (text: string): string => text.replaceAll('|', '\\|');

function table(metrics: readonly DescribedMetric[]): string[] {
  const sorted = metrics.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const rows = sorted.map(
    ({ name, type, labels, help }) =>
      `| \`${name}\` | ${type} | ${labels.map((label) => `\`${label}\``).join(', ')} | ${cell(help)} |`,
  );
  return ['| metric | type | labels | |', '|---|---|---|---|', ...rows, ''];
}

describe('metrics', async () => {
  const processes = await metricsOfProcesses();
  const of = (name: ProcessName): readonly DescribedMetric[] => processes.get(name) ?? [];
  const isCommon = ({ name }: DescribedMetric): boolean =>
    SECTIONS.every(([, each]) => of(each).some((metric) => metric.name === name));

  it('are all on their page', async () => {
    const sections = SECTIONS.flatMap(([title, name]) => [
      `## ${title}`,
      '',
      ...table(of(name).filter((metric) => !isCommon(metric))),
    ]);
    const page = [INTRODUCTION, '## Every process', '', ...table(of('agent').filter(isCommon)), ...sections].join('\n');
    await expect(`${page.trimEnd()}\n`).toMatchFileSnapshot(PAGE);
  });

  it('are named as Prometheus asks, and say what they are in a sentence', () => {
    for (const { name, type, help, labels } of [...processes.values()].flat()) {
      expect(name).toMatch(/^[a-z][a-z0-9_]*$/);
      expect(help, name).toMatch(/^[A-Z].*\.$/);
      expect(new Set(labels).size, name).toBe(labels.length);
      // KubeVirt's are as they are, and so are those of Kubernetes.
      if (name.startsWith('godwit_')) expect(type === 'counter', name).toBe(name.endsWith('_total'));
    }
  });

  it('are not said to be missing where they are there', () => {
    const names = [...processes.values()].flat().map(({ name }) => name);
    const [, missing = ''] = INTRODUCTION.split('## What KubeVirt counts and this does not');
    const cells = [...missing.matchAll(/^\| .* \| (.*) \|$/gm)];
    const patterns = cells
      .flatMap(([, cell = '']) => [...cell.replaceAll(/\([^)]*\)/g, '').matchAll(/`(kubevirt_[a-z_]+)(\*?)`/g)])
      .map(([, stem = '', star]) => new RegExp(`^${stem}${star === '*' ? '' : '$'}`));
    expect(patterns.length).toBeGreaterThan(25);
    expect(names.filter((name) => patterns.some((pattern) => pattern.test(name)))).toEqual([]);
  });

  it('are those of KubeVirt where it has the same', () => {
    const names = [...processes.values()].flat().map(({ name }) => name);
    expect(names.filter((name) => /^(?:godwit_info|rest_client_|workqueue_)/.test(name))).toEqual([]);
    expect(names).toEqual(expect.arrayContaining(['kubevirt_info', 'kubevirt_virt_api_ready_status']));
  });

  it('mean the same wherever they are', () => {
    const known = new Map<string, DescribedMetric>();
    for (const metric of [...processes.values()].flat()) {
      const { name, type, help, labels } = metric;
      expect({ type, help, labels }).toEqual({ type, help, labels, ...pick(known.get(name)) });
      known.set(name, metric);
    }
  });
});

function pick(metric: DescribedMetric | undefined): Partial<DescribedMetric> {
  return metric ? { type: metric.type, help: metric.help, labels: metric.labels } : {};
}
