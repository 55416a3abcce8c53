import { describe, expect, it } from 'vitest';
import { turn } from '../env/turn.ts';
import type { PeerAnswer, PeerRequest, PeerService } from '../node/migrations/peer.ts';
import { AgentsChannel } from './agents-channel.ts';
import type { FaultMix } from './fault-mix.ts';
import { Streams } from './streams.ts';
import { Trace } from './trace.ts';
import { ProcessClock, VirtualClock } from './virtual-clock.ts';

const runner = (node: string) => ({ node, nodeUID: `${node}-uid`, podUID: `${node}-pod` });
const LOOK: PeerRequest = {
  kind: 'look',
  attempt: {
    epoch: 1,
    source: runner('a'),
    target: runner('b'),
    sourceMigrationUID: 'm',
    targetMigrationUID: 'm',
  },
};
const ANSWER: PeerAnswer = { machine: 'inmigrate', letters: [] };
const PEER = { node: 'b', address: 'b', port: 1 };

function setUp(network: FaultMix['network'] = {}) {
  const clock = new VirtualClock();
  const trace = new Trace({ elapsedMs: () => clock.elapsedMs });
  const mix = () => ({ network, latencyMsMax: 5 });
  const channel = new AgentsChannel({ clock, random: new Streams(1).of('channel'), trace, mix });
  const deaths = new AbortController();
  const [caller, callee] = [new ProcessClock(clock), new ProcessClock(clock)];
  const { peers } = channel.linkOf('a', { clock: caller, killed: new AbortController().signal });
  const callees = channel.linkOf('b', { clock: callee, killed: deaths.signal });
  const look = async (): Promise<string> => {
    const heard: string[] = [];
    const { signal } = new AbortController();
    peers.exchange(PEER, LOOK, signal).then(
      ({ machine }) => heard.push(machine),
      (error: unknown) => heard.push(String(error)),
    );
    await turn();
    while (heard.length === 0 && clock.fireNext(60_000)) await turn();
    return heard.join();
  };
  const serve = (service: PeerService): void => callees.serve(service);
  return { channel, serve, look, deaths, clock };
}

describe('the channel of agents', () => {
  it('carries what is said, and the answer', async () => {
    const { serve, look } = setUp();
    const heard: string[] = [];
    serve({
      answer: (caller, request) => {
        heard.push(`${caller.node} ${request.kind}`);
        return Promise.resolve(ANSWER);
      },
    });
    expect(await look()).toBe('inmigrate');
    expect(heard).toEqual(['a look']);
  });

  it('says that nobody answers where nobody is, or where nothing comes through', async () => {
    const { channel, serve, look } = setUp();
    expect(await look()).toMatch(/connection refused/);
    serve({ answer: () => Promise.resolve(ANSWER) });
    const heal = channel.cut('b', 'a');
    expect(await look()).toMatch(/no answer in time/);
    heal();
    expect(await look()).toBe('inmigrate');
  });

  it('breaks off when the one who was asked dies, and passes on what that one refuses', async () => {
    const { serve, look, deaths, clock } = setUp();
    serve({ answer: () => Promise.reject(new Error('not for you')) });
    expect(await look()).toMatch(/not for you/);
    serve({ answer: () => new Promise(() => undefined) });
    clock.setTimer(() => deaths.abort(), 100);
    expect(await look()).toMatch(/the connection broke/);
  });

  it('loses answers as often as the plan says', async () => {
    const { serve, look } = setUp({ answerLost: 1 });
    let asked = 0;
    serve({
      answer: () => {
        asked++;
        return Promise.resolve(ANSWER);
      },
    });
    expect(await look()).toMatch(/no answer in time/);
    expect(asked).toBe(1);
  });
});
