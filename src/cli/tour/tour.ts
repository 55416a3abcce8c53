import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { MigrationPolicy } from '../../api/kubevirt/migration-policy.ts';
import type { KubeObject } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import { nodes } from '../../cluster/resources.ts';
import { type Env, sleep } from '../../env/ports.ts';
import { ObjectApplier } from '../../kube/apply-objects.ts';
import { migrationPolicies, virtualMachineInstances, virtualMachines } from '../../kube/kubevirt-resources.ts';
import { withinTime } from '../../kube/time-limit.ts';
import { ask, type ClusterConnection, subresourcePath, wholeText } from '../cluster-connection.ts';
import { Drain, type DrainResult } from '../drain/drain.ts';
import type { DrainPicture } from '../drain/drain-view.ts';
import { forecast } from '../drain/forecast.ts';
import { UserError } from '../failure.ts';
import { Hearing } from './hearing.ts';
import { lookAtNodes } from './nodes-at-work.ts';
import { type Finding, findingsOf, type Sign, silenceOf } from './proof.ts';
import { findingLine, type Ink, moveLine, type Screen } from './screen.ts';
import { SerialEar } from './serial-ear.ts';

export interface TourOptions {
  readonly connection: ClusterConnection;
  readonly env: Env;
  /** Of the cluster, whose nodes are on this machine. */
  readonly dataDirectory: string;
  readonly screen: Screen;
  readonly ink: Ink;
  /** The machine that moves, and what it needs; called what `machine` says. */
  readonly example: { readonly file: string; readonly objects: readonly KubeObject[]; readonly machine: string };
}

/** One to be on, and one to go to. */
const NODES_MIN = 2;
/** How long a step may take on a machine that is slow and has much else to do. */
const NODES_PATIENCE_MS = 180_000;
/** How long those are waited for that are not needed. */
const STRAGGLERS_PATIENCE_MS = 15_000;
const BOOT_PATIENCE_MS = 300_000;
const MOVE_PATIENCE_MS = 600_000;
const SPEECH_PATIENCE_MS = 60_000;
const LOOK_MS = 250;
/** How often a guest is to be heard before it moves, and after it has: enough to see that it goes on. */
const SIGNS = 10;
/** What keeps the guest from moving faster than can be watched. */
const POLICY = 'godwit-tour';
const BANDWIDTH = '8Mi';
const RULES = { force: false, deleteEmptydirData: false };

/** Where a guest runs. */
interface Place {
  readonly node: string;
  readonly podUID: string;
}

/** Boots a guest, drains its node while it runs, and proves that it is still the same. */
export class Tour {
  readonly #options: TourOptions;
  readonly #hearing: Hearing;

  constructor(options: TourOptions) {
    this.#options = options;
    this.#hearing = new Hearing((signal) => this.#said('?follow=true&tailLines=0', signal), options.env.clock);
  }

