import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LOG_OFFSET_HEADER } from '../../api/guest-run.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { serviceUnavailable } from '../../api/status.ts';
import type { Clock } from '../../env/ports.ts';
import { silentLogger } from '../../env/test.ts';
import type { AgentRequest, AgentResponse } from './agents.ts';
import type { FoundRun } from './guest-runs.ts';
import { logOptions, nodesWithAgents, SerialLogs } from './serial-log.ts';

type PlayedRun = FoundRun & { text: string };

/** Nodes with their logs, a guest that goes from one to the other, and a time that passes when somebody waits. */
class PlayedCluster {
  readonly runs: PlayedRun[] = [];
  readonly off = new Set<string>();
  readonly asked: string[] = [];
  /** What happens whenever somebody who follows has heard all there is, one after the other. */
  readonly steps: (() => void)[] = [];
  /** What happens before somebody looks where the guest is. */
  readonly looks: (() => void)[] = [];
  /** What happens when a node that is off is asked. */
  readonly refusals: (() => void)[] = [];
  guest: VirtualMachineInstance | undefined;
  #nowMs = 0;

  /** A run of the guest; the guest is there where more may come. */
  run(node: string, text: string, more: Partial<FoundRun> = {}): PlayedRun {
    const number = this.runs.length + 1;
    const order = { machineUID: 'machine', epoch: number };
    const run = { node, text, podUID: `pod-${number}`, guestUID: 'guest', startedAtMs: number, isLive: false };
    const made = { ...run, ...order, ...more };
    this.runs.push(made);
    if (made.isLive) this.holds(made);
    return made;
  }

  /** The guest's record says that this run is the one. */
  holds({ node, podUID, guestUID }: FoundRun): void {
    const rightToRun = { epoch: 1, holder: { node, nodeUID: node, podUID } };
    const status = { phase: 'Running', nodeName: node, rightToRun } as const;
    const metadata = { namespace: 'shop', name: 'box', uid: guestUID };
    this.guest = { apiVersion: 'kubevirt.io/v1', kind: '', metadata, spec: {}, status } as VirtualMachineInstance;
  }

  ends(run: PlayedRun): void {
    this.runs[this.runs.indexOf(run)] = { ...run, isLive: false };
  }

  async read(query = ''): Promise<string> {
    const pieces: Uint8Array[] = [];
    const clock: Clock = {
      now: () => this.#nowMs,
      setTimer: (callback, delayMs) => {
        this.#nowMs += delayMs;
        const timer = setImmediate(callback);
        return { cancel: () => clearImmediate(timer) };
      },
    };
    const logs = new SerialLogs({
      agents: { send: (...asked) => this.#send(...asked), upgrade: () => Promise.reject(new Error('not asked for')) },
      clock,
      log: silentLogger,
      guestOf: async () => {
        if (this.asked.length > 0) this.looks.shift()?.();
        return this.guest;
      },
      nodes: async () => ['a', 'b', 'c', 'd'],
    });
    const options = logOptions(new URLSearchParams(query));
    const { signal } = new AbortController();
    for await (const piece of await logs.open({ namespace: 'shop', name: 'box' }, options, signal)) pieces.push(piece);
    expect([this.steps, this.looks]).toEqual([[], []]);
    return Buffer.concat(pieces).toString('utf8');
  }

  async #send(node: string, { path }: AgentRequest): Promise<AgentResponse> {
    this.asked.push(`${node} ${path.replace('/v1/namespaces/shop/virtualmachineinstances/box/', '')}`);
    if (this.off.has(node)) {
      this.refusals.shift()?.();
      throw serviceUnavailable(`${node} is off`);
    }
    const { pathname, searchParams } = new URL(path, 'https://agent');
    if (pathname.endsWith('/runs')) {
      const runs = this.runs.filter((run) => run.node === node).map(({ text: _text, node: _node, ...run }) => run);
      return { status: 200, headers: {}, body: bytes(JSON.stringify({ runs })) };
    }
    const podUID = searchParams.get('run') ?? '';
    const tail = searchParams.get('tailLines');
    const isFollowed = searchParams.get('follow') === 'true';
    const { text = '' } = this.runs.find((each) => each.podUID === podUID) ?? {};
    const unwanted = tail === null ? [] : linesOf(text).slice(0, -Number(tail) || undefined);
    const offset = Number(searchParams.get('offset') ?? unwanted.join('').length);
    if (offset > text.length) return { status: 410, headers: {}, body: bytes('the log has begun anew') };
    return { status: 200, headers: { [LOG_OFFSET_HEADER]: `${offset}` }, body: this.#log(podUID, offset, isFollowed) };
  }

  async *#log(podUID: string, offset: number, isFollowed: boolean): AsyncGenerator<Uint8Array> {
    const run = (): PlayedRun => this.runs.find((each) => each.podUID === podUID) as PlayedRun;
    const { text } = run();
    yield Buffer.from(text.slice(offset));
    if (!isFollowed) return;
    let told = text.length;
    while (run().isLive) {
      const step = this.steps.shift();
      if (!step) throw new Error('somebody follows, and nothing happens any more');
      step();
      yield Buffer.from(run().text.slice(told));
      told = run().text.length;
    }
  }
}

