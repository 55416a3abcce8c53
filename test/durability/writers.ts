import type { Random } from '../../src/env/ports.ts';
import type { Anything, Api } from '../support/api.ts';
import { ConnectionLost } from '../support/http-client.ts';

/** Writers that know what they were told: every acknowledged write, and the one whose answer was cut off. */

export const COLLECTION = '/api/v1/namespaces/default/configmaps';
const OBJECTS_PER_WRITER = 8;

/** What an object is: absent, or at a count. */
type State = { readonly count: number; readonly uid: string } | undefined;

/** A write that the server has acknowledged. */
export interface Acknowledged {
  readonly name: string;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  /** Of the object; a deletion is not told its revision. */
  readonly revision: number | undefined;
}

interface Known {
  state: State;
  /** What an unanswered write would have made of it. */
  attempted?: { readonly count: number | undefined };
}

export class Writer {
  readonly acknowledged: Acknowledged[] = [];
  readonly #api: Api;
  readonly #random: Random;
  readonly #known = new Map<string, Known>();

  constructor(index: number, api: Api, random: Random) {
    this.#api = api;
    this.#random = random;
    for (let number = 0; number < OBJECTS_PER_WRITER; number++)
      this.#known.set(`w${index}-${number}`, { state: undefined });
  }

  /** Writes, one object after the other, until told to stop; waits out the times when nobody answers. */
  async run(signal: AbortSignal): Promise<void> {
    const names = [...this.#known.keys()];
    while (!signal.aborted) {
      const name = names[Math.floor(this.#random.number() * names.length)] ?? '';
      try {
        await this.#write(name, this.#known.get(name) as Known);
      } catch (error) {
        if (!(error instanceof ConnectionLost)) throw error;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
  }

  /** Throws unless every object is as this writer was told, or as its unanswered write would have left it. */
  check(objects: ReadonlyMap<string, Anything>): void {
    for (const [name, known] of this.#known) this.#settle(name, known, objects.get(name));
  }

  async #write(name: string, known: Known): Promise<void> {
    if (known.attempted) {
      const answer = await this.#api.request('GET', `${COLLECTION}/${name}`);
      this.#settle(name, known, answer.status === 404 ? undefined : answer.expect(200).json);
    }
    if (known.state === undefined) return this.#put(name, known, 'POST', COLLECTION, 1);
    if (this.#random.number() < 0.2) return this.#delete(name, known);
    return this.#put(name, known, 'PUT', `${COLLECTION}/${name}`, known.state.count + 1);
  }

  async #put(name: string, known: Known, method: 'POST' | 'PUT', path: string, count: number): Promise<void> {
    known.attempted = { count };
    const body = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name },
      data: { count: String(count), padding: 'x'.repeat(200) },
    };
    const { metadata } = (await this.#api.request(method, path, { body })).expect(method === 'POST' ? 201 : 200).json;
    if (known.state && known.state.uid !== metadata.uid) throw new Error(`${name} changed its uid`);
    known.state = { count, uid: metadata.uid };
    known.attempted = undefined;
    this.acknowledged.push({
      name,
      type: method === 'POST' ? 'ADDED' : 'MODIFIED',
      revision: Number(metadata.resourceVersion),
    });
  }

  async #delete(name: string, known: Known): Promise<void> {
    known.attempted = { count: undefined };
    (await this.#api.request('DELETE', `${COLLECTION}/${name}`)).expect(200);
    known.state = undefined;
    known.attempted = undefined;
    this.acknowledged.push({ name, type: 'DELETED', revision: undefined });
  }

  /** Takes what is there for the truth, if it can be. */
  #settle(name: string, known: Known, object: Anything): void {
    const count = object === undefined ? undefined : Number(object.data.count);
    const isAsTold = count === known.state?.count && object?.metadata.uid === known.state?.uid;
    const isAsAttempted =
      known.attempted !== undefined &&
      count === known.attempted.count &&
      object?.data.padding?.length === (object === undefined ? undefined : 200);
    if (!isAsTold && !isAsAttempted) {
      throw new Error(
        `${name} is at ${count ?? 'nothing'}; told ${known.state?.count ?? 'nothing'}, attempted ${known.attempted ? (known.attempted.count ?? 'a deletion') : 'no more'}`,
      );
    }
    known.state = object === undefined ? undefined : { count: count ?? 0, uid: object.metadata.uid };
    known.attempted = undefined;
  }
}
