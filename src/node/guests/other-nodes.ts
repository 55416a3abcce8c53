import type { RightToRun, Runner } from '../../api/kubevirt/right-to-run.ts';
import type { Clock } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import type { Standing } from '../../migration/right-to-run/standing.ts';
import { isOutOfService, nodes } from './out-of-service.ts';

/** Often enough for whoever has given up a machine, and rarely enough for the API server. */
const LOOK_EVERY_MS = 15_000;
/** A handing over is done in less; only one that is not may wait for somebody to give up a node. */
const FIRST_LOOK_MS = 3000;

interface Look {
  /** The handing over that it was looked for. */
  readonly of: string;
  readonly nodeUID: string;
  readonly isOutOfService: boolean;
  /** When it is time to look again. */
  readonly atMs: number;
}

/**
 * Whether an admin has declared the node at the other end of a handing over out of service. What was said while the right
 * was under way holds for that handing over, and for no other: a node that serves again may be given the next guest.
 */
export class OtherNodes {
  readonly #client: Pick<Client, 'find'>;
  readonly #clock: Clock;
  readonly #looks = new Map<string, Look>();

  constructor(client: Pick<Client, 'find'>, clock: Clock) {
    this.#client = client;
    this.#clock = clock;
  }

  /** Asks the server, where it is time to. Answers after how long it is time again; undefined where nobody waits for it. */
  async look(
    podUID: string,
    standing: Standing,
    record: RightToRun | undefined,
    signal: AbortSignal,
  ): Promise<number | undefined> {
    const other = otherSide(podUID, standing, record);
    if (!other) {
      this.#looks.delete(podUID);
      return undefined;
    }
    const of = idOf(standing);
    const { nodeUID } = other;
    const nowMs = this.#clock.now();
    const first: Look = { of, nodeUID, isOutOfService: false, atMs: nowMs + FIRST_LOOK_MS };
    const last = this.#looks.get(podUID);
    const known = last?.of === of ? last : first;
    if (known === first) this.#looks.set(podUID, first);
    if (known.isOutOfService) return undefined;
    const leftMs = known.atMs - nowMs;
    // A clock that was set back must not keep anybody from looking.
    if (leftMs > 0 && leftMs <= LOOK_EVERY_MS) return leftMs;
    const isOutOfService = await this.#isOutOfService(other, signal);
    this.#looks.set(podUID, { of, nodeUID, isOutOfService, atMs: nowMs + LOOK_EVERY_MS });
    return isOutOfService ? undefined : LOOK_EVERY_MS;
  }

  /** UIDs of nodes that were found to be out of service, as far as they matter to where the pod stands. */
  outOfService(podUID: string, standing: Standing): readonly string[] {
    const known = this.#looks.get(podUID);
    return known?.isOutOfService === true && known.of === idOf(standing) ? [known.nodeUID] : [];
  }

  forget(podUID: string): void {
    this.#looks.delete(podUID);
  }

  /** One that is not there, or is another of the same name, nobody has said anything about. */
  async #isOutOfService({ node, nodeUID }: Runner, signal: AbortSignal): Promise<boolean> {
    const found = await this.#client.find(nodes, '', node, signal);
    return found?.metadata.uid === nodeUID && isOutOfService(found);
  }
}

/** Whoever may have the right, or may be given it, besides this pod; nobody once the record has nothing of it any more. */
function otherSide(podUID: string, standing: Standing, record: RightToRun | undefined): Runner | undefined {
  // A node elsewhere is its own admins' to give up, whatever nodes here are called.
  if (isElsewhere(standing)) return undefined;
  if (standing.kind === 'ended') return record?.holder?.podUID === podUID ? standing.givenTo : undefined;
  if (standing.kind === 'refused' && record?.successor?.podUID !== podUID) return undefined;
  const attempt = attemptOf(standing);
  return attempt?.target.podUID === podUID ? attempt.source : attempt?.target;
}

function isElsewhere(standing: Standing): boolean {
  return standing.kind === 'ended' ? standing.isAcross === true : attemptOf(standing)?.across !== undefined;
}

function attemptOf(standing: Standing) {
  if (standing.kind === 'holding') return standing.reserved;
  return 'attempt' in standing ? standing.attempt : undefined;
}

/** What a handing over is known by: the same for all that follows from it. */
function idOf(standing: Standing): string {
  if (standing.kind === 'ended') return `ended ${standing.epoch}`;
  const attempt = attemptOf(standing);
  return attempt ? `${attempt.epoch} ${attempt.sourceMigrationUID}` : '';
}