async function* bytes(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}

function linesOf(text: string): string[] {
  return text.split(/(?<=\n)/).filter((line) => line !== '');
}

describe('a log', () => {
  const cluster = (): PlayedCluster => {
    const made = new PlayedCluster();
    made.run('c', '1\n2\n');
    made.run('a', '3\n');
    made.run('c', '4\n5', { isLive: true });
    return made;
  };

  it.each([
    ['', '1\n2\n3\n4\n5\n'],
    ['tailLines=4', '2\n3\n4\n5\n'],
    ['tailLines=2', '4\n5\n'],
    ['tailLines=1', '5\n'],
    ['tailLines=0', ''],
    ['tailLines=99', '1\n2\n3\n4\n5\n'],
    ['limitBytes=3', '1\n2'],
    ['limitBytes=5&tailLines=3', '3\n4\n5'],
  ])('with %j is %j', async (query, expected) => expect(await cluster().read(query)).toBe(expected));

  it('leaves out what cannot be reached, unless the guest is there', async () => {
    const some = cluster();
    some.off.add('a').add('b');
    expect(await some.read()).toBe('1\n2\n4\n5\n');
    some.off.add('c');
    await expect(some.read()).rejects.toThrow('c is off');
  });

  it('is there when the guest is nowhere', async () => {
    const past = new PlayedCluster();
    past.run('a', '1\n2\n');
    past.run('b', '3\n');
    expect(await past.read('tailLines=2&follow')).toBe('2\n3\n');
    expect(await new PlayedCluster().read('follow')).toBe('');
  });

  it('is in the order of epochs, whatever the clocks of nodes say, and of machines of one name', async () => {
    const past = new PlayedCluster();
    past.run('a', '2\n', { epoch: 2, startedAtMs: 50 });
    past.run('b', '1\n', { epoch: 1, startedAtMs: 90 });
    past.run('b', '3\n', { epoch: 10, startedAtMs: 40 });
    past.run('a', '0\n', { machineUID: 'before', epoch: 77, startedAtMs: 30 });
    expect(await past.read()).toBe('0\n1\n2\n3\n');
  });

  it('goes on in the line in which the guest was moved, and begins another for every other guest', async () => {
    const past = new PlayedCluster();
    past.run('a', 'one li');
    past.run('b', '');
    past.run('a', 'ne\nsay');
    past.run('b', 'next\n', { guestUID: 'next', epoch: 5 });
    expect(await past.read()).toBe('one line\nsay\nnext\n');
    const tails = await Promise.all([1, 2, 3, 4].map((count) => past.read(`tailLines=${count}`)));
    expect(tails).toEqual(['next\n', 'say\nnext\n', 'one line\nsay\nnext\n', 'one line\nsay\nnext\n']);
  });

  it('ends with the last lines of all runs, followed or not', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.constantFrom('', 'x', 'x\n', 'x\ny', '\n', 'x\ny\nz\n'), fc.integer({ min: 1, max: 2 })), {
          maxLength: 5,
        }),
        fc.nat({ max: 6 }),
        fc.boolean(),
        async (said, count, follow) => {
          const past = new PlayedCluster();
          let epoch = 0;
          for (const [text, steps] of said) past.run('a', text, { epoch: (epoch += steps) });
          const whole = linesOf(await past.read());
          const last = await past.read(`tailLines=${count}&follow=${follow}`);
          expect(last).toBe(count === 0 ? '' : whole.slice(-count).join(''));
        },
      ),
      { numRuns: 100 },
    ));

  it('asks nobody twice for what is told whole', async () => {
    const some = cluster();
    await some.read();
    expect(some.asked.filter((path) => path.includes('log'))).toEqual([
      'c log?run=pod-1',
      'a log?run=pod-2',
      'c log?run=pod-3',
    ]);
  });
});

