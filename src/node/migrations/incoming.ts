import { isPostCopy } from '../../api/copy-state.ts';
import { errorMessage } from '../../api/error-message.ts';
import { MIGRATION_PORTS } from '../../api/kubevirt/migration-configuration.ts';
import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import { ApiError } from '../../api/status.ts';
import { unreachable } from '../../api/unreachable.ts';
import type { Env } from '../../env/ports.ts';
import { placeName } from '../../hypervisor/compare.ts';
import { HypervisorError, type Machine } from '../../hypervisor/hypervisor.ts';
import type { ListeningPorts, ListeningSockets, MigrationTls, PortRange } from '../../hypervisor/migration.ts';
import { type Attempt, isSameAttempt } from '../../migration/right-to-run/attempt.ts';
import type { JournaledStanding } from '../../migration/right-to-run/journal.ts';
import type { Message } from '../../migration/right-to-run/plan.ts';
import type { Holding, Standing } from '../../migration/right-to-run/standing.ts';
import type { Machines, SeenMachine } from '../guests/machines.ts';
import type { JournalFile } from '../journal/journal-file.ts';
import type { CopyCredentials } from './copy-credentials.ts';
import type { Admission, ConnectionCounts, CopyRelays } from './copy-relays.ts';
import { type MachineDescription, sentFiles } from './described-machines.ts';
import { messageOf } from './letters.ts';
import { listenAgain } from './listen-again.ts';
import type { TargetFacts } from './migration-report.ts';
import {
  type AllowedPorts,
  attemptOf,
  describeMachine,
  type Opened,
  type PeerAnswer,
  type PeerCaller,
  type PeerRequest,
  type PeerService,
} from './peer.ts';

export interface IncomingOptions {
  readonly env: Env;
  readonly journal: JournalFile;
  readonly machines: Machines;
  /** What the machine of a pod is like, for the migration that its guest is in. */
  readonly describe: (podUID: string) => Promise<MachineDescription>;
  readonly credentials: Pick<CopyCredentials, 'issue'>;
  readonly relays?: Pick<CopyRelays, 'admit'> | undefined;
  /** The address at which machines of this node wait for copies. */
  readonly host: string;
  /** The one at which they wait for those from nodes of this cluster, where that is another. */
  readonly migrationHost?: string | undefined;
  /** The ports that the options of a pod's migration allow; any where undefined. Nobody elsewhere says which. */
  readonly portsOf: (podUID: string) => AllowedPorts | undefined;
  /** By which keys the source of an attempt is known that has a record of its own. */
  readonly sourceKeysOf: (attempt: Attempt) => readonly string[];
  /** Takes the protocol of a pod as far as it goes now, without asking the API server. */
  readonly advance: (podUID: string) => Promise<void>;
}

/** What is known of one migration to here, besides what the journal says. Lost with the agent. */
interface Coming {
  readonly attempt: Attempt;
  readonly inbox: Message[];
  opened: Promise<Opened> | undefined;
  ports: PortRange | undefined;
  /** Who lets the source in, where its copy is not encrypted. */
  admission: Admission | undefined;
  /** When the guest stopped, by this agent's clock, as its source said. */
  stoppedAtMs: number | undefined;
  continuedAtMs: number | undefined;
  said: { readonly message: Message; readonly sinceMs: number } | undefined;
}

/** How long something said may wait for the source to ask before it is also written into the guest's status. */
const LETTER_AFTER_MS = 3000;

type OpenRequest = Extract<PeerRequest, { kind: 'open' }>;

/** The migrations to this node: what the target's half of the protocol rests on, and what is answered to sources. */
export class Incoming implements PeerService {
  readonly #options: IncomingOptions;
  readonly #coming = new Map<string, Coming>();

  constructor(options: IncomingOptions) {
    this.#options = options;
  }

  /** What was said of an attempt by its source. */
  inbox(podUID: string, attempt: Attempt, state: MigrationState | undefined): readonly Message[] {
    const coming = this.#of(podUID, attempt);
    const written = messageOf(state?.sourceLetter, attempt);
    return [...(coming?.inbox ?? []), ...(written ? [written] : [])];
  }

