import { afterEach, describe, expect, it } from 'vitest';
import { testEnv } from '../../env/test.ts';
import { Client } from '../../kube/client.ts';
import type { InformerChange } from '../../kube/informer.ts';
import type { Lease } from '../../kube/leader-lease.ts';
import { failure, type ScriptedAnswer, ScriptedTransport, settle } from '../../kube/scripted-transport.fixture.ts';
import { makeNode, makePod } from '../../migration/fit/cluster.fixture.ts';
import type { Node, Pod } from '../../migration/fit/objects.ts';
import { NodeLifecycle } from './node-lifecycle.ts';

/** What is heard of nodes may be old: a loop that is told nothing new, beside a server that knows more. */

const SECOND_MS = 1000;

function node(version: number, status: string, lastHeartbeatTime: string, taints: string[] = []): Node {
  const spec = { taints: taints.map((key) => ({ key: `node.kubernetes.io/${key}`, effect: 'NoSchedule' })) };
  const { metadata, ...made } = makeNode('n', { spec });
  const conditions = [{ type: 'Ready', status, lastHeartbeatTime, reason: 'NodeStatusUnknown' }];
  return { ...made, metadata: { ...metadata, uid: 'u', resourceVersion: String(version) }, status: { conditions } };
}

const lease = (renewTime: string): Lease => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: 'n', namespace: 'kube-node-lease' },
  spec: { renewTime },
});

class Told {
  readonly env = testEnv();
  readonly events: string[] = [];
  readonly answers: ScriptedAnswer[] = [];
  readonly transport = new ScriptedTransport(() => this.answers.shift() ?? failure(500, 'InternalError'));
  leases: Lease[] = [];
  pods: Pod[] = [];
  #node: Node | undefined;
  #tell: (change: InformerChange<Node>) => void = () => undefined;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;

  constructor() {
    const recorder = { event: (_: object, __: string, reason: string) => void this.events.push(reason) };
    const loop = new NodeLifecycle({
      env: this.env,
      client: new Client(this.transport, 'test'),
      recorder,
      pods: {
        get: (key) => this.pods.find(({ metadata }) => `default/${metadata.name}` === key),
        byIndex: () => this.pods,
        onChange: () => undefined,
      },
      nodes: {
        get: () => this.#node,
        list: () => (this.#node ? [this.#node] : []),
        onChange: (handler) => (this.#tell = handler),
      },
      leases: { get: () => undefined, onChange: () => undefined, listNotOlderThan: async () => this.leases },
    });
    this.#running = loop.run(this.#stop.signal);
  }

  /** What was asked of the server, without what is on every path. */
  get requests(): string[] {
    return this.transport.requests.map(({ method, path }) => `${method} ${path.replace(/^\/api\/v1\/|\?.*/g, '')}`);
  }

  async hear(heard: Node): Promise<void> {
    const old = this.#node;
    this.#node = heard;
    this.#tell({ type: old ? 'updated' : 'added', object: heard, old, isInitial: false });
    await settle();
  }

  async pass(seconds: number): Promise<void> {
    this.env.clock.advance(seconds * SECOND_MS);
    await settle();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }
}

let told: Told;
afterEach(() => told.stop());

describe('before a node is said to be silent', () => {
  const GET = 'GET nodes/n';
  const PATCH = 'PATCH nodes/n/status';

  it.each<[string, ScriptedAnswer[], Lease[], string[]]>([
    [
      'is asked for, and may be so',
      [{ body: node(1, 'True', 'a') }, { body: node(2, 'Unknown', 'a') }],
      [],
      [GET, PATCH],
    ],
    ['has it spoken?', [{ body: node(2, 'True', 'b') }], [], [GET]],
    ['has it renewed its lease?', [{ body: node(1, 'True', 'a') }], [lease('b')], [GET]],
    ['is it there?', [failure(404, 'NotFound')], [], [GET]],
    ['is it another?', [{ body: makeNode('n') }], [], [GET]],
    ['has somebody said so?', [{ body: node(2, 'Unknown', 'a') }], [], [GET]],
    [
      'does it speak just now?',
      [{ body: node(1, 'True', 'a') }, failure(409, 'Conflict'), { body: node(2, 'True', 'b') }],
      [],
      [GET, PATCH, GET],
    ],
    ['does it go just now?', [{ body: node(1, 'True', 'a') }, failure(404, 'NotFound')], [], [GET, PATCH]],
  ])('it %s', async (_, answers, leases, requests) => {
    told = new Told();
    await told.hear(node(1, 'True', 'a'));
    told.answers.push(...answers);
    told.leases = leases;
    await told.pass(50);
    expect(told.requests).toEqual(requests);
  });

  it.each([failure(404, 'NotFound'), { body: node(1, 'Unknown', 'a') }])(
    'and when the answer is not what we hear, it is asked again',
    async (answer) => {
      told = new Told();
      await told.hear(node(2, 'True', 'a'));
      told.answers.push(answer, { body: node(2, 'True', 'a') }, { body: node(3, 'Unknown', 'a') });
      await told.pass(50);
      expect(told.requests).toEqual([GET]);
      await told.pass(1);
      expect(told.requests).toEqual([GET, GET, PATCH]);
    },
  );

  it('and when the answer is lost, it is asked again', async () => {
    told = new Told();
    await told.hear(node(1, 'True', 'a'));
    told.answers.push({ body: node(1, 'True', 'a') }, failure(503, 'ServiceUnavailable'));
    await told.pass(50);
    told.answers.push({ body: node(2, 'Unknown', 'a') });
    await told.pass(1);
    expect(told.requests).toEqual([GET, PATCH, GET]);
  });
});

describe('taints', () => {
  it('are put on the node as it is, not as it was', async () => {
    told = new Told();
    told.answers.push(failure(409, 'Conflict'), { body: node(5, 'False', 'b', ['not-ready']) });
    await told.hear(node(1, 'False', 'a'));
    expect(told.requests).toEqual(['PATCH nodes/n', 'GET nodes/n']);
  });
});

describe('pods of a lost node', () => {
  const ready = (version: number, status: string): Pod =>
    makePod(
      'p',
      { nodeName: 'n' },
      { uid: 'p', resourceVersion: String(version) },
      { conditions: [{ type: 'Ready', status }] },
    );

  it.each<[string, ScriptedAnswer[], string[], boolean]>([
    ['are not ready', [{ body: ready(2, 'False') }], ['PATCH'], true],
    [
      'that change meanwhile are looked at again',
      [failure(409, 'Conflict'), { body: ready(2, 'False') }],
      ['PATCH', 'GET'],
      false,
    ],
    ['that go are gone', [failure(404, 'NotFound')], ['PATCH'], false],
    [
      'are told until they know',
      [failure(500, 'InternalError'), { body: ready(2, 'False') }],
      ['PATCH', 'PATCH'],
      true,
    ],
  ])('%s', async (_, answers, methods, isSaid) => {
    told = new Told();
    told.pods = [ready(1, 'True')];
    await told.hear(node(1, 'True', 'a'));
    told.answers.push(...answers);
    await told.hear(node(2, 'Unknown', 'a', ['unreachable']));
    await told.pass(1);
    expect(told.transport.requests.filter(({ path }) => path.includes('/pods/')).map(({ method }) => method)).toEqual(
      methods,
    );
    expect(told.events.includes('NodeNotReady')).toBe(isSaid);
  });
});