describe('whoever follows a log', () => {
  it('goes with the guest from node to node until it ends', async () => {
    const cluster = new PlayedCluster();
    const first = cluster.run('a', '1\n', { isLive: true });
    const at = (podUID: string): PlayedRun => cluster.runs.find((run) => run.podUID === podUID) as PlayedRun;
    cluster.steps.push(
      () => void (first.text += '2\nha'),
      () => {
        cluster.ends(first);
        // By the time that somebody looks, it has been on two others.
        cluster.run('b', 'lf\n');
        cluster.run('a', '3\n', { isLive: true });
        cluster.holds(first);
      },
      () => void (at('pod-3').text += '4\n'),
      () => cluster.ends(at('pod-3')),
    );
    // It takes a while until it is written down where the guest is, and that it has ended.
    cluster.looks.push(
      () => undefined,
      () => cluster.holds(at('pod-3')),
      () => undefined,
      () => undefined,
      () => void (cluster.guest = undefined),
    );
    expect(await cluster.read('follow')).toBe('1\n2\nhalf\n3\n4\n');
  });

  it('with the last lines only hears all of what comes after a move', async () => {
    const cluster = new PlayedCluster();
    const first = cluster.run('a', '1\n2\n3\n', { isLive: true });
    cluster.steps.push(
      () => {
        cluster.ends(first);
        cluster.run('b', '4\n5\n6\n', { isLive: true });
      },
      () => {
        cluster.ends(cluster.runs[1] as PlayedRun);
        cluster.guest = undefined;
      },
    );
    expect(await cluster.read('follow&tailLines=1')).toBe('3\n4\n5\n6\n');
  });

  it('does not go on with another guest of the same name', async () => {
    const cluster = new PlayedCluster();
    const first = cluster.run('a', '1\n', { isLive: true });
    cluster.steps.push(() => {
      cluster.ends(first);
      cluster.run('b', 'other\n', { guestUID: 'other', isLive: true });
    });
    expect(await cluster.read('follow')).toBe('1\n');
  });

  it('waits for a node that cannot be reached for now, and not for ever', async () => {
    const cluster = new PlayedCluster();
    const first = cluster.run('a', '1\n', { isLive: true });
    const move = (): void => {
      cluster.ends(first);
      cluster.run('b', '2\n', { isLive: true });
      cluster.off.add('b');
    };
    cluster.steps.push(move, () => {
      cluster.ends(cluster.runs[1] as PlayedRun);
      cluster.guest = undefined;
    });
    cluster.looks.push(
      () => undefined,
      () => undefined,
      () => void cluster.off.delete('b'),
    );
    expect(await cluster.read('follow')).toBe('1\n2\n');
    cluster.run('a', '3\n', { isLive: true, guestUID: 'next' });
    cluster.steps.push(() => {
      cluster.ends(cluster.runs[2] as PlayedRun);
      cluster.run('b', '4\n', { isLive: true, guestUID: 'next' });
      cluster.off.add('b');
    });
    await expect(cluster.read('follow')).rejects.toThrow('b is off');
  });

  it('hears the end of it when its node breaks off for good', async () => {
    const cluster = new PlayedCluster();
    cluster.run('a', '1\n', { isLive: true });
    await expect(cluster.read('follow')).rejects.toThrow('nothing happens any more');
  });

  it.each(['follow', 'follow&tailLines=1'])('goes on with %s where it was when the agent is back', async (query) => {
    const cluster = new PlayedCluster();
    const run = cluster.run('a', '0\n1\n', { isLive: true });
    const breakOff = (): never => {
      throw new Error('the connection was lost');
    };
    cluster.steps.push(
      () => void (run.text += '2\n'),
      () => {
        run.text += '3\n';
        cluster.off.add('a');
        breakOff();
      },
      breakOff,
      () => void (run.text += '4\n'),
      () => {
        cluster.ends(run);
        cluster.guest = undefined;
      },
    );
    cluster.refusals.push(
      () => undefined,
      () => void cluster.off.delete('a'),
    );
    expect(await cluster.read(query)).toBe(query === 'follow' ? '0\n1\n2\n3\n4\n' : '1\n2\n3\n4\n');
  });

  it('is told when a log has begun anew while the agent was away', async () => {
    const cluster = new PlayedCluster();
    const run = cluster.run('a', '1\n2\n', { isLive: true });
    cluster.steps.push(() => {
      run.text = '9\n';
      throw new Error('the connection was lost');
    });
    await expect(cluster.read('follow')).rejects.toThrow('node a answered 410: the log has begun anew');
  });
});

it('understands what kubectl would ask for', () => {
  const options = (query: string): object => logOptions(new URLSearchParams(query));
  expect(options('follow=false&limitBytes=')).toEqual({ follow: false, tailLines: undefined, limitBytes: undefined });
  expect(() => options('tailLines=-1')).toThrow('tailLines must be a whole number');
});

it('asks nodes that have agents', () => {
  const node = (name: string, labels?: Record<string, string>, ready?: 'True' | 'False' | 'Unknown') => ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, ...(labels ? { labels } : {}) },
    status: { conditions: ready ? [{ type: 'Ready', status: ready }] : [] },
  });
  const all = [
    node('b', { 'kubevirt.io/schedulable': 'false' }),
    node('x'),
    node('a', { 'kubevirt.io/schedulable': 'true' }, 'True'),
    node('c', { 'kubevirt.io/schedulable': 'true' }, 'Unknown'),
  ];
  expect(nodesWithAgents(all)).toEqual(['a', 'b']);
});