  /** What is to be said to the source, who asks. */
  say(podUID: string, message: Message): void {
    const coming = this.#begin(podUID, message.attempt);
    if (coming.said?.message.kind === message.kind) return;
    coming.said = { message, sinceMs: this.#options.env.clock.now() };
  }

  /** The guest runs here now. */
  noteContinued(podUID: string): void {
    const coming = this.#coming.get(podUID);
    if (!coming || coming.continuedAtMs !== undefined) return;
    coming.continuedAtMs = this.#options.env.clock.now();
    coming.admission?.close();
  }

  /** What is told of a migration, once its machine was seen like this. */
  facts(podUID: string, standing: Standing, seen: SeenMachine): Omit<TargetFacts, 'self' | 'place' | 'isWaiting'> {
    const { said, stoppedAtMs, continuedAtMs } = this.#coming.get(podUID) ?? {};
    const isSaidAtOnce = said?.message.kind === 'is-it-over';
    // That it was taken is in the record.
    const isLate =
      said !== undefined &&
      said.message.kind !== 'taken' &&
      (isSaidAtOnce || this.#options.env.clock.now() - said.sinceMs >= LETTER_AFTER_MS);
    return {
      isFollowed: standing.kind === 'holding' && isFollowed(standing, seen),
      downtimeMs:
        stoppedAtMs === undefined || continuedAtMs === undefined ? undefined : Math.max(0, continuedAtMs - stoppedAtMs),
      undelivered: isLate ? said.message : undefined,
    };
  }

  forget(podUID: string): void {
    this.#coming.get(podUID)?.admission?.close();
    this.#coming.delete(podUID);
  }

  async answer(caller: PeerCaller, request: PeerRequest): Promise<PeerAnswer> {
    const { advance } = this.#options;
    const attempt = attemptOf(request);
    const { podUID } = attempt.target;
    this.#check(caller, request);
    switch (request.kind) {
      case 'open': {
        const opened = await this.#open(podUID, request);
        return { ...(await this.#state(podUID, attempt)), opened };
      }
      case 'look':
        return this.#state(podUID, attempt);
      case 'letter':
        this.#hear(podUID, request);
        await advance(podUID);
        return this.#state(podUID, attempt);
      case 'listen-again':
        // How it is cannot be asked before its memory goes on coming.
        return { machine: 'unknown', letters: [], listening: await this.#listenAgain(attempt) };
      default:
        return unreachable(request);
    }
  }

  /** Only the source of an attempt that came here has anything to ask; of a guest that is here it opens nothing. */
  #check(caller: PeerCaller, request: PeerRequest): void {
    const attempt = attemptOf(request);
    if (!this.#isSource(caller, attempt)) {
      const who = caller.node === undefined ? 'who asks' : `node ${caller.node}`;
      throw new ApiError(403, 'Forbidden', `${who} is not the source of this migration`);
    }
    const standing = this.#standing(attempt.target.podUID);
    if (!mayAsk(request.kind, standing, attempt)) throw refused('this node does not receive that guest');
  }

  /** No authority vouches for a node elsewhere, nor may it vouch for another one in its place: its key alone counts. */
  #isSource({ node, key }: PeerCaller, attempt: Attempt): boolean {
    if (!attempt.across) return node === attempt.source.node;
    return key !== undefined && this.#options.sourceKeysOf(attempt).includes(key);
  }

  #standing(podUID: string): JournaledStanding {
    const { journal } = this.#options;
    const vm = journal.vmOf(podUID);
    return vm === undefined ? { kind: 'none' } : journal.standing(vm, podUID);
  }

  async #state(podUID: string, attempt: Attempt): Promise<PeerAnswer> {
    const { fact } = await this.#options.machines.look(podUID, true);
    const standing = this.#standing(podUID);
    if (standing.kind === 'refused') return { machine: fact, letters: [{ kind: 'refused', attempt }] };
    return { machine: fact, letters: hasTaken(standing, attempt) ? [{ kind: 'taken', attempt }] : [] };
  }

  #hear(podUID: string, { message, stoppedForMs }: Extract<PeerRequest, { kind: 'letter' }>): void {
    const coming = this.#begin(podUID, message.attempt);
    if (stoppedForMs !== undefined) coming.stoppedAtMs ??= this.#options.env.clock.now() - stoppedForMs;
    const isNew = !coming.inbox.some(({ kind }) => kind === message.kind);
    if (isNew) coming.inbox.push(message);
  }

