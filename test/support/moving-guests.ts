import { on } from 'node:events';
import { readFileSync, statSync, watch } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { isAway } from '../../src/api/kubevirt/right-to-run-transition.ts';
import { decodeJournal } from '../../src/migration/right-to-run/journal.ts';
import type { Entry } from '../../src/migration/right-to-run/entry.ts';
import type { Anything, EventStream } from './api.ts';
import { eventually } from './eventually.ts';
import { virtualMachine } from './guest-manifests.ts';
import { credible, type Sign, signsOfLife } from './guests.ts';
import { LastWords } from './last-words.ts';
import { oneLife, type Stay } from './one-life.ts';
import { HOME, PAIRS_GATE, PairedMoves } from './paired-moves.ts';
import { IS_PAIRED } from './sample.ts';
import { SerialTimes } from './serial-times.ts';
import { VirtualMachines, type VirtualMachinesOptions } from './virtual-machines.ts';

const MIGRATIONS = '/apis/kubevirt.io/v1/virtualmachineinstancemigrations';
const POLICIES = '/apis/migrations.kubevirt.io/v1alpha1/migrationpolicies';
const KUBEVIRT = '/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt';
const MERGE = { 'content-type': 'application/merge-patch+json' };
const OVER = ['Succeeded', 'Failed'];
/** How long anything may take that is under way, on a machine under load. */
const PATIENCE_MS = 90_000;
/** An image that nothing was written to is smaller. */
const BLANK_IMAGE_BYTES_MAX = 2 ** 20;
/** How often an image is looked at: filling it takes longer. */
const LOOK_MS = 2;
/** Of an agent, in the directory of its node. */
const JOURNAL = 'journal';

/** Where guests go and come back from where all of a run goes by pairs. */
export const ELSEWHERE = 'elsewhere';

/** A launcher pod and its node: one of the two sides of a migration. */
export interface Side {
  readonly node: string;
  readonly podUID: string;
}

export interface Sides {
  readonly source: Side;
  readonly target: Side;
}

export interface MovingGuestsOptions extends VirtualMachinesOptions {
  /**
   * The namespace that guests go to and come back from, by two migrations for each move. Where it is the one that they are
   * made in, both are of one guest. Absent: one migration for each move, unless all of this run goes by two.
   */
  readonly elsewhere?: string;
  /**
   * Where all of this run goes by two: both are of one guest. For what is about the object of a guest, which is another one
   * in another namespace.
   */
  readonly isOneGuest?: boolean;
}

/** Guests that move between the nodes of a real cluster, and what shows that they arrived whole. */
export class MovingGuests {
  readonly host: VirtualMachines;
  readonly times: SerialTimes;
  /** The boot of each guest. */
  readonly #boots = new Map<string, string>();
  readonly #lastWords: LastWords;
  readonly #pairs: PairedMoves | undefined;
  /** The namespaces of migrations that are none of a pair. */
  readonly #namespaces = new Map<string, string>();
  #made = 0;

  private constructor(host: VirtualMachines, lastWords: LastWords, pairs: PairedMoves | undefined) {
    this.host = host;
    this.times = new SerialTimes(host.nodesDirectory);
    this.#lastWords = lastWords;
    this.#pairs = pairs;
  }

  static async start(options: MovingGuestsOptions = {}): Promise<MovingGuests> {
    const { isOneGuest = false } = options;
    const { elsewhere = IS_PAIRED ? (isOneGuest ? HOME : ELSEWHERE) : undefined } = options;
    const host = await VirtualMachines.start(options);
    const lastWords = await LastWords.follow((resourceVersion) => watchMigrations(host, resourceVersion));
    const pairs = elsewhere === undefined ? undefined : await PairedMoves.between(host, elsewhere, lastWords);
    return new MovingGuests(host, lastWords, pairs);
  }

  async stop(): Promise<void> {
    this.times.stop();
    this.#lastWords.stop();
    await this.host.stop();
  }

