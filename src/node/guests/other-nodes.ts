import type { RightToRun, Runner } from '../../api/kubevirt/right-to-run.ts';
import { ApiError } from '../../api/status.ts';
import type { Clock } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import type { Standing } from '../../migration/right-to-run/standing.ts';
import { isOutOfService, nodes } from './out-of-service.ts';

/** Often enough for whoever has given up a machine, and rarely enough for the API server. */
const LOOK_EVERY_MS = 15_000;

interface Look {
  /** The handing over that it was looked for. */
  readonly of: string;
  readonly nodeUID: string;
  readonly isOutOfService: boolean;
  readonly atMs: number;
}

/**
 * Whether an admin has declared the node at the other end of a handing over out of service. What was said while the right
 * was under way holds for that handing over, and for no other: a node that serves again may be given the next guest.
 */
export class OtherNodes {
  readonly #client: Pick<Client, 'get'>;
  readonly #clock: Clock;
  readonly #looks = new Map<string, Look>();

  constructor(client: Pick<Client, 'get'>, clock: Clock) {
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
    const known = this.#looks.get(podUID);
    const nowMs = this.#clock.now();
    const sinceMs = nowMs - (known?.of === of ? known.atMs : Number.NEGATIVE_INFINITY);
    if (known?.of === of && known.isOutOfService) return undefined;
    if (sinceMs >= 0 && sinceMs < LOOK_EVERY_MS) return LOOK_EVERY_MS - sinceMs;
    const isOutOfService = await this.#isOutOfService(other, signal);
    this.#looks.set(podUID, { of, nodeUID: other.nodeUID, isOutOfService, atMs: nowMs });
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
    try {
      const found = await this.#client.get(nodes, '', node, signal);
      return found.metadata.uid === nodeUID && isOutOfService(found);
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) return false;
      throw error;
    }
  }
}

/** Whoever may have the right, or may be given it, besides this pod; nobody once the record has nothing of it any more. */
function otherSide(podUID: string, standing: Standing, record: RightToRun | undefined): Runner | undefined {
  if (standing.kind === 'ended') return record?.holder?.podUID === podUID ? standing.givenTo : undefined;
  if (standing.kind === 'refused' && record?.successor?.podUID !== podUID) return undefined;
  const attempt = attemptOf(standing);
  return attempt?.target.podUID === podUID ? attempt.source : attempt?.target;
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