  async #open(podUID: string, request: OpenRequest): Promise<Opened> {
    const coming = this.#begin(podUID, request.attempt);
    // An answer that was lost is asked for again.
    coming.opened ??= this.#listen(podUID, coming, request);
    try {
      return await coming.opened;
    } catch (error) {
      coming.opened = undefined;
      if (error instanceof ApiError) throw error;
      throw refused(errorMessage(error));
    }
  }

  async #listen(podUID: string, coming: Coming, request: OpenRequest): Promise<Opened> {
    const { describe, credentials } = this.#options;
    const { method, copiedDisks, attempt } = request;
    const host = this.#hostFor(attempt);
    if (attempt.across && !method.isEncrypted) throw refused('a copy that comes from elsewhere has to be encrypted');
    const ports = attempt.across ? this.#options.portsOf(podUID) : request.ports;
    const machine = await this.#machine(podUID);
    const { state } = await machine.migration.progress();
    // What its source was told then, nobody knows any more.
    if (state !== 'none')
      throw refused('the machine waits already, since before the agent of the target was restarted');
    const here = await describe(podUID);
    const [own, named] = [here.copiedDisks, copiedDisks].map((places) => places.map(placeName).toSorted().join(', '));
    if (own !== named) throw refused(`the disks to copy are ${named || 'none'} at the source, ${own || 'none'} here`);
    const range = portRange(host, ports);
    coming.ports = range;
    const servesDisksLocally = this.#options.relays !== undefined;
    const common = { ...range, channels: method.channels, disks: copiedDisks, servesDisksLocally };
    const listen = async (tls: MigrationTls, allowsPostCopy: boolean): Promise<Listening> => {
      const options = { ...common, tls, allowsPostCopy };
      try {
        return { ...(await machine.migration.listen(options)), isPostCopyPossible: allowsPostCopy };
      } catch (error) {
        const isLess = allowsPostCopy && error instanceof HypervisorError && error.code === 'Refused';
        if (!isLess) throw error;
        return listen(tls, false);
      }
    };
    const description = { host, machine: describeMachine(here.machine), diskFiles: sentFiles(here.diskFiles) };
    if (!method.isEncrypted) return { ...description, ...(await this.#admit(machine, coming, request, range)) };
    const { used, source } = await credentials.issue(podUID, (tls) => listen(tls, method.allowsPostCopy));
    const { memoryPort, disks, isPostCopyPossible } = used;
    const counts = { memory: 0, disks: copiedDisks.length };
    const admission = disks && (await this.#letIn(machine, coming, range, { disks }, counts));
    const disksPort = used.disksPort ?? admission?.port;
    return {
      ...description,
      memoryPort,
      ...(disksPort === undefined ? {} : { disksPort }),
      ...(admission ? { secrets: admission.secrets } : {}),
      credentials: source,
      isPostCopyPossible,
    };
  }

  /** Other clusters know a node by its own address alone, and may reach no other. */
  #hostFor({ across }: Attempt): string {
    const { host, migrationHost = host } = this.#options;
    return across ? host : migrationHost;
  }

  /** Waits for a copy that is not encrypted, from whoever was told the secrets. */
  async #admit(
    machine: Machine,
    coming: Coming,
    { method: { channels, allowsPostCopy }, copiedDisks: disks }: OpenRequest,
    range: PortRange,
  ): Promise<Pick<Opened, 'memoryPort' | 'disksPort' | 'secrets' | 'isPostCopyPossible'>> {
    if (!this.#options.relays || allowsPostCopy)
      throw refused('a copy that is not encrypted cannot be received like that');
    const sockets = await machine.migration.listenLocally({ channels, disks });
    const counts = { memory: 1 + (channels?.count ?? 0), disks: disks.length };
    const { port, secrets } = await this.#letIn(machine, coming, range, sockets, counts);
    return { memoryPort: port, ...(disks.length > 0 ? { disksPort: port } : {}), secrets, isPostCopyPossible: false };
  }

  /** Stands before sockets of a machine for as long as it waits. */
  async #letIn(
    { ended }: Machine,
    coming: Coming,
    range: PortRange,
    sockets: Partial<ListeningSockets>,
    counts: ConnectionCounts,
  ): Promise<Admission> {
    const admission = await this.#options.relays?.admit(range, sockets, counts);
    if (!admission) throw refused('nobody could let in who is to come');
    coming.admission = admission;
    void ended.then(() => admission.close());
    return admission;
  }

  async #listenAgain(attempt: Attempt): Promise<{ host: string; port: number }> {
    const { podUID } = attempt.target;
    const host = this.#hostFor(attempt);
    // An agent that was started anew knows no more than what was frozen for the migration.
    const range = this.#coming.get(podUID)?.ports ?? portRange(host, this.#options.portsOf(podUID));
    // Not looked at: it may not answer before its memory has come.
    const machine = this.#options.machines.get(podUID);
    if (!machine) throw refused('the machine that was to receive the guest is gone');
    try {
      return { host, port: await listenAgain(machine.migration, range, this.#options.env.clock) };
    } catch (error) {
      throw refused(errorMessage(error));
    }
  }

  async #machine(podUID: string): Promise<Machine> {
    const { machines } = this.#options;
    await machines.look(podUID);
    const machine = machines.get(podUID);
    if (!machine) throw refused('the machine that was to receive the guest is gone');
    return machine;
  }

  #of(podUID: string, attempt: Attempt): Coming | undefined {
    const coming = this.#coming.get(podUID);
    return coming && isSameAttempt(coming.attempt, attempt) ? coming : undefined;
  }

  #begin(podUID: string, attempt: Attempt): Coming {
    const known = this.#of(podUID, attempt);
    if (known) return known;
    const coming: Coming = {
      attempt,
      inbox: [],
      opened: undefined,
      ports: undefined,
      admission: undefined,
      stoppedAtMs: undefined,
      continuedAtMs: undefined,
      said: undefined,
    };
    this.#coming.set(podUID, coming);
    return coming;
  }
}