  /** Makes a machine whose guest runs; its labels choose policies. */
  async create(name: string, spec: object, labels: Readonly<Record<string, string>> = {}): Promise<void> {
    const machine = virtualMachine(name, spec) as { spec: { template: { metadata: { labels: object } } } };
    machine.spec.template.metadata.labels = { ...machine.spec.template.metadata.labels, ...labels };
    await this.host.create(machine);
    await this.knows(name);
  }

  /** Waits until a guest that somebody made runs, and remembers it. */
  async knows(name: string): Promise<void> {
    this.#boots.set(name, (await this.host.lives(name)).boot);
  }

  /** A guest that was started elsewhere is to come here. */
  awaits(name: string, boot: string): void {
    this.#boots.set(name, boot);
  }

  /** Removes a machine, and the one of its name that is elsewhere. */
  async remove(name: string): Promise<void> {
    const namespaces = new Set([this.host.namespaceOf(name), this.targetNamespaceOf(name)]);
    for (const act of ['delete', 'wait'] as const)
      for (const namespace of namespaces) {
        this.host.isIn(name, namespace);
        if (act === 'delete') await this.host.delete('VirtualMachine', name);
        else await this.host.isGone(name);
      }
  }

  /** What the guest drew when it started; it must never draw again. */
  bootOf(name: string): string {
    return this.#boots.get(name) ?? '';
  }

  /** Where the guest may run. */
  async holder(name: string): Promise<Side> {
    return (await this.host.guest(name)).status.rightToRun.holder;
  }

  /** Looks for the guest where it was given to, if it was: a pair has failed, too, whose guest was lost there. */
  async followsRight(name: string): Promise<void> {
    const { rightToRun } = (await this.host.guest(name))?.status ?? {};
    const machine = await this.host.machine(name);
    const isGone = isAway(rightToRun) || machine?.status?.rightToRun?.grantedAway === true;
    if (isGone) this.host.isIn(name, this.targetNamespaceOf(name));
  }

