import { HEARD_ANNOTATION } from '../../api/kubevirt/well-known.ts';
import type { Logger } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import type { JournalFile } from '../journal/journal-file.ts';
import { nodes } from './out-of-service.ts';
import type { Surroundings } from './surroundings.ts';

export interface HearingOptions {
  readonly client: Client;
  readonly surroundings: Surroundings;
  readonly journal: JournalFile;
  readonly log: Logger;
}

/**
 * What this node has to say after the API's data was restored: until all nodes have set right what their journals know better,
 * nobody starts a guest. Once every pod of the journal was looked at and is at rest, the agent says so on its Node.
 */
export class Hearing {
  readonly #options: HearingOptions;
  /** Pods of which all is said, and since which restoration. */
  readonly #heard = new Map<string, string>();

  constructor(options: HearingOptions) {
    this.#options = options;
  }

  /** The restoration since which this node is still to be heard, if it is. */
  get due(): string | undefined {
    return this.#options.surroundings.dueRestoration;
  }

  /**
   * Takes note of whether all is said of a pod; answers whether that may have been the last. `lookedSince` is what was due
   * before the pod was looked at: a look that began earlier may have seen what was before the restore, and does not count.
   */
  note(podUID: string, isSaid: boolean, lookedSince: string | undefined): boolean {
    const { due } = this;
    if (due === undefined) {
      this.#heard.clear();
      return false;
    }
    const isHeard = isSaid && lookedSince === due;
    if (isHeard) this.#heard.set(podUID, due);
    else this.#heard.delete(podUID);
    return isHeard && this.#isComplete(due);
  }

  /** Says that this node was heard, if all of it is said. */
  async tell(signal: AbortSignal): Promise<void> {
    const { client, surroundings, log } = this.#options;
    const { due } = this;
    if (due === undefined || !surroundings.isRegistered || !this.#isComplete(due)) return;
    if (surroundings.heardRestoration === due) return;
    const body = { metadata: { annotations: { [HEARD_ANNOTATION]: due } } };
    await client.patch(nodes, '', surroundings.node, { type: 'merge', body }, signal);
    log.info('said what the journal holds since the restore', { restoration: due });
  }

  #isComplete(id: string): boolean {
    return [...this.#options.journal.pods()].every(({ podUID }) => this.#heard.get(podUID) === id);
  }
}
