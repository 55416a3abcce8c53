import { createHash } from 'node:crypto';
import type { Random } from '../../src/env/ports.ts';
import type { Answer, Anything } from '../support/api.ts';
import { ConnectionLost, type HttpClient } from '../support/http-client.ts';

/** A write of one object, as it was asked for. */
export interface Attempt {
  readonly kind: 'create' | 'update' | 'patch' | 'delete';
  readonly name: string;
  /** Unique among all writes of all writers; what is stored carries it. */
  readonly mark: string;
  /** Of the state that it was based on. */
  readonly uid: string | undefined;
}

/** A write that was answered. */
export interface Acknowledged extends Attempt {
  readonly revision: number;
  /** The object as it was answered; for a deletion, as it was before. */
  readonly object: Anything;
}

/** What a writer knows of one object. */
interface Known {
  /** The last acknowledged state; undefined where the object is not there. */
  object: Anything;
  /** The write whose answer was lost, if there is one: it may have happened or not. */
  open: Attempt | undefined;
}

const PAYLOAD_LENGTH_MAX = 20_000;

function checksum(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** Throws unless an object is whole: as long as it was sent, and what it was sent as. */
export function assertWhole(object: Anything): void {
  const { payload = '', sum } = object.data ?? {};
  if (checksum(payload) !== sum) throw new Error(`${object.metadata.name} is not what was written`);
}

/**
 * Creates, changes and deletes objects that nobody else writes, one write at a time, and remembers what was answered.
 * After a crash it looks what became of the writes whose answers were lost.
 */
export class Writer {
  readonly acknowledged: Acknowledged[] = [];
  /** Writes that nobody ever answered but that turned out to have happened. */
  readonly discovered: Attempt[] = [];
  readonly #name: string;
  readonly #path: string;
  readonly #client: HttpClient;
  readonly #random: Random;
  readonly #objects = new Map<string, Known>();
  #sequence = 0;

  constructor(options: { name: string; path: string; client: HttpClient; random: Random; objects: number }) {
    this.#name = options.name;
    this.#path = options.path;
    this.#client = options.client;
    this.#random = options.random;
    for (let index = 0; index < options.objects; index++)
      this.#objects.set(`${options.name}-${index}`, { object: undefined, open: undefined });
  }

  /** Writes until the connection is lost. */
  async run(): Promise<void> {
    const names = [...this.#objects.keys()];
    try {
      for (;;) await this.#write(names[Math.floor(this.#random.number() * names.length)] ?? '');
    } catch (error) {
      if (!(error instanceof ConnectionLost)) throw error;
    }
  }

  /** Compares what is stored with what was answered. Throws where something acknowledged is lost, or changed by nobody. */
  verify(stored: ReadonlyMap<string, Anything>): void {
    for (const [name, known] of this.#objects) {
      const found = stored.get(name);
      if (found) assertWhole(found);
      if (!isSame(found, known.object)) this.#accept(name, known, found);
      known.object = found;
      known.open = undefined;
    }
  }

  #accept(name: string, known: Known, found: Anything): void {
    const { open } = known;
    const was = known.object?.metadata.resourceVersion ?? 'nothing';
    const is = found?.metadata.resourceVersion ?? 'nothing';
    if (!open) throw new Error(`${name} was acknowledged at ${was}, but is at ${is}`);
    const isResult = open.kind === 'delete' ? found === undefined : found?.data.mark === open.mark;
    if (!isResult) throw new Error(`${name} was at ${was}, then there was one ${open.kind}, but it is at ${is}`);
    if (found && open.uid !== undefined && found.metadata.uid !== open.uid) throw new Error(`${name} changed its uid`);
    if (found && known.object && Number(is) <= Number(was)) throw new Error(`${name} went back from ${was} to ${is}`);
    this.discovered.push(open);
  }

  async #write(name: string): Promise<void> {
    const known = this.#objects.get(name);
    if (!known) throw new Error(`${name} is not this writer's`);
    const { object } = known;
    const kind = object === undefined ? 'create' : this.#choose();
    const attempt: Attempt = { kind, name, mark: `${this.#name}/${this.#sequence++}`, uid: object?.metadata.uid };
    known.open = attempt;
    const answer = await this.#send(attempt, object);
    known.open = undefined;
    if (answer.status >= 300) throw new Error(`${kind} of ${name} was refused: ${answer.text}`);
    this.#note(attempt, known, answer);
  }

  #note(attempt: Attempt, known: Known, answer: Answer): void {
    const isDeletion = attempt.kind === 'delete';
    const object = isDeletion ? known.object : answer.json;
    if (!isDeletion) {
      assertWhole(object);
      if (attempt.uid !== undefined && object.metadata.uid !== attempt.uid)
        throw new Error('an update changed the uid');
    }
    // The answer to a deletion does not tell its revision; the watchers will.
    const revision = isDeletion ? 0 : Number(object.metadata.resourceVersion);
    this.acknowledged.push({ ...attempt, revision, object });
    known.object = isDeletion ? undefined : object;
  }

  #choose(): Attempt['kind'] {
    const chance = this.#random.number();
    return chance < 0.45 ? 'update' : chance < 0.75 ? 'patch' : 'delete';
  }

  #send({ kind, name, mark }: Attempt, object: Anything): Promise<Answer> {
    const target = `${this.#path}/${name}`;
    if (kind === 'delete') return this.#client.request('DELETE', target);
    const payload = Math.floor(this.#random.number() * 36 ** 10)
      .toString(36)
      .repeat(Math.ceil((this.#random.number() ** 3 * PAYLOAD_LENGTH_MAX) / 10));
    const data = { mark, payload, sum: checksum(payload) };
    const labels = { parity: String(this.#sequence % 2) };
    if (kind === 'create')
      return this.#client.request('POST', this.#path, { body: { metadata: { name, labels }, data } });
    if (kind === 'patch')
      return this.#client.request('PATCH', target, {
        headers: { 'content-type': 'application/merge-patch+json' },
        body: { metadata: { labels }, data },
      });
    return this.#client.request('PUT', target, { body: { ...object, metadata: { ...object.metadata, labels }, data } });
  }
}

function isSame(found: Anything, known: Anything): boolean {
  return JSON.stringify(found) === JSON.stringify(known);
}