  /** Asks for a move, and answers the migration's name. */
  async ask(name: string, spec: object = {}): Promise<string> {
    const migration = `${name}-${this.#made++}`;
    if (this.#pairs) await this.#pairs.ask(name, migration, spec, (await this.holder(name)).node);
    else (await this.request(migration, { vmiName: name, ...spec })).expect(201);
    return migration;
  }

  /** Asks for a move within the guest's namespace, and answers what is said to that. */
  request(
    migration: string,
    spec: { readonly vmiName: string; readonly [field: string]: unknown },
  ): ReturnType<VirtualMachines['api']['request']> {
    const kind = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstanceMigration' };
    const body = { ...kind, metadata: { name: migration }, spec };
    const namespace = this.host.namespaceOf(spec.vmiName);
    this.#namespaces.set(migration, namespace);
    return this.host.api.request('POST', migrationsIn(namespace), { body });
  }

  /** The migration, or undefined. */
  async migration(name: string): Promise<Anything> {
    const answer = await this.host.api.request('GET', this.#pathOf(name));
    return answer.status === 404 ? undefined : answer.expect(200).json;
  }

  /** The migration, and where it is one of a pair the other one too. */
  async halves(migration: string): Promise<Anything[]> {
    const target = this.#pairs ? [await this.#pairs.targetOf(migration)] : [];
    return [await this.migration(migration), ...target];
  }

  async migrations(): Promise<Anything[]> {
    return (await this.host.api.request('GET', MIGRATIONS)).expect(200).json.items;
  }

  /** All that becomes of migrations from now on. */
  watchMigrations(): Promise<EventStream> {
    return watchMigrations(this.host);
  }

  /** Waits until a migration is in one of these phases. */
  reaches(migration: string, ...phases: readonly string[]): Promise<Anything> {
    return this.#reaches(() => this.migration(migration), phases);
  }

  async #reaches(find: () => Promise<Anything>, phases: readonly string[]): Promise<Anything> {
    return eventually(async () => {
      const found = await find();
      const state = (await this.host.guest(found?.spec.vmiName ?? ''))?.status?.migrationState;
      expect(phases, JSON.stringify([found?.status, state])).toContain(found?.status?.phase);
      return found;
    }, PATIENCE_MS);
  }

  /** Whether it was heard that a migration is over. */
  isOver(migration: string): boolean {
    return OVER.includes(this.#lastWordOf(migration)?.status?.phase);
  }

  /** Waits until a migration is over, and answers it, also where it has been deleted since. */
  async ends(migration: string): Promise<Anything> {
    const find = async (): Promise<Anything> => (await this.migration(migration)) ?? this.#lastWordOf(migration);
    const ended = await this.#reaches(find, OVER);
    if (this.#pairs?.knows(migration)) await this.#pairs.endsAlike(migration, ended.status.phase);
    return ended;
  }

  async succeeds(migration: string): Promise<Anything> {
    const ended = await this.ends(migration);
    expect(ended.status.phase, JSON.stringify(ended.status)).toBe('Succeeded');
    return ended;
  }

  async fails(migration: string): Promise<Anything> {
    const ended = await this.ends(migration);
    expect(ended.status.phase, JSON.stringify(ended.status)).toBe('Failed');
    return ended;
  }

  /** Deletes a migration, which calls it off. */
  async cancel(migration: string): Promise<void> {
    if (this.#pairs) await this.#pairs.cancel(migration);
    else await this.host.api.request('DELETE', this.#pathOf(migration));
  }

  /** Waits until there is no such migration, and what may be left of a pair is over like this. */
  async isGone(migration: string, phase: 'Failed' | 'Succeeded' = 'Failed'): Promise<void> {
    if (this.#pairs) await this.#pairs.isGone(migration, phase);
    else await eventually(async () => expect(await this.migration(migration)).toBeUndefined(), PATIENCE_MS);
  }

  /** Moves a guest to another node, whole, and answers the migration. */
  async move(name: string, spec: object = {}): Promise<Anything> {
    const before = await this.holder(name);
    const migration = await this.succeeds(await this.ask(name, spec));
    const after = await this.holder(name);
    expect(after.node).not.toBe(before.node);
    await this.isWhole(name);
    return migration;
  }

  /**
   * Waits until the guest is heard where its right to run is; it is the one that was started, with all of its memory and
   * disk, and was never in two machines. Answers the machines that it was in, of which these logs are.
   */
  async isWhole(name: string, logs = () => this.host.logs()): Promise<Stay[]> {
    const boot = this.bootOf(name);
    const before = this.#signsOf(await this.holder(name)).length;
    await eventually(async () => {
      const guest = await this.host.guest(name);
      expect(guest?.status?.phase, JSON.stringify(guest?.status)).toBe('Running');
      const { node, podUID } = guest.status.rightToRun.holder;
      expect(guest.status.nodeName).toBe(node);
      const signs = this.#signsOf({ node, podUID });
      expect(signs.length, this.host.logs().get(podUID)?.slice(-500)).toBeGreaterThan(before);
      expect(signs.at(-1)?.boot).toBe(boot);
    }, PATIENCE_MS);
    return oneLife(boot, logs());
  }

  /** Makes a policy for all guests with these labels. */
  async policy(name: string, labels: Readonly<Record<string, string>>, options: object): Promise<void> {
    const body = {
      apiVersion: 'migrations.kubevirt.io/v1alpha1',
      kind: 'MigrationPolicy',
      metadata: { name },
      spec: { ...options, selectors: { virtualMachineInstanceSelector: labels } },
    };
    (await this.host.api.request('POST', POLICIES, { body })).expect(201);
  }

  /** Changes how the whole cluster carries migrations out, and which of KubeVirt's feature gates are open. */
  async configure(migrations: object, featureGates?: readonly string[]): Promise<void> {
    const open = this.#pairs ? [...(featureGates ?? []), PAIRS_GATE] : featureGates;
    const gates = featureGates === undefined ? {} : { developerConfiguration: { featureGates: open } };
    const body = { spec: { configuration: { migrations, ...gates } } };
    (await this.host.api.request('PATCH', KUBEVIRT, { body, headers: MERGE })).expect(200);
  }

  /** Where the launcher pod is made that a guest goes to. */
  targetNamespaceOf(name: string): string {
    return this.#pairs?.targetNamespaceOf(name) ?? this.host.namespaceOf(name);
  }

  /** The two sides of a guest's migration, once it was handed to the agents. */
  async sides(name: string): Promise<Sides> {
    return eventually(async () => {
      const sides = await this.sidesNow(name);
      if (!sides) throw new Error(`no migration of ${name} was handed over`);
      return sides;
    }, PATIENCE_MS);
  }

  /** The same, or undefined where it was not. */
  async sidesNow(name: string): Promise<Sides | undefined> {
    const { migrationState = {}, rightToRun } = (await this.host.guest(name))?.status ?? {};
    const { targetNode, targetPod } = migrationState;
    if (targetPod === undefined) return undefined;
    const namespace = this.targetNamespaceOf(name);
    const answer = await this.host.api.request('GET', `/api/v1/namespaces/${namespace}/pods/${targetPod}`);
    if (answer.status !== 200) return undefined;
    return { source: rightToRun.holder, target: { node: targetNode, podUID: answer.json.metadata.uid } };
  }

  /** Waits for the moment at which an agent has written this down about its side. */
  async noted({ node, podUID }: Side, isIt: (entry: Entry) => boolean): Promise<void> {
    const directory = join(this.host.nodesDirectory, node);
    const records = () => decodeJournal(readFileSync(join(directory, JOURNAL))).records;
    const isNoted = (): boolean =>
      records().some((record) => record.podUID === podUID && 'entry' in record && isIt(record.entry as Entry));
    // The moment passes in milliseconds, and may be long in coming: it is listened for, not looked for.
    const watcher = watch(directory);
    try {
      const changes = on(watcher, 'change', { signal: AbortSignal.timeout(PATIENCE_MS) });
      if (isNoted()) return;
      for await (const [, name] of changes) if (name === JOURNAL && isNoted()) return;
    } catch (cause) {
      throw new Error(`${node} has not noted it of ${podUID}: ${JSON.stringify(records())}`, { cause });
    } finally {
      watcher.close();
    }
  }

  /** Waits until so many mebibytes, one at least, are in an image that belongs to one side alone. */
  async holds({ node, podUID }: Side, volume: string, mebibytes = 1): Promise<void> {
    const image = join(this.host.nodesDirectory, node, 'pods', podUID, `${volume}.qcow2`);
    const deadlineMs = Date.now() + PATIENCE_MS;
    for (;;) {
      const size = statSync(image, { throwIfNoEntry: false })?.size ?? 0;
      if (size > mebibytes * BLANK_IMAGE_BYTES_MAX) return;
      if (Date.now() > deadlineMs) throw new Error(`${image} has ${size} bytes`);
      // It may be full before long.
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }

  #pathOf(migration: string): string {
    return `${migrationsIn(this.#namespaceOf(migration))}/${migration}`;
  }

  #lastWordOf(migration: string): Anything {
    return this.#lastWords.of(this.#namespaceOf(migration), migration);
  }

  #namespaceOf(migration: string): string {
    return this.#pairs?.namespaceOf(migration) ?? this.#namespaces.get(migration) ?? 'default';
  }

  /** What a stay is told by: the first line that a guest says stands alone, and a byte of it may be damaged. */
  #signsOf({ podUID }: Side): Sign[] {
    return credible(signsOfLife(this.host.logs().get(podUID) ?? ''));
  }
}

function migrationsIn(namespace: string): string {
  return `/apis/kubevirt.io/v1/namespaces/${namespace}/virtualmachineinstancemigrations`;
}

/** From a moment that is named, as real clients do: a server need not have kept up with everything that it is not asked for. */
async function watchMigrations({ api }: VirtualMachines, heardUpTo?: string): Promise<EventStream> {
  const now = async (): Promise<string> =>
    (await api.request('GET', MIGRATIONS)).expect(200).json.metadata.resourceVersion;
  return api.watch(`${MIGRATIONS}?watch=true&resourceVersion=${heardUpTo ?? (await now())}`);
}
