import type { KubeObject } from '../../api/meta.ts';
import { testEnv } from '../../env/test.ts';
import { Client } from '../../kube/client.ts';
import type { InformerChange } from '../../kube/informer.ts';
import { keyOf } from '../../kube/resource.ts';
import { TransportError, type TransportRequest } from '../../kube/transport.ts';
import type { Node, Pod } from '../../migration/fit/objects.ts';
import { Scheduler } from './scheduler.ts';

/** Objects as an informer would have them, told when the test says so. */
class TestSource {
  readonly synced = Promise.resolve();
  readonly #objects = new Map<string, KubeObject>();
  readonly #handlers: ((change: InformerChange<KubeObject>) => void)[] = [];

  get(key: string): KubeObject | undefined {
    return this.#objects.get(key);
  }

  onChange(handler: (change: InformerChange<KubeObject>) => void): void {
    this.#handlers.push(handler);
  }

  set(object: KubeObject): void {
    const old = this.#objects.get(keyOf(object));
    this.#objects.set(keyOf(object), object);
    this.#tell({ type: old ? 'updated' : 'added', object, old, isInitial: false });
  }

  delete(key: string): void {
    const object = this.#objects.get(key);
    this.#objects.delete(key);
    if (object) this.#tell({ type: 'deleted', object, old: object, isInitial: false });
  }

  #tell(change: InformerChange<KubeObject>): void {
    for (const handler of this.#handlers) handler(change);
  }
}

/**
 * A scheduler alone with a server of pods. What the server has and what the scheduler is told of it are two things: the
 * test decides when one follows the other.
 */
export class World {
  readonly env = testEnv();
  readonly nodes = new TestSource();
  readonly told = new TestSource();
  readonly namespaces = new TestSource();
  readonly claims = new TestSource();
  readonly storageClasses = new TestSource();
  /** The pods as the server has them. */
  readonly pods = new Map<string, Pod>();
  readonly events: string[] = [];
  /** What to do with the next requests: lose them on the way there, or their answers on the way back. */
  readonly mishaps: ('request' | 'answer')[] = [];
  /** While set, the server takes requests and answers none before it resolves. */
  silence: Promise<void> | undefined;
  /** Requests that wait for their answers. */
  underWay = 0;
  readonly #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #version = 0;

  start(): void {
    const rest = () => new TestSource();
    const scheduler = new Scheduler({
      env: this.env,
      client: new Client({ send: (request) => this.#send(request), close: () => undefined }, 'test'),
      recorder: {
        event: ({ metadata }, _, reason, message) => void this.events.push(`${metadata.name} ${reason}: ${message}`),
      },
      informers: {
        pods: this.told,
        nodes: this.nodes,
        namespaces: this.namespaces,
        persistentVolumeClaims: this.claims,
        persistentVolumes: rest(),
        storageClasses: this.storageClasses,
        podDisruptionBudgets: rest(),
      },
    });
    for (const pod of this.pods.values()) this.told.set(pod);
    this.#running = scheduler.run(this.#stopping.signal);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  addNode(node: Node): void {
    this.nodes.set(node);
  }

  /** Puts a pod on the server, without telling the scheduler. */
  put(pod: Pod): void {
    const metadata = { ...pod.metadata, resourceVersion: String(++this.#version) };
    const spec = { schedulerName: 'default-scheduler', ...pod.spec };
    this.pods.set(keyOf(pod), { ...pod, metadata, spec });
  }

  /** Tells the scheduler what the server has of a pod. */
  tell(name: string): void {
    const key = `default/${name}`;
    const pod = this.pods.get(key);
    if (pod) this.told.set(pod);
    else this.told.delete(key);
  }

  add(...pods: Pod[]): void {
    for (const pod of pods) {
      this.put(pod);
      this.tell(pod.metadata.name ?? '');
    }
  }

  /** The node that the server has for a pod. */
  nodeOf(name: string): string | undefined {
    return this.pods.get(`default/${name}`)?.spec?.nodeName;
  }

  /** Lets time pass, in steps that let everything react. */
  async pass(durationMs: number): Promise<void> {
    for (let leftMs = durationMs; leftMs > 0; leftMs -= 500) {
      await this.settle();
      this.env.clock.advance(Math.min(500, leftMs));
    }
    await this.settle();
  }

  async settle(): Promise<void> {
    for (let turn = 0; turn < 5; turn++) {
      await new Promise((resolve) => setImmediate(resolve));
      this.env.clock.advance(0);
    }
  }

  async #send(request: TransportRequest) {
    if (request.path.startsWith('/api/v1/pods?')) return response(200, this.#placed());
    this.underWay++;
    await this.silence;
    this.underWay--;
    const mishap = this.mishaps.shift();
    if (mishap === 'request') throw new TransportError('lost on the way there');
    const [code, body] = this.#answer(request);
    if (mishap === 'answer') throw new TransportError('lost on the way back');
    return response(code, body);
  }

  #placed(): object {
    const items = [...this.pods.values()].filter(({ spec }) => (spec?.nodeName ?? '') !== '');
    return { kind: 'PodList', apiVersion: 'v1', metadata: { resourceVersion: String(this.#version) }, items };
  }

  #answer({ method, path, body = '{}' }: TransportRequest): [number, object] {
    const [, name = '', subresource = ''] = /\/namespaces\/default\/pods\/([^/?]+)\/?([^?]*)/.exec(path) ?? [];
    const pod = this.pods.get(`default/${name}`);
    const given = JSON.parse(body) as Pod & { target: { name: string } };
    if (!pod) return refusal(404, 'NotFound');
    if (method === 'GET') return [200, pod];
    if (method === 'DELETE') {
      this.put({ ...pod, metadata: { ...pod.metadata, deletionTimestamp: '2026-01-01T00:00:30Z' } });
      return [200, pod];
    }
    if (subresource === 'binding') {
      if (pod.spec?.nodeName || given.metadata.uid !== pod.metadata.uid) return refusal(409, 'Conflict');
      this.put({ ...pod, spec: { ...pod.spec, nodeName: given.target.name } });
      return [201, {}];
    }
    if (given.metadata.resourceVersion !== pod.metadata.resourceVersion) return refusal(409, 'Conflict');
    this.put({ ...pod, status: { ...pod.status, ...given.status } });
    return [200, pod];
  }
}

function response(status: number, body: object) {
  const pieces = async function* () {
    yield JSON.stringify(body);
  };
  return { status, headers: {}, body: pieces() };
}

function refusal(code: number, reason: string): [number, object] {
  return [code, { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', code, reason, message: reason }];
}
