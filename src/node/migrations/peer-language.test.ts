import { describe, expect, it } from 'vitest';
import { FULL_MACHINE } from '../../hypervisor/machine.fixture.ts';
import type { Attempt } from '../../migration/right-to-run/attempt.ts';
import { NearPeers } from './near-peers.fixture.ts';
import { attemptOf, comparedMachine, describeMachine, type PeerAnswer, type PeerRequest } from './peer.ts';
import { parseAnswer, parseRequest } from './peer-language.ts';
import { ShapeError } from './reader.ts';

const ATTEMPT: Attempt = {
  epoch: 7,
  source: { node: 'a', nodeUID: 'node-a', podUID: 'pod-a' },
  target: { node: 'b', nodeUID: 'node-b', podUID: 'pod-b' },
  sourceMigrationUID: 'migration',
  targetMigrationUID: 'migration',
  volumes: [{ name: 'root', claimUID: 'claim', imageEpoch: 8 }],
};

const REQUESTS: readonly PeerRequest[] = [
  {
    kind: 'open',
    attempt: ATTEMPT,
    method: { allowsPostCopy: false, channels: { count: 4, compression: 'zstd' }, isEncrypted: true },
    ports: { first: 49_152, last: 49_215 },
    copiedDisks: [{ bus: 'virtio', at: 4 }],
  },
  { kind: 'look', attempt: ATTEMPT },
  { kind: 'letter', message: { kind: 'grant', attempt: ATTEMPT, isPostCopy: false }, stoppedForMs: 12 },
  { kind: 'listen-again', attempt: ATTEMPT },
];

const ANSWER: PeerAnswer = {
  machine: 'inmigrate',
  letters: [{ kind: 'refused', attempt: ATTEMPT }],
  listening: { host: '10.0.0.2', port: 49_152 },
  opened: {
    host: '10.0.0.2',
    memoryPort: 49_153,
    disksPort: 49_154,
    credentials: { authorityPem: 'A', certificatePem: 'C', keyPem: 'K', peer: 'target' },
    isPostCopyPossible: true,
    machine: describeMachine({ spec: FULL_MACHINE, ramBytes: 2 ** 30, diskBytes: new Map([['virtio 4', 2 ** 31]]) }),
    diskFiles: { 'virtio 4': '64769:12' },
  },
};

const wire = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

