import { errorMessage } from '../api/error-message.ts';
import { RUNS_DIRECTORY } from '../api/kubevirt/launcher-container.ts';
import type { DurableFile, Env, UserIdentity } from '../env/ports.ts';
import type { Hypervisor, MachineEnd, MachineRun } from '../hypervisor/hypervisor.ts';
import { runFiles } from '../hypervisor/qemu/run-files.ts';
import type { Client } from '../kube/client.ts';
import { EventRecorder } from '../kube/event-recorder.ts';
import type { KubeMetrics } from '../kube/metrics.ts';
import type { Service } from '../kube/service.ts';
import { SharedInformers } from '../kube/shared-informers.ts';
import { JournalDamagedError } from '../migration/right-to-run/journal.ts';
import { GuestAgents } from './guest-agent/guest-agents.ts';
import type { GuestAccess } from './guests/guest-access.ts';
import { GuestNotes, type NoteFiles } from './guests/guest-notes.ts';
import { Guests } from './guests/guests.ts';
import type { Launchers } from './guests/launchers.ts';
import { Machines } from './guests/machines.ts';
import { NodeGuestAccess } from './guests/node-guest-access.ts';
import { Preparation, type SpecOf } from './guests/preparation.ts';
import { type LogFiles, RunUpkeep } from './guests/run-upkeep.ts';
import type { InterfacesOf } from './guests/protocol.ts';
import { Surroundings } from './guests/surroundings.ts';
import { JournalFile } from './journal/journal-file.ts';
import { LONELY_NODE } from './migrations/lonely-node.ts';
import type { NodeMigration } from './migrations/node-migration.ts';
import type { PeerService } from './migrations/peer.ts';
import { NodeMetrics } from './node-metrics.ts';
import type { GuestVolumes } from './volumes/guest-volumes.ts';
import type { ImageStamps } from './volumes/image-stamp-files.ts';

export interface AgentOptions {
  readonly env: Env;
  /** Speaks as this node. */
  readonly client: Client;
  readonly nodeName: string;
  /** The agent that the Node has to be of before anything is started; whoever's it is where absent. */
  readonly agentId?: string;
  /** Where given, collections are watched together with others in the same process, who then runs these informers. */
  readonly informers?: SharedInformers;
  readonly hypervisor: Hypervisor;
  readonly volumes: GuestVolumes;
  /** The stamps of images; where absent, no image is of a claim. */
  readonly stamps?: ImageStamps;
  readonly specOf: SpecOf;
  readonly journal: DurableFile;
  readonly files: NoteFiles;
  /** Keeps the logs of serial ports from filling the disk; where absent they are as long as they are. */
  readonly logFiles?: LogFiles;
  /** What is said of the interfaces of a guest that runs in such a machine. */
  readonly interfacesOf?: InterfacesOf;
  /** What machines are started by, where the launcher pods are those of a kubelet; where absent, they are this agent's. */
  readonly launchers?: Launchers;
  /** What guests need that leave this node, or come to it; where absent, none can. */
  readonly migration?: NodeMigration;
  /** Where the agent keeps what is its own, with a name short enough for sockets below it. */
  readonly directory: string;
  /** Whom machines run as, if not as this process. */
  readonly user?: UserIdentity;
  readonly metrics?: KubeMetrics;
}

/** Others may pass through, to the directory of their own machine. */
const PASSAGE = { mode: 0o711 };

/**
 * The agent of one node, as far as guests go: it runs the launcher pods that are bound to the node, and nothing else.
 * It is made of ports alone, so that a simulation can run it in virtual time, on a model of a hypervisor and of a disk.
 */
export class Agent {
  /** What others may ask of the guests on this node. */
  readonly access: GuestAccess;
  /** Answers the agents of other nodes whose guests come here. */
  readonly peers: PeerService;
  /** Whether a guest comes from somebody with this key, who need not be a node of this cluster. */
  readonly isAwaited: (key: string) => boolean;
  /** What a manager has to run. */
  readonly services: readonly Service[];
  readonly #options: AgentOptions;
  readonly #recorder: EventRecorder;
  readonly #surroundings: Surroundings;
  readonly #machines: Machines;
  readonly #notes: GuestNotes;
  /** Resolves when guests can be looked after. */
  readonly #running: Promise<Guests>;
  #resolveRunning: (guests: Guests) => void = () => undefined;
  /** Resolves when all that former agents wrote down has been read. */
  readonly #journal: Promise<JournalFile>;
  #resolveJournal: (journal: JournalFile) => void = () => undefined;
  readonly #metrics: NodeMetrics | undefined;
  #guests: Guests | undefined;