  /** Rejects where something of it does not go as it should, and says what. */
  async run(signal: AbortSignal): Promise<void> {
    const { env, dataDirectory, screen, ink, example } = this.#options;
    const { machine } = example;
    screen.say(ink.strong('A tour: a virtual machine leaves its node while it runs.'));
    screen.say('');
    await this.#nodesAreReady(signal);
    screen.say(ink.strong(`1. Boot a small Linux guest: kubectl apply -f ${example.file}`));
    const listening = new AbortController();
    const heard = [this.#hearing.listen(listening.signal)];
    try {
      const source = await this.#boot(signal);
      const ear = new SerialEar(dataDirectory, env.clock);
      heard.push(ear.listen(listening.signal));
      const before = await this.#speaks(signal);
      screen.say(`   It says which boot it is, and counts: boot=${before.boot} count=${before.count}`);
      screen.say(ink.strong(`2. Drain its node: godwit drain ${source.node}`));
      await this.#leave(source.node, signal);
      const target = await this.#place();
      if (!target || target.podUID === source.podUID) throw new UserError(`${machine} has not left ${source.node}`);
      await this.#speaks(signal);
      listening.abort();
      await Promise.all(heard);
      const log = await wholeText(await this.#said('', signal));
      const findings = findingsOf(before, log);
      const times = { inSource: ear.heardIn(source.podUID), inTarget: ear.heardIn(target.podUID) };
      this.#prove([...findings, await this.#downtime(times)]);
    } finally {
      listening.abort();
      await Promise.all(heard);
    }
  }

  #prove(findings: readonly Finding[]): void {
    const { screen, ink, example } = this.#options;
    screen.say(ink.strong('3. The proof, by what it has said'));
    for (const finding of findings) screen.say(findingLine(finding, ink));
    const failed = findings.filter(({ holds }) => !holds);
    if (failed.length === 0) return;
    const reasons = failed.map(({ title, text }) => `${title}: ${text}`).join('; ');
    throw new UserError(
      `${example.machine} is not what it was (${reasons}); 'godwit logs ${example.machine}' has all it said`,
    );
  }

  async #nodesAreReady(signal: AbortSignal): Promise<void> {
    const { connection, env, screen } = this.#options;
    const allByMs = env.clock.now() + STRAGGLERS_PATIENCE_MS;
    let ready = 0;
    await this.#until(
      async () => {
        const { all, atWork } = await lookAtNodes(connection.client, signal);
        ready = atWork;
        const isEnough = ready >= NODES_MIN && (ready === all || env.clock.now() > allByMs);
        screen.show(`Nodes that are ready: ${ready} of ${all}`, isEnough ? 'ready' : 'not yet');
        return isEnough ? true : undefined;
      },
      NODES_PATIENCE_MS,
      () =>
        new UserError(
          `a tour needs ${NODES_MIN} nodes that take guests, and there are ${ready}; 'kubectl get nodes' and nodes/*/agent.log in the data directory say more`,
        ),
      signal,
    );
  }

  /** The guest runs; it is left as it is where it is there already. */
  async #boot(signal: AbortSignal): Promise<Place> {
    const { connection, env, screen, example } = this.#options;
    const { client, namespace } = connection;
    const objects = example.objects.map((each) => ({ ...each, metadata: { ...each.metadata, namespace } }));
    await (await ObjectApplier.of(client, signal)).createMissing(objects, signal);
    const sinceMs = env.clock.now();
    const place = await this.#until(
      async () => {
        const now = await this.#place();
        if (now && this.#hearing.last) return now;
        const { status, spec } = await client.get(virtualMachines, namespace, example.machine, signal);
        if (spec.runStrategy === 'Halted' || spec.running === false)
          throw new UserError(
            `${example.machine} is there and stopped; 'godwit start ${example.machine}' starts it, then take the tour again`,
          );
        const where = now ? `on ${now.node}` : (status?.printableStatus ?? 'Starting').toLowerCase();
        const seconds = Math.round((env.clock.now() - sinceMs) / 1000);
        screen.show(`   ${example.machine} boots: ${where}, ${seconds} s`, 'boots');
        return undefined;
      },
      BOOT_PATIENCE_MS,
      () => this.#unheard('did not boot'),
      signal,
    );
    screen.show(`   ${example.machine} runs on ${place.node}`, place.node);
    return place;
  }

  /** Everything leaves the node; afterwards it takes guests again, if it did before. */
  async #leave(node: string, signal: AbortSignal): Promise<void> {
    const { connection, env } = this.#options;
    const { client } = connection;
    await this.#refuseToStop(node);
    await this.#hold(signal);
    const { spec } = await client.get(nodes, '', node, signal);
    const stopping = new AbortController();
    const stop = (): void => stopping.abort();
    const timer = env.clock.setTimer(stop, MOVE_PATIENCE_MS);
    signal.addEventListener('abort', stop);
    let last = '';
    const view = {
      show: (picture: DrainPicture): void => {
        last = this.#showMove(picture) ?? last;
      },
    };
    try {
      const drain = new Drain({ client, env, node, view, print: () => undefined, ...RULES });
      const result = await drain.run(stopping.signal);
      if (result.kind !== 'empty') throw new UserError(`${node} was not emptied: ${reasonOf(result)}`);
    } catch (error) {
      if (stopping.signal.aborted && !signal.aborted) throw new UserError(`${node} was not emptied in time: ${last}`);
      throw error;
    } finally {
      timer.cancel();
      signal.removeEventListener('abort', stop);
      if (!spec?.unschedulable) await this.#afterwards(`godwit uncordon ${node}`, () => this.#uncordon(node));
      await this.#afterwards(`kubectl delete migrationpolicy ${POLICY}`, () => this.#release());
    }
  }

  /** A guest as small as this one would be gone before anybody has seen it go. */
  async #hold(signal: AbortSignal): Promise<void> {
    const { connection, screen } = this.#options;
    const labels = Object.entries((await this.#guest())?.metadata.labels ?? {});
    const policy: MigrationPolicy = {
      apiVersion: 'migrations.kubevirt.io/v1alpha1',
      kind: 'MigrationPolicy',
      metadata: { name: POLICY },
      spec: {
        selectors: {
          namespaceSelector: { 'kubernetes.io/metadata.name': connection.namespace },
          // Those that say where it is change when it moves.
          virtualMachineInstanceSelector: Object.fromEntries(labels.filter(([name]) => !name.includes('/'))),
        },
        bandwidthPerMigration: BANDWIDTH,
      },
    };
    await (await ObjectApplier.of(connection.client, signal)).createMissing([policy], signal);
    screen.say('   It is so small that a migration policy holds it to 8 MiB/s, for you to see it go.');
  }

  async #release(): Promise<void> {
    const { client } = this.#options.connection;
    try {
      await client.delete(migrationPolicies, '', POLICY, new AbortController().signal);
    } catch (error) {
      if (!(error instanceof ApiError && error.code === 404)) throw error;
    }
  }

  #showMove({ rows }: DrainPicture): string | undefined {
    const { connection, screen, example } = this.#options;
    const row = rows.find(({ machine }) => machine === `${connection.namespace}/${example.machine}`);
    if (!row) return undefined;
    const { line, news } = moveLine(row);
    screen.show(line, news);
    return row.detail;
  }

  /** Nobody's machine is stopped for the sake of a tour. */
  async #refuseToStop(node: string): Promise<void> {
    const { connection, env } = this.#options;
    const { machines, pods } = await forecast({ client: connection.client, env, node, ...RULES });
    const victims = [
      ...machines.filter(({ verdict }) => verdict !== 'moves').map(({ machine, why }) => `${machine} (${why})`),
      ...pods.filter(({ kind }) => kind !== 'leave').map(({ pod }) => `pod ${pod}`),
    ];
    if (victims.length > 0)
      throw new UserError(
        `draining ${node} would not leave everything on it running: ${victims.join(', ')}; nothing was changed`,
      );
  }

  async #uncordon(node: string): Promise<void> {
    const { client } = this.#options.connection;
    const body = { spec: { unschedulable: null } };
    await client.patch(nodes, '', node, { type: 'merge', body }, new AbortController().signal);
  }

  /** Leaves things as they were. Whoever stops the tour may stop the cluster too, and then has to do it themselves. */
  async #afterwards(remedy: string, run: () => Promise<void>): Promise<void> {
    try {
      await run();
    } catch {
      this.#options.screen.say(`   The cluster is not as it was: '${remedy}' makes it so`);
    }
  }

  /** What the target measured, and what was heard of it. */
  async #downtime(times: Parameters<typeof silenceOf>[0]): Promise<Finding> {
    const title = 'downtime';
    const silence = silenceOf(times);
    const { downtimeMs } = (await this.#guest())?.status?.migrationState ?? {};
    if (!silence) return { title, holds: false, text: 'it was not heard on both nodes' };
    const stood = downtimeMs === undefined ? '' : `it stood still for ${downtimeMs} ms; `;
    const { silentMs, usualMs } = silence;
    const text = `${stood}its serial port was silent for ${silentMs} ms, and is for ${usualMs} ms between any two lines`;
    return { title, holds: true, text };
  }

  #guest(): Promise<VirtualMachineInstance | undefined> {
    const { connection, example } = this.#options;
    const { signal } = new AbortController();
    return connection.client.find(virtualMachineInstances, connection.namespace, example.machine, signal);
  }

  async #place(): Promise<Place | undefined> {
    const { metadata, status } = (await this.#guest()) ?? {};
    // One that is about to end is about to be another.
    const isLasting = status?.phase === 'Running' && metadata?.deletionTimestamp === undefined;
    return isLasting ? status.rightToRun?.holder : undefined;
  }

  /** What the guest has said on its serial port. */
  async #said(query: string, signal: AbortSignal): Promise<AsyncIterable<string>> {
    const { connection, example } = this.#options;
    const path = subresourcePath(connection.namespace, 'virtualmachineinstances', example.machine, 'log');
    return (await ask(connection, 'GET', `${path}${query}`, { signal })).body;
  }

  /** Waits until the guest has spoken for a while. */
  async #speaks(signal: AbortSignal): Promise<Sign> {
    const { clock } = this.#options.env;
    try {
      return await withinTime(clock, SPEECH_PATIENCE_MS, signal, (ending) => this.#hearing.speaks(SIGNS, ending));
    } catch (error) {
      signal.throwIfAborted();
      throw await this.#unheard('has become silent', error);
    }
  }

  async #unheard(what: string, cause?: unknown): Promise<UserError> {
    const { connection, example } = this.#options;
    const { machine } = example;
    const { status } =
      (await connection.client.find(virtualMachines, connection.namespace, machine, new AbortController().signal)) ??
      {};
    const message = status?.conditions?.find((each) => each.status === 'False' && each.message)?.message;
    const why = `${status?.printableStatus ?? 'it is gone'}${message === undefined ? '' : `: ${message}`}`;
    return new UserError(
      `${machine} ${what} (${why}); 'kubectl describe vmi ${machine}' and 'godwit logs ${machine}' say more`,
      { cause },
    );
  }

  async #until<T>(
    look: () => Promise<T | undefined>,
    patienceMs: number,
    late: () => UserError | Promise<UserError>,
    signal: AbortSignal,
  ): Promise<T> {
    const { clock } = this.#options.env;
    const deadlineMs = clock.now() + patienceMs;
    for (;;) {
      signal.throwIfAborted();
      const found = await look();
      if (found !== undefined) return found;
      if (clock.now() > deadlineMs) throw await late();
      await sleep(clock, LOOK_MS, signal);
    }
  }
}

function reasonOf(result: Exclude<DrainResult, { kind: 'empty' }>): string {
  return result.kind === 'refused'
    ? result.pods.map(({ pod, why }) => `${pod}: ${why}`).join(', ')
    : result.rows.map(({ machine, detail, remedy }) => `${machine} ${detail}; ${remedy}`).join(', ');
}
