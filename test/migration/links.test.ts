import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Anything } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { FarNode, hasFarNodes } from '../support/far-node.ts';
import { probe } from '../support/guest-manifests.ts';
import { leftOut } from '../support/left-out.ts';
import { MovingGuests } from '../support/moving-guests.ts';
import { PostCopyOffer } from '../support/post-copy.ts';
import { sample } from '../support/sample.ts';
import { say } from '../support/say.ts';

/** The links between two nodes are cut, loudly and in silence, at the worst moments; and strangers knock. */

vi.setConfig({ testTimeout: 240_000, hookTimeout: 180_000 });

/** How many of all cases are tried where not all are. */
const SAMPLE = 1;
const TLS_ALERT = 0x15;
const isPossible = hasFarNodes();
/** Where targets listen; below what the kernel gives out by itself. */
const FIRST = 24_000 + (process.pid % 100) * 4;
const PORTS = [FIRST, FIRST + 1];
/** The guest's node, which calls others through links that can be cut, and where it goes. */
const [FAR, NEAR] = ['far', 'node-1'];

let guests: MovingGuests;
let far: FarNode;
let agentPort: number;
let apiPort: number;
let postCopy: PostCopyOffer;

beforeAll(async () => {
  if (!isPossible) return;
  postCopy = new PostCopyOffer();
  guests = await MovingGuests.start({ nodes: 1 });
  await guests.configure({ portRange: { first: FIRST, last: PORTS.at(-1) } }, ['MigrationDowntimeTuning']);
  const { json } = (await guests.host.api.request('GET', `/api/v1/nodes/${NEAR}`)).expect(200);
  agentPort = json.status.daemonEndpoints.kubeletEndpoint.Port;
  apiPort = Number(new URL(guests.host.godwit.access().url).port);
  far = await FarNode.join(guests.host, FAR, [agentPort, ...PORTS]);
  await guests.host.nodesAreReady(2);
  await guests.policy('paced', { pace: 'slow' }, { bandwidthPerMigration: '12Mi' });
  const early = { bandwidthPerMigration: '4Mi', maxDowntimeMs: 30, completionTimeoutPerGiB: 14, allowPostCopy: true };
  await guests.policy('early', { pace: 'early' }, early);
  // A link that is silent for longer than that is dead.
  await guests.policy('impatient', { pace: 'impatient' }, { bandwidthPerMigration: '12Mi', progressTimeout: 10 });
});
afterAll(async () => {
  if (!isPossible) return;
  await far.leave();
  await guests.stop();
  postCopy.withdraw();
});

let made = 0;
let name = '';

/** A guest on the far node, that is about to leave it. Answers the migration. */
async function leave(
  work = 'mib=24 hz=200 rate=4',
  labels: Record<string, string> = { pace: 'slow' },
): Promise<string> {
  name = `guest-${made++}`;
  await guests.host.kubectl.ok(`cordon ${NEAR}`);
  await guests.create(name, probe({ memory: '48Mi', arguments: work }), labels);
  await guests.host.kubectl.ok(`uncordon ${NEAR}`);
  expect((await guests.holder(name)).node).toBe(FAR);
  return guests.ask(name);
}

/** It stayed where it was, and can still go. */
async function expectStayedAndFree(): Promise<void> {
  expect(await guests.isWhole(name)).toHaveLength(1);
  await eventually(() => expect(guests.host.qemus()).toHaveLength(1), 60_000);
  for (const link of far.links.values()) link.thaw();
  await guests.move(name);
  expect(await guests.isWhole(name)).toHaveLength(2);
  await guests.remove(name);
}

function memoryLinks(act: 'cut' | 'freeze' | 'holdAnswers'): void {
  for (const port of PORTS) far.link(port)[act]();
}

/** Waits until a good part of memory has gone over. */
async function copying(migration: string): Promise<void> {
  const passed = (): number => PORTS.reduce((sum, port) => sum + far.link(port).passedBytes, 0);
  const before = passed();
  await guests.reaches(migration, 'Running');
  await eventually(() => expect(passed() - before).toBeGreaterThan(4 * 2 ** 20), 60_000);
}