/**
 * Whether memory has yet to follow its guest. A machine that says nothing may wait for it, where its guest has gone ahead; one that is dead
 * waited for it as far as anybody knows.
 */
function isFollowed({ isPostCopy: hasGoneAhead }: Holding, { fact, migration }: SeenMachine): boolean {
  // What it said last may be of before its guest went ahead.
  if ((fact === 'unknown' || fact === 'dead') && hasGoneAhead === true) return migration !== 'completed';
  return migration !== undefined && isPostCopy(migration);
}

function portRange(host: string, { first, last }: AllowedPorts = MIGRATION_PORTS): PortRange {
  return { host, firstPort: first, lastPort: last };
}

interface Listening extends ListeningPorts {
  readonly isPostCopyPossible: boolean;
}

/** What may be asked about an attempt, by where the pod stands that it names. */
function mayAsk(kind: PeerRequest['kind'], standing: JournaledStanding, attempt: Attempt): boolean {
  if (standing.kind === 'receiving' || standing.kind === 'refused') return isSameAttempt(standing.attempt, attempt);
  if (standing.kind === 'holding') return kind !== 'open' && hasTaken(standing, attempt);
  // Nothing is told of a guest that has left, or has ended, but that.
  return (kind === 'look' || kind === 'letter') && hasTaken(standing, attempt);
}

/** A pod receives once in its life: that it had the right after this attempt says that it took it. */
function hasTaken(standing: JournaledStanding, attempt: Attempt): boolean {
  const taken = 'taken' in standing ? standing.taken : undefined;
  if (taken) return isSameAttempt(taken, attempt);
  // Journals of before say only in which epoch a pod was that left again; what came from elsewhere they always said.
  if ((standing.kind !== 'granted' && standing.kind !== 'ended') || attempt.across) return false;
  return (standing.kind === 'granted' ? standing.attempt.epoch : standing.epoch) === attempt.epoch + 1;
}

function refused(message: string): ApiError {
  return new ApiError(409, 'Conflict', message);
}
