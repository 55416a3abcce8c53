import { readFileSync } from 'node:fs';
import { get } from 'node:https';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { ProcessName } from '../../src/cli/process-metrics.ts';
import type { Anything } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { probe } from '../support/guest-manifests.ts';
import { MovingGuests } from '../support/moving-guests.ts';
import { metricsOfProcesses } from '../support/process-metrics.ts';

/** Whoever follows docs/metrics.md reads, of every process, what the page says; after a move, the figures of that. */

vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

const MIGRATIONS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstancemigrations';

let guests: MovingGuests;
/** Of an account that may read metrics, and nothing else. */
let token: string;
/** What each process says once a guest has moved. */
const texts = new Map<ProcessName, string>();
let source: string;

beforeAll(async () => {
  guests = await MovingGuests.start({ nodes: 2 });
  const { kubectl } = guests.host;
  const page = readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8');
  const commands = [...page.matchAll(/^\$ kubectl (.*)$/gm)].map(([, command = '']) => command.replace(/ > .*/, ''));
  expect(commands).toHaveLength(3);
  for (const command of commands) token = (await kubectl.ok(command)).trim();
  await guests.create('web', probe());
  source = (await guests.holder('web')).node;
  await guests.move('web');
});
afterAll(() => guests.stop());

interface Server {
  readonly base: string;
  /** By which name it is known; by its address where absent. */
  readonly servername?: string;
}

const apiServer = (): Server => ({ base: guests.host.godwit.access().url });

/** What somebody with the token is answered. */
async function ask(
  { base, ...name }: Server,
  path = '/metrics',
  bearer = token,
): Promise<{ status: number; text: string }> {
  const { ca } = guests.host.godwit.access();
  const headers = { authorization: `Bearer ${bearer}` };
  return new Promise((resolve, reject) => {
    get(`${base}${path}`, { ca, headers, agent: false, ...name }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (piece: string) => void (text += piece));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
    }).on('error', reject);
  });
}

/** The agent, which is known by the name of its node: its address is the API server's, too. */
async function agentOf(name: string): Promise<Server> {
  const { status } = (await guests.host.api.request('GET', `/api/v1/nodes/${name}`)).expect(200).json;
  const { address } = status.addresses.find(({ type }: Anything) => type === 'InternalIP');
  return { base: `https://${address}:${status.daemonEndpoints.kubeletEndpoint.Port}`, servername: name };
}

/** Waits until a process has said all of this. */
async function says(name: ProcessName, read: () => Promise<string>, ...patterns: readonly RegExp[]): Promise<void> {
  await eventually(async () => {
    const text = await read();
    for (const pattern of patterns) expect(text).toMatch(pattern);
    texts.set(name, text);
  }, 60_000);
}

