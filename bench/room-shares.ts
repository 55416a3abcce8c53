import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { WebSocket } from 'ws';

/**
 * Which room of the house a process spends its time in. The control plane is one process, so that what its controllers
 * cost cannot be read from /proc; a sampling profiler tells their share.
 */

/** Rare enough to cost nothing. */
const SAMPLE_MICROSECONDS = 5000;

/** Whose time it is that a room of `src` spends. Rooms that serve several are not here: whoever called them is asked. */
const PART_OF_ROOM: Readonly<Record<string, Part>> = {
  apiserver: 'server',
  control: 'controllers',
  migration: 'controllers',
  kube: 'controllers',
  cluster: 'cluster loops',
  extension: 'webhooks',
};

export type Part = 'server' | 'controllers' | 'cluster loops' | 'webhooks';

/** Of all the time that could be told to be somebody's, from 0 to 1. Connections are the server's. */
export type Shares = Readonly<Record<Part, number>>;

interface CallFrame {
  readonly functionName: string;
  readonly url: string;
  readonly lineNumber: number;
  readonly columnNumber: number;
}

interface ProfileNode {
  readonly id: number;
  readonly callFrame: CallFrame;
  readonly children?: readonly number[];
}

interface Profile {
  readonly nodes: readonly ProfileNode[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** A process that was started with `--inspect` on this port. */
export class RoomShares {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, (result: unknown) => void>();
  #next = 1;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (data: Buffer) => {
      const { id, result } = JSON.parse(data.toString('utf8')) as { id?: number; result?: unknown };
      this.#waiting.get(id ?? 0)?.(result);
      this.#waiting.delete(id ?? 0);
    });
  }

  static async attach(port: number): Promise<RoomShares> {
    const targets = (await (await fetch(`http://127.0.0.1:${port}/json/list`)).json()) as {
      webSocketDebuggerUrl: string;
    }[];
    const socket = new WebSocket(targets[0]?.webSocketDebuggerUrl ?? '', { maxPayload: 2 ** 30 });
    await once(socket, 'open');
    const shares = new RoomShares(socket);
    await shares.#ask('Profiler.enable');
    await shares.#ask('Profiler.setSamplingInterval', { interval: SAMPLE_MICROSECONDS });
    return shares;
  }

  /** Forgets what was before. */
  async begin(): Promise<void> {
    await this.#ask('Profiler.start');
  }

  async end(): Promise<Shares> {
    const { profile } = (await this.#ask('Profiler.stop')) as { profile: Profile };
    return sharesOf(profile);
  }

  close(): void {
    this.#socket.close();
  }

  #ask(method: string, params: object = {}): Promise<unknown> {
    const id = this.#next++;
    this.#socket.send(JSON.stringify({ id, method, params }));
    return new Promise((resolve) => this.#waiting.set(id, resolve));
  }
}

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  return typeof address === 'object' && address ? address.port : 0;
}

/** Of which room what ran was before it became part of a program of few files. */
class Rooms {
  readonly #maps = new Map<string, SourceMap | undefined>();

  of({ url, lineNumber, columnNumber }: CallFrame): string {
    if (!url.startsWith('file:')) return '';
    const entry = this.#mapOf(url)?.findEntry(lineNumber, columnNumber);
    const source = entry && 'originalSource' in entry ? entry.originalSource : '';
    const [, room = ''] = /(?:^|\/)src\/([^/]+)\//.exec(source) ?? [];
    return room;
  }

  #mapOf(url: string): SourceMap | undefined {
    if (this.#maps.has(url)) return this.#maps.get(url);
    const path = `${fileURLToPath(url)}.map`;
    const map = existsSync(path) ? new SourceMap(JSON.parse(readFileSync(path, 'utf8'))) : undefined;
    this.#maps.set(url, map);
    return map;
  }
}

function sharesOf({ nodes, samples, timeDeltas }: Profile): Shares {
  const rooms = new Rooms();
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)));
  const partOf = (id: number): Part | undefined => {
    // What the engine does for all of them tells nothing.
    if (/^\((idle|program|garbage collector|root)\)$/.test(byId.get(id)?.callFrame.functionName ?? ''))
      return undefined;
    for (let at: number | undefined = id; at !== undefined; at = parents.get(at)) {
      const frame = byId.get(at)?.callFrame;
      const room = frame ? rooms.of(frame) : '';
      const part = Object.hasOwn(PART_OF_ROOM, room) ? PART_OF_ROOM[room] : undefined;
      if (part) return part;
    }
    return 'server';
  };
  const parts = new Map(nodes.map(({ id }) => [id, partOf(id)]));
  const spent: Record<Part, number> = { server: 0, controllers: 0, 'cluster loops': 0, webhooks: 0 };
  for (const [index, sample] of samples.entries()) {
    const part = parts.get(sample);
    if (part) spent[part] += timeDeltas[index] ?? 0;
  }
  const total = Object.values(spent).reduce((sum, each) => sum + each, 0);
  const share = (part: Part): number => (total === 0 ? 0 : spent[part] / total);
  return {
    server: share('server'),
    controllers: share('controllers'),
    'cluster loops': share('cluster loops'),
    webhooks: share('webhooks'),
  };
}
