import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Running, startCli } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { Godwit } from '../support/godwit.ts';
import { freePorts } from '../support/network.ts';
import { metricsOfProcesses } from '../support/process-metrics.ts';

/** What Prometheus reads of the processes that an admin runs on Kubernetes; `scrape.test.ts` has those of `godwit up`. */

let godwit: Godwit;
const running: Running[] = [];
/** Where each serves health and metrics. */
const servers = new Map<string, string>();

beforeAll(async () => {
  godwit = await Godwit.start();
  const [listen, ...ports] = await freePorts(3);
  const own = { controllers: [], extension: ['--listen', `127.0.0.1:${listen}`] };
  for (const [index, [name, args]] of Object.entries(own).entries()) {
    const address = `127.0.0.1:${ports[index]}`;
    servers.set(name, `http://${address}`);
    running.push(startCli([name, '--kubeconfig', godwit.kubeconfig, '--metrics', address, ...args]));
  }
});
afterAll(async () => {
  for (const { child, finished } of running) {
    child.kill('SIGTERM');
    await finished;
  }
  await godwit.remove();
});

const read = async (name: string, path: string): Promise<string> =>
  (await fetch(`${servers.get(name) ?? ''}${path}`)).text();

describe('the metrics', () => {
  it.each<[string, readonly RegExp[]]>([
    [
      'controllers',
      [
        /^leader_election_master_status\{name="virt-controller"\} [01]$/m,
        /^kubevirt_virt_controller_ready_status [01]$/m,
        /^godwit_migration_slots_given_total \d/m,
        /^kubevirt_rest_client_requests_total\{.*code="200".*\} [1-9]/m,
      ],
    ],
    [
      'extension',
      [
        /^godwit_certificate_expiration_timestamp_seconds\{certificate="extension"\} \d{10}/m,
        /^kubevirt_virt_api_ready_status 1$/m,
        /^kubevirt_rest_client_requests_total\{.*code="200".*\} [1-9]/m,
      ],
    ],
  ])('of %s are told, and are on the page', async (name, patterns) => {
    let text = '';
    await eventually(async () => {
      text = await read(name, '/metrics');
      for (const pattern of [
        new RegExp(`^kubevirt_info\\{process="${name}",kubeversion="[^"]+"\\} 1$`, 'm'),
        ...patterns,
      ])
        expect(text).toMatch(pattern);
    }, 60_000);
    const told = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, metric, type]) => `${metric} ${type}`);
    const known = (await metricsOfProcesses()).get('control-plane')?.map((metric) => `${metric.name} ${metric.type}`);
    expect(known).toEqual(expect.arrayContaining(told));
    expect(await read(name, '/healthz')).toBe('ok');
  });
});
