import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { realClock } from '../../src/env/real.ts';
import { realProcesses } from '../../src/env/real-processes.ts';
import { seededRandom } from '../../src/env/test.ts';
import type { MachineEvent } from '../../src/hypervisor/hypervisor.ts';
import type { MachineSpec } from '../../src/hypervisor/machine.ts';
import type { ListenOptions, MigrationTls, SendOptions } from '../../src/hypervisor/migration.ts';
import type { QemuHypervisor } from '../../src/hypervisor/qemu/qemu-hypervisor.ts';
import type { QemuMachine } from '../../src/hypervisor/qemu/qemu-machine.ts';
import { createAuthority, HOUR_MS, issueIdentity } from '../../src/machinery/x509/authority.ts';
import { Console } from './console.ts';
import { eventually } from './eventually.ts';
import { Workbench } from './qemu.ts';

export const MEBIBYTE = 1024 * 1024;

/** Below what the kernel gives out by itself. */
const PORTS = { host: '127.0.0.1', firstPort: 21_000, lastPort: 21_999 };

/** One of the two machines of a migration, and all that it said. */
export interface Actor {
  readonly machine: QemuMachine;
  readonly console: Console;
  readonly events: MachineEvent[];
}

/** How the copy is to be, where not plain, unlimited and over one channel. */
export type Copy = Partial<Omit<SendOptions, 'tls' | 'target'>> & { readonly proxyPort?: number };

/** Real machines that go from one QEMU to another on this host. */
export class MigrationScene {
  readonly bench: Workbench;
  readonly #hypervisor: QemuHypervisor;
  readonly #runs: string[] = [];
  #directories = 0;

  private constructor(bench: Workbench, hypervisor: QemuHypervisor) {
    this.bench = bench;
    this.#hypervisor = hypervisor;
  }

  static async open(hypervisorOf = (bench: Workbench): QemuHypervisor => bench.hypervisor): Promise<MigrationScene> {
    const bench = await Workbench.open();
    return new MigrationScene(bench, hypervisorOf(bench));
  }

  async close(): Promise<void> {
    for (const instance of this.#runs) {
      const left = await realProcesses.findByArgument(`null,id=instance-${instance}`);
      if (left) await realProcesses.kill(left, 'SIGKILL');
    }
    this.bench.close();
  }

  async start(spec: MachineSpec): Promise<Actor> {
    const run = this.bench.newRun();
    this.#runs.push(run.instance);
    const machine = await this.#hypervisor.start(spec, run);
    const events: MachineEvent[] = [];
    machine.onEvent((event) => events.push(event));
    return { machine, console: await Console.open(machine), events };
  }

  /** A guest that runs, and has spoken. */
  async running(spec: MachineSpec): Promise<Actor> {
    const actor = await this.start(spec);
    await actor.machine.continue();
    await actor.console.next('guest', 'uptime');
    return actor;
  }

  /** Where that guest is to go; `others` are what differs there. */
  async target(source: Actor, spec: MachineSpec, others: Partial<MachineSpec> = {}): Promise<Actor> {
    return this.start({ ...spec, ...others, incoming: { ramBytes: await source.machine.migration.ramBytes() } });
  }

  /** Credentials for both sides, of an authority that nobody else has; names may be others than are asked for. */
  async credentials(
    names: { readonly source?: string; readonly target?: string } = {},
  ): Promise<{ readonly source: MigrationTls; readonly target: MigrationTls }> {
    const authority = await createAuthority({ clock: realClock, random: seededRandom(Date.now()) }, 'migrations');
    const identity = (commonName: string, usage: 'client' | 'server') =>
      issueIdentity(authority, { commonName, dnsNames: [commonName], usages: [usage], validityMs: HOUR_MS });
    const directory = join(this.bench.directory, `tls-${this.#directories++}`);
    mkdirSync(directory);
    const sides = [
      ['client', await identity(names.source ?? 'node-a', 'client')],
      ['server', await identity(names.target ?? 'node-b', 'server')],
    ] as const;
    writeFileSync(join(directory, 'ca-cert.pem'), authority.certificatePem);
    for (const [side, { certificatePem, keyPem }] of sides) {
      writeFileSync(join(directory, `${side}-cert.pem`), certificatePem);
      writeFileSync(join(directory, `${side}-key.pem`), keyPem);
    }
    return { source: { directory, peer: 'node-b' }, target: { directory, peer: 'node-a' } };
  }

  /** What a target is told. */
  listenOptions(copy: Copy = {}, tls?: MigrationTls, disks: ListenOptions['disks'] = []): ListenOptions {
    const { allowsPostCopy = false, channels } = copy;
    return { ...PORTS, tls, disks, allowsPostCopy, channels };
  }

  /** What a source is told. */
  sendOptions(port: number, copy: Copy = {}, tls?: MigrationTls): SendOptions {
    const { proxyPort, ...rest } = copy;
    return {
      target: { host: PORTS.host, port: proxyPort ?? port },
      tls,
      limits: { bandwidthBytesPerSecond: 0, downtimeMs: 30 },
      allowsPostCopy: false,
      allowsAutoConverge: false,
      channels: undefined,
      ...rest,
    };
  }

  /** Switches over to a target that has the whole guest then, and lets it run there, as the right to run demands. */
  async finish(source: Actor, target: Actor): Promise<void> {
    await state(source, 'pre-switchover');
    await source.machine.migration.switchOver();
    await state(source, 'completed');
    await eventually(async () => ok((await source.machine.status()) === 'finished-migrate'));
    await eventually(async () => ok((await target.machine.status()) === 'paused'));
    await source.machine.quit();
    await source.console.over();
    await target.machine.migration.closeDisks();
    await target.machine.continue();
    await target.machine.migration.announce();
  }
}

function ok(isSo: boolean): void {
  if (!isSo) throw new Error('not yet');
}

/** Waits until a machine's migration is in one of these states, or has been. */
export function state({ events }: Actor, ...wanted: readonly string[]): Promise<void> {
  return eventually(() => {
    const states: string[] = events.map((event) => (event.kind === 'migration' ? event.state : event.kind));
    if (!wanted.some((each) => states.includes(each)))
      throw new Error(`not ${wanted.join(' or ')}, but ${states.join(', ')}`);
  });
}

/** What was heard of a machine, passes left out. */
export function heard({ events }: Actor): readonly string[] {
  return events
    .filter(({ kind }) => kind !== 'migration-pass')
    .map((event) => (event.kind === 'migration' ? event.state : event.kind));
}

/** Why one guest did not run in all these places, one after the other, or said something twice; undefined where it did. */
export function notOneLife(...actors: readonly Actor[]): string | undefined {
  const counts = actors.map(({ console }) => console.counts());
  const boots = new Set(counts.flatMap((each) => [...each.keys()]));
  if (boots.size !== 1) return `${boots.size} boots`;
  const all = counts.flatMap((each) => [...each.values()].flat());
  const isOrdered = all.every((count, index) => index === 0 || count > (all[index - 1] ?? 0));
  return isOrdered ? undefined : `a line twice or late: ${all.join(' ')}`;
}