  constructor(options: AgentOptions) {
    const { env, client, nodeName, agentId, hypervisor, files, directory } = options;
    const informers = options.informers ?? new SharedInformers({ client, env });
    this.#options = options;
    this.#running = new Promise((resolve) => (this.#resolveRunning = resolve));
    this.#journal = new Promise((resolve) => (this.#resolveJournal = resolve));
    this.#recorder = new EventRecorder({ client, env, component: 'virt-handler', host: nodeName });
    this.#surroundings = new Surroundings({ node: nodeName, agentId, client, informers });
    this.#notes = new GuestNotes(files, `${directory}/notes`);
    const guests = (): number => this.#guests?.count ?? 0;
    const counted = { clock: env.clock, node: nodeName, guests };
    this.#metrics = options.metrics && new NodeMetrics({ registry: options.metrics.registry, ...counted });
    this.#machines = new Machines({
      hypervisor,
      runOf: (podUID) => this.#runOf(podUID),
      onNews: (podUID) => this.#guests?.enqueue(podUID),
      onEnd: (podUID, end) => this.#noteEnd(podUID, end),
      agents: new GuestAgents({ env, onNews: (podUID) => this.#guests?.enqueue(podUID) }),
      log: env.log,
    });
    this.access = new NodeGuestAccess({
      surroundings: this.#surroundings,
      machines: this.#machines,
      notes: this.#notes,
      journal: () => this.#journal,
      serialLogOf: (podUID) => this.#serialLogOf(podUID),
    });
    this.peers = { answer: async (...asked) => (await this.#running).peers.answer(...asked) };
    this.isAwaited = (key) => this.#surroundings.isAwaited(key);
    this.services = [
      ...(options.informers ? [] : informers.all()),
      this.#recorder,
      { name: 'guests', run: (signal) => this.#run(signal) },
    ];
  }

  /** Ends every guest of the node within its grace period, and starts no other. Resolves when none is left. */
  async leave(): Promise<void> {
    await (await this.#running).leave();
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { env, client, volumes, specOf, interfacesOf, files, logFiles, directory, user, metrics } = this.#options;
    const journal = await this.#openJournal();
    try {
      for (const place of [RUNS_DIRECTORY, 'pods']) await files.makeDirectory(`${directory}/${place}`, PASSAGE);
      await this.#options.launchers?.prepare();
      await this.#notes.load();
      this.#resolveJournal(journal);
      this.#guests = new Guests({
        env,
        client,
        recorder: this.#recorder,
        surroundings: this.#surroundings,
        journal,
        machines: this.#machines,
        preparation: new Preparation({
          clock: env.clock,
          volumes,
          remembered: (guest, signal) => this.#surroundings.remembered(guest, signal),
          specOf,
          files,
          directory: `${directory}/pods`,
          user,
        }),
        notes: this.#notes,
        stamps: this.#options.stamps,
        interfacesOf,
        migration: this.#options.migration ?? LONELY_NODE,
        launchers: this.#options.launchers,
        nodeMetrics: this.#metrics,
        ...(metrics ? { metrics } : {}),
      });
      this.#resolveRunning(this.#guests);
      this.#metrics?.ready(true);
      const upkeep = new RunUpkeep({
        env,
        surroundings: this.#surroundings,
        journal,
        machines: this.#machines,
        notes: this.#notes,
        files,
        logFiles,
        runDirectoryOf: (podUID) => this.#runOf(podUID).directory,
        serialLogOf: (podUID) => this.#serialLogOf(podUID),
      });
      await Promise.all([this.#guests.run(signal), upkeep.run(signal)]);
    } finally {
      this.#metrics?.ready(false);
      this.#machines.letGo();
      await journal.close();
    }
  }

  /** An agent that cannot trust its journal does nothing at all: machines that run go on. */
  async #openJournal(): Promise<JournalFile> {
    const { journal, env, nodeName } = this.#options;
    try {
      return await JournalFile.open(journal, env.log, () => this.#metrics?.journalFailed());
    } catch (error) {
      if (!(error instanceof JournalDamagedError)) throw error;
      const advice = 'nothing is started or ended until it is whole again, or put aside once no machine runs there';
      throw new JournalDamagedError(`the journal of node ${nodeName} cannot be trusted: ${error.message}; ${advice}`);
    }
  }

  /** Whatever is started for a pod can be found again by the pod's UID alone. */
  #runOf(podUID: string): MachineRun {
    return { directory: `${this.#options.directory}/${RUNS_DIRECTORY}/${podUID}`, instance: podUID };
  }

  #serialLogOf(podUID: string): string {
    return runFiles(this.#runOf(podUID).directory).serialLog;
  }

  async #noteEnd(podUID: string, end: MachineEnd): Promise<void> {
    try {
      await this.#notes.noteEnd(podUID, end);
    } catch (error) {
      this.#options.env.log.warn('the end of a machine was not noted', { pod: podUID, error: errorMessage(error) });
    }
  }
}
