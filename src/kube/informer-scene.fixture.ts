import { testEnv } from '../env/test.ts';
import type { KubeObject } from '../api/meta.ts';
import { Client } from './client.ts';
import { Informer, type InformerChange, type InformerOptions } from './informer.ts';
import type { Resource } from './resource.ts';
import {
  failure,
  type ScriptedAnswer,
  ScriptedTransport,
  ScriptedWatch,
  settle,
} from './scripted-transport.fixture.ts';

/** Informers on scripted servers, in time that the test moves. */

export const CONFIG_MAPS: Resource = {
  group: '',
  version: 'v1',
  plural: 'configmaps',
  kind: 'ConfigMap',
  namespaced: true,
};

export const added = (object: object) => ({ type: 'ADDED', object });
export const modified = (object: object) => ({ type: 'MODIFIED', object });
export const deleted = (object: object) => ({ type: 'DELETED', object });

/** The answer to a list, or to a page of one. */
export function list(version: number, items: readonly object[], token?: string): ScriptedAnswer {
  return { body: { kind: 'ConfigMapList', metadata: { resourceVersion: String(version), continue: token }, items } };
}

/** `+name@version` added, `~` updated, `=` told again, `-` deleted; a leading `i` for initial ones. */
export function short({ type, object, old, isInitial }: InformerChange<KubeObject>): string {
  const sign = type === 'added' ? '+' : type === 'deleted' ? '-' : old === object ? '=' : '~';
  return `${isInitial ? 'i' : ''}${sign}${object.metadata.name}@${object.metadata.resourceVersion}`;
}

/** An informer on a scripted server, whose answers are given one by one; time moves when told. */
export class Scene {
  readonly env = testEnv();
  readonly transport = new ScriptedTransport(() => this.#answer());
  readonly informer: Informer<KubeObject>;
  readonly changes: string[] = [];
  readonly stop = new AbortController();
  readonly running: Promise<void>;
  readonly #answers: ScriptedAnswer[] = [];

  constructor(
    options: Partial<InformerOptions<KubeObject>> = {},
    setUp: (informer: Informer<KubeObject>) => void = () => {},
  ) {
    const client = new Client(this.transport, 'test');
    this.informer = new Informer({ client, resource: CONFIG_MAPS, env: this.env, ...options });
    this.informer.onChange((change) => this.changes.push(short(change)));
    setUp(this.informer);
    // The script is filled before the first request goes out.
    this.running = Promise.resolve().then(() => this.informer.run(this.stop.signal));
    this.running.catch(() => undefined);
    scenes.push(this);
  }

  #answer(): ScriptedAnswer {
    return this.#answers.shift() ?? failure(503, 'ServiceUnavailable');
  }

  /** What the next requests are answered; a watch for each `watch`. */
  answers(...answers: (ScriptedAnswer | ScriptedWatch)[]): void {
    this.#answers.push(...answers.map((answer) => (answer instanceof ScriptedWatch ? { body: answer } : answer)));
  }

  /** A server that lists and does not stream, with these objects; answers its first watch. */
  async listed(version: number, items: readonly object[]): Promise<ScriptedWatch> {
    const watch = new ScriptedWatch();
    this.answers(failure(422, 'Invalid'), list(version, items), watch);
    await settle();
    this.transport.requests.length = 0;
    this.changes.length = 0;
    return watch;
  }

  async pass(ms: number): Promise<void> {
    this.env.clock.advance(ms);
    await settle();
  }
}

const scenes: Scene[] = [];

/** Ends all informers that were begun. */
export async function endScenes(): Promise<void> {
  for (const scene of scenes.splice(0)) {
    scene.stop.abort();
    await scene.running.catch(() => undefined);
  }
}

/** What the first request asks for, and a watch that goes on. */
export const STREAM =
  '/api/v1/configmaps?allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&watch=true';
export const watchFrom = (version: number) =>
  `/api/v1/configmaps?allowWatchBookmarks=true&resourceVersion=${version}&watch=true`;