describe('what agents say to each other', () => {
  it.each(REQUESTS)('arrives as it was sent: $kind', (request) => {
    expect(parseRequest(wire(request))).toEqual(request);
    expect(attemptOf(request)).toEqual(ATTEMPT);
  });

  it('keeps apart what two records say of one attempt', () => {
    const request: PeerRequest = { kind: 'look', attempt: { ...ATTEMPT, across: { targetEpoch: 12 } } };
    expect(parseRequest(wire(request))).toEqual(request);
    expect(() => parseRequest(look({ across: { targetEpoch: 0 } }))).toThrow('attempt.across.targetEpoch');
  });

  it('is answered as it was meant', () => {
    expect(parseAnswer(wire(ANSWER))).toEqual(ANSWER);
    const { credentials: _, ...opened } = ANSWER.opened ?? {};
    const plain = { ...ANSWER, opened: { ...opened, secrets: { memory: ['m'], disks: ['d', 'e'] } } };
    expect(parseAnswer(wire(plain))).toEqual(plain);
    const machine = parseAnswer(wire(ANSWER)).opened?.machine;
    expect(machine && comparedMachine(machine)).toEqual({
      spec: FULL_MACHINE,
      ramBytes: 2 ** 30,
      diskBytes: new Map([['virtio 4', 2 ** 31]]),
    });
  });

  it('leaves behind what a later version may say', () => {
    expect(parseRequest({ kind: 'look', attempt: { ...ATTEMPT, colour: 'red' }, more: 1 })).toEqual({
      kind: 'look',
      attempt: ATTEMPT,
    });
  });

  const look = (change: object): unknown => ({ kind: 'look', attempt: { ...ATTEMPT, ...change } });
  const open = (change: object): unknown => ({ ...REQUESTS[0], ...change });
  it.each<[what: string, sent: unknown, at: string]>([
    ['nothing', undefined, 'what was sent'],
    ['null', null, 'what was sent'],
    ['text', 'look', 'what was sent'],
    ['a list', [REQUESTS[1]], 'what was sent'],
    ['no kind', {}, 'kind'],
    ['a kind that every object has', { kind: 'constructor' }, 'kind'],
    ['no attempt', { kind: 'look' }, 'attempt'],
    ['a kind that is inherited', Object.create({ kind: 'look', attempt: ATTEMPT }), 'kind'],
    ['an epoch of none', look({ epoch: 0 }), 'attempt.epoch'],
    ['half an epoch', look({ epoch: 1.5 }), 'attempt.epoch'],
    ['an epoch that is no number', look({ epoch: '7' }), 'attempt.epoch'],
    ['a runner without its pod', look({ source: { node: 'a', nodeUID: 'b' } }), 'attempt.source.podUID'],
    ['a name without end', look({ target: { ...ATTEMPT.target, node: 'x'.repeat(300) } }), 'attempt.target.node'],
    ['volumes without end', look({ volumes: Array.from({ length: 300 }, () => 0) }), 'attempt.volumes'],
    ['a volume that is none', look({ volumes: [7] }), 'attempt.volumes[0]'],
    ['a port of none', open({ ports: { first: 0, last: 3 } }), 'ports.first'],
    ['another bus', open({ copiedDisks: [{ bus: 'usb', at: 1 }] }), 'copiedDisks[0].bus'],
    [
      'a thousand channels',
      open({ method: { allowsPostCopy: false, isEncrypted: true, channels: { count: 1000, compression: 'none' } } }),
      'method.channels.count',
    ],
    ['a letter of nobody', { kind: 'letter', message: { kind: 'hello', attempt: ATTEMPT } }, 'message.kind'],
    ['time that runs back', { ...REQUESTS[2], stoppedForMs: -1 }, 'stoppedForMs'],
  ])('is refused: %s', (_, sent, at) => {
    expect(() => parseRequest(sent)).toThrow(ShapeError);
    expect(() => parseRequest(sent)).toThrow(`${at} is not `);
  });

  it.each<[what: string, sent: unknown, at: string]>([
    ['no machine', { letters: [] }, 'machine'],
    ['letters without end', { ...ANSWER, letters: Array.from({ length: 100 }, () => ANSWER.letters[0]) }, 'letters'],
    [
      'sizes of no disk',
      { ...ANSWER, opened: { ...ANSWER.opened, machine: { ...ANSWER.opened?.machine, diskBytes: { a: 'b' } } } },
      'opened.machine.diskBytes.a',
    ],
    [
      'a key without end',
      { ...ANSWER, opened: { ...ANSWER.opened, diskFiles: { ['x'.repeat(300)]: 'y' } } },
      'a key of opened.diskFiles',
    ],
  ])('is not taken for an answer: %s', (_, sent, at) => {
    expect(() => parseAnswer(sent)).toThrow(`${at} is not `);
  });

  it('keeps names that mean something to JavaScript as they are', () => {
    const sent: unknown = JSON.parse(JSON.stringify(ANSWER).replace('"virtio 4":"64769:12"', '"__proto__":"x"'));
    const files = parseAnswer(sent).opened?.diskFiles;
    expect(Object.entries(files ?? {})).toEqual([['__proto__', 'x']]);
  });

  it('goes between agents of one process as it would from afar', async () => {
    const near = new NearPeers();
    near.services.set('b', {
      answer: async (caller, request) => {
        if (caller.node !== attemptOf(request).source.node) throw new Error('you are not its source');
        return ANSWER;
      },
    });
    const ask = (caller: string, node = 'b') =>
      near
        .of(caller)
        .exchange({ node, address: '', port: 1 }, { kind: 'look', attempt: ATTEMPT }, new AbortController().signal);
    expect(await ask('a')).toEqual(ANSWER);
    await expect(ask('c')).rejects.toMatchObject({ code: 'Refused', message: 'you are not its source' });
    await expect(ask('a', 'd')).rejects.toMatchObject({ code: 'Unreachable' });
    near.unheard.add('b');
    await expect(ask('a')).rejects.toMatchObject({ code: 'Unreachable' });
  });
});