/** What happens to a guest on its way from the far node, and what becomes of it. */
const CASES: Readonly<Record<string, () => Promise<void>>> = {
  'the link of a copy is cut: the guest stays, and the migration says why': async () => {
    const migration = await leave();
    await copying(migration);
    memoryLinks('cut');
    const { status } = await guests.fails(migration);
    expect(status.migrationState.failureReason).toMatch(/\w/);
    await expectStayedAndFree();
  },

  'the link of a copy falls silent, which nobody tells: somebody notices': async () => {
    const migration = await leave(undefined, { pace: 'impatient' });
    await copying(migration);
    memoryLinks('freeze');
    const { status } = await guests.fails(migration);
    const [last] = status.migrationState.decisions.slice(-1);
    expect(last).toMatchObject({ decision: 'give-up', reason: 'LinkSilent' });
    await expectStayedAndFree();
  },

  'the link is cut at the very end, when all is over and the source does not know: the guest runs once': async () => {
    const migration = await leave();
    await copying(migration);
    // The target says nothing until it has all of the guest.
    memoryLinks('holdAnswers');
    await eventually(() => expect(guests.times.silentForMs(guests.bootOf(name))).toBeGreaterThan(1000), 60_000);
    expect((await guests.migration(migration)).status.phase).toBe('Running');
    memoryLinks('cut');
    await guests.fails(migration);
    await expectStayedAndFree();
  },

  'the channel between agents falls silent: the guest goes on, on one of the two': async () => {
    const migration = await leave();
    await copying(migration);
    far.link(agentPort).freeze();
    try {
      const { status } = await guests.ends(migration);
      say(`without the channel between agents: ${status.phase} ${status.migrationState.failureReason ?? ''}`);
    } finally {
      far.link(agentPort).thaw();
    }
    await guests.isWhole(name);
    await guests.remove(name);
  },

  'the API server is gone: it is not in the way of a switchover': async () => {
    const migration = await leave();
    await copying(migration);
    far.link(apiPort).freeze();
    try {
      const { target } = await guests.sides(name);
      await guests.noted(target, (entry) => entry.kind === 'taken');
      await eventually(() => expect(guests.times.firstIn(target.podUID)?.boot).toBe(guests.bootOf(name)));
    } finally {
      far.link(apiPort).thaw();
    }
    await guests.succeeds(migration);
    expect(await guests.isWhole(name)).toHaveLength(2);
    await guests.remove(name);
  },

  'the link of a post-copy is cut: it is mended': async () => {
    if (!postCopy.isPossible) return leftOut('nobody here may do post-copy');
    const migration = await leave('mib=24 hz=200 rate=12', { pace: 'early' });
    const { target } = await guests.sides(name);
    await guests.noted(target, (entry) => entry.kind === 'taken');
    memoryLinks('cut');
    const { status } = await guests.succeeds(migration);
    expect(status.migrationState.mode, JSON.stringify(status)).toBe('PostCopy');
    expect(status.migrationState.decisions.map(({ decision }: Anything) => decision)).toContain('recover');
    await guests.isWhole(name);
    await guests.remove(name);
  },

  'strangers knock at the port of a copy: they get nothing, and break nothing': async () => {
    const strangers = new Strangers();
    const migration = await leave();
    const { status } = await guests.ends(migration);
    expect(strangers.leave()).toBe(0);
    say(`with strangers at the door: ${status.phase} ${status.migrationState?.failureReason ?? ''}`);
    expect(await guests.isWhole(name)).toHaveLength(status.phase === 'Succeeded' ? 2 : 1);
    await guests.remove(name);
  },
};

/** Those who connect to the ports of copies again and again, without any right to. */
class Strangers {
  readonly #sockets: Socket[] = [];
  readonly #timer = setInterval(() => this.#knock(), 50);
  #heardBytes = 0;

  /** Answers how many bytes they were told. */
  leave(): number {
    clearInterval(this.#timer);
    for (const socket of this.#sockets) socket.destroy();
    return this.#heardBytes;
  }

  #knock(): void {
    for (const port of PORTS) {
      const socket = connectTcp(port, '127.0.0.1');
      socket.on('connect', () => socket.write('QEVM\0\0\0\x03 let me in'));
      socket.on('data', (bytes: Buffer) => {
        // What TLS answers to what is no greeting of TLS is an alert, and no secret.
        if (bytes[0] !== TLS_ALERT) this.#heardBytes += bytes.length;
      });
      // It is not there yet, or does not want to know.
      socket.on('error', () => undefined);
      this.#sockets.push(socket);
    }
  }
}

describe.runIf(isPossible)('a guest that moves, while', () => {
  it.each(sample(Object.keys(CASES), SAMPLE))('%s', async (what) => CASES[what]?.());
});

describe.runIf(isPossible)('a stranger', () => {
  it.each(['nobody', 'an admin'])('who is %s is not heard on the channel between agents', async (who) => {
    const { ca, certificate, key } = guests.host.godwit.access();
    const credentials = who === 'nobody' ? {} : { cert: certificate, key };
    const body = JSON.stringify({ kind: 'look', attempt: {} });
    const answer = await new Promise<string>((resolve) => {
      const socket = connectTls({ port: agentPort, host: '127.0.0.1', ca, servername: NEAR, ...credentials });
      let heard = '';
      socket.on('data', (bytes: Buffer) => (heard += bytes.toString('latin1')));
      socket.on('error', (error) => resolve(String(error)));
      socket.on('close', () => resolve(heard));
      socket.write(
        `POST /v1/migrations HTTP/1.1\r\nhost: ${NEAR}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      );
    });
    expect(answer).toMatch(/^HTTP\/1\.1 40[13] |alert/);
  });
});

describe.runIf(isPossible)('what ran', () => {
  it('never ran twice', () => expect(guests.host.assertNeverDoubled()).toBeGreaterThan(50));
});
