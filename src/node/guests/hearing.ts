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

  /** Whether this node is still to be heard. */
  get isDue(): boolean {
    const { restoration, node } = this.#options.surroundings;
    return restoration?.unheard?.includes(node) === true;
  }

  /** Takes note of whether all is said of a pod; answers whether that may have been the last. */
  note(podUID: string, isSaid: boolean): boolean {
    const { restoration } = this.#options.surroundings;
    if (!restoration || !this.isDue) {
      this.#heard.clear();
      return false;
    }
    if (isSaid) this.#heard.set(podUID, restoration.id);
    else this.#heard.delete(podUID);
    return isSaid && this.#isComplete(restoration.id);
  }

  /** Says that this node was heard, if all of it is said. */
  async tell(signal: AbortSignal): Promise<void> {
    const { client, surroundings, log } = this.#options;
    const { restoration, node } = surroundings;
    if (!restoration || !this.isDue || !surroundings.isRegistered || !this.#isComplete(restoration.id)) return;
    if (surroundings.heardRestoration === restoration.id) return;
    const body = { metadata: { annotations: { [HEARD_ANNOTATION]: restoration.id } } };
    await client.patch(nodes, '', node, { type: 'merge', body }, signal);
    log.info('said what the journal holds since the restore', { restoration: restoration.id });
  }

  #isComplete(id: string): boolean {
    return [...this.#options.journal.pods()].every(({ podUID }) => this.#heard.get(podUID) === id);
  }
}