describe('metrics', () => {
  it('of the control plane tell of a move', async () => {
    const read = async (): Promise<string> => (await ask(apiServer())).text;
    await says(
      'control-plane',
      read,
      /^kubevirt_vmi_migration_succeeded\{vmi="web",vmim="web-0",namespace="\w+"\} 1$/m,
      /^kubevirt_vmi_migrations_in_running_phase 0$/m,
      /^godwit_migrations_finished_total\{result="succeeded",reason="",cause="\w+"\} [1-9]/m,
      /^godwit_migration_downtime_seconds_count\{mode="PreCopy"\} [1-9]/m,
      /^godwit_migration_copy_duration_seconds_count\{result="succeeded"\} [1-9]/m,
      /^godwit_migration_slots_given_total [1-9]/m,
      /^godwit_migration_slots_limit\{scope="cluster"\} 5$/m,
      /^godwit_migration_queue_length 0$/m,
      /^kubevirt_vmi_migration_start_time_seconds\{node="node-\d",namespace="\w+",name="web",migration_name="[^"]+"\} \d{10}$/m,
      /^kubevirt_vmi_migration_end_time_seconds\{.*status="succeeded"\} \d{10}$/m,
      /^kubevirt_vmi_migration_phase_transition_time_from_creation_seconds_count\{phase="Succeeded"\} [1-9]/m,
      /^kubevirt_vmi_info\{node="node-\d",.*name="web",phase="running".*vmi_pod="virt-launcher-web-/m,
      /^godwit_node_ready\{node="node-1"\} 1$/m,
      /^kubevirt_virt_controller_leading_status 1$/m,
      /^godwit_certificate_expiration_timestamp_seconds\{certificate="api-server"\} \d{10}/m,
      /^godwit_certificate_expiration_timestamp_seconds\{certificate="extension"\} \d{10}/m,
    );
  });

  it('of the agent that the guest has left tell what it sent', async () => {
    const agent = await agentOf(source);
    await says(
      'agent',
      async () => (await ask(agent)).text,
      new RegExp(
        `^kubevirt_vmi_migration_data_processed_bytes\\{namespace="\\w+",name="web",node="${source}"\\} [1-9]`,
        'm',
      ),
      /^kubevirt_vmi_migration_data_total_bytes\{.*name="web".*\} [1-9]/m,
      /^kubevirt_vmi_migration_data_remaining_bytes\{.*name="web".*\} 0$/m,
      /^kubevirt_vmi_migration_memory_transfer_rate_bytes\{.*name="web".*\} \d/m,
      /^godwit_copies_total\{result="succeeded"\} [1-9]/m,
      /^godwit_copy_sent_bytes_total [1-9]/m,
      /^godwit_agent_guests \d+$/m,
      /^kubevirt_virt_handler_ready_status 1$/m,
      /^godwit_certificate_expiration_timestamp_seconds\{certificate="agent-serving"\} \d{10}/m,
    );
  });

  it('of the synchronization are there for this machine', async () => {
    // Half of a migration has the synchronization start.
    const half = {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstanceMigration',
      metadata: { name: 'early' },
      spec: { vmName: 'early', receive: { key: 'early-key' } },
    };
    (await guests.host.api.request('POST', MIGRATIONS, { body: half })).expect(201);
    const port = (): string =>
      readFileSync(join(guests.host.godwit.directory, 'synchronization-metrics-port'), 'utf8').trim();
    await says(
      'synchronization',
      async () => (await fetch(`http://127.0.0.1:${port()}/metrics`)).text(),
      /^leader_election_master_status\{name="virt-synchronization-controller"\} 1$/m,
      /^godwit_synchronization_streams\{end="dialed"\} \d/m,
      /^godwit_certificate_expiration_timestamp_seconds\{certificate="synchronization"\} \d{10}/m,
      /^godwit_certificate_expiration_timestamp_seconds\{certificate="synchronization-authority"\} \d{10}/m,
    );
  });

  it('are those of the page, and no others', async () => {
    const described = await metricsOfProcesses();
    expect([...texts.keys()].toSorted()).toEqual([...described.keys()].toSorted());
    for (const [name, text] of texts) {
      const told = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, metric, type]) => `${metric} ${type}`);
      const known = (described.get(name) ?? []).map((metric) => `${metric.name} ${metric.type}`);
      expect(told.toSorted(), name).toEqual(known.toSorted());
    }
  });

  it('have the labels that the page says', async () => {
    for (const [name, metrics] of await metricsOfProcesses())
      for (const metric of metrics) {
        const line = new RegExp(`^${metric.name}(?:_bucket|_sum|_count)?\\{(.*)\\} `, 'm').exec(texts.get(name) ?? '');
        const labels = [...(line?.[1] ?? '').matchAll(/(\w+)="(?:[^"\\]|\\.)*"/g)].map(([, label]) => label);
        const isHistogram = metric.type === 'histogram';
        for (const label of labels)
          expect([...metric.labels, ...(isHistogram ? ['le'] : [])], metric.name).toContain(label);
      }
  });

  it('are for those who may read them', async () => {
    const other = (await guests.host.kubectl.ok('create token default -n default')).trim();
    for (const server of [apiServer(), await agentOf(source)]) {
      expect((await ask(server, '/metrics', 'nobody')).status).toBe(401);
      expect((await ask(server, '/metrics', other)).status).toBe(403);
    }
    // And they may read nothing else.
    expect((await ask(apiServer(), '/api/v1/namespaces/kubevirt/secrets')).status).toBe(403);
  });
});
