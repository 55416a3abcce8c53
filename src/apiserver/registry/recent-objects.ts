import type { KubeObject } from '../../api/meta.ts';
import type { ResourceDefinition } from '../../api/resource.ts';
import type { Stored } from '../storage/store.ts';
import { decodeStored } from './codec.ts';

/**
 * What was written last is what is read next: by the next write, by those who watch for its labels, and by those who want
 * its metadata alone. So that none of them has to parse the text that was just made of it, the object stays for a while.
 */

/** As many as change at the same time in a large cluster. Each takes a few times the memory of its text. */
const RECENT_MAX = 512;
/** Larger ones are rare, and would take more memory than all the others. */
const TEXT_LENGTH_MAX = 64 * 1024;

interface Memo {
  readonly definition: ResourceDefinition;
  readonly object: KubeObject;
}

export class RecentObjects {
  readonly #ring: Stored[] = [];
  #next = 0;

  /** From now on this object is what is read of this state: nobody may change it any more. */
  keep(definition: ResourceDefinition, stored: Stored, object: KubeObject): void {
    if (definition.storage || stored.text.length > TEXT_LENGTH_MAX) return;
    object.metadata.resourceVersion = String(stored.revision);
    stored.parsed = { definition, object } satisfies Memo;
    const oldest = this.#ring[this.#next];
    if (oldest) oldest.parsed = undefined;
    this.#ring[this.#next] = stored;
    this.#next = (this.#next + 1) % RECENT_MAX;
  }
}

/** The object as this definition's version shows it. It is shared: nobody may change it. */
export function readStored(definition: ResourceDefinition, stored: Stored): KubeObject {
  return isAsWritten(definition, stored) ? (stored.parsed as Memo).object : decodeStored(definition, stored);
}

/** Whether what is read is the very object that was pruned, defaulted and validated by this definition when it was written. */
export function isAsWritten(definition: ResourceDefinition, stored: Stored): boolean {
  return (stored.parsed as Memo | undefined)?.definition === definition;
}
