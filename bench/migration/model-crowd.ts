import type { LoadConnection } from '../load-connection.ts';

/** Many models at once: how they are made, and seen to become what is waited for. */

const API = '/apis/kubevirt.io/v1/namespaces/default';
const CONFIGURATION = '/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt';
const AT_ONCE = 50;
const LOOK_MS = 10;
const STILL_MS_MAX = 120_000;
const NODES_LOOK_MS = 500;
const REFUSALS_MAX = 10;
const ASK_AGAIN_MS = 1000;

/** Sets how many may move at once. */
export async function allow(connection: LoadConnection, limits: object): Promise<void> {
  await persist(async () => {
    const current = JSON.parse(await connection.text('GET', CONFIGURATION)) as { spec: { configuration?: object } };
    const { spec } = current;
    const body = { ...current, spec: { ...spec, configuration: { ...spec.configuration, migrations: limits } } };
    await connection.request('PUT', CONFIGURATION, JSON.stringify(body));
  });
}

/** Many agents that start are a load of their own, which is not what is measured. */
export async function nodesReady(connection: LoadConnection, count: number): Promise<void> {
  const countReady = async (): Promise<number> => {
    const { items } = JSON.parse(await connection.text('GET', '/api/v1/nodes')) as { items: ReportedNode[] };
    const isReady = ({ status }: ReportedNode): boolean =>
      status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false;
    return items.filter(isReady).length;
  };
  while ((await countReady()) < count) await new Promise((resolve) => setTimeout(resolve, NODES_LOOK_MS));
}

interface ReportedNode {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

/** Waits as long as there is something new now and then. */
export async function allSeen(countSeen: () => number, count: number, what: string): Promise<void> {
  let [seen, sinceMs] = [-1, performance.now()];
  while (countSeen() < count) {
    if (countSeen() > seen) [seen, sinceMs] = [countSeen(), performance.now()];
    if (performance.now() - sinceMs > STILL_MS_MAX) throw new Error(`only ${seen} of ${count} ${what}`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

/** The names of all objects that have been seen in a phase, whenever there is news. */
export async function counted(
  connection: LoadConnection,
  resource: string,
  phase: string,
  prefix = '',
): Promise<Set<string>> {
  const seen = new Set<string>();
  let rest = '';
  const look = (bytes: Buffer): void => {
    const lines = (rest + bytes.toString('latin1')).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (!line.includes(`"phase":"${phase}"`)) continue;
      const name = /"metadata":\{"name":"([^"]+)"/.exec(line)?.[1] ?? (JSON.parse(line) as Named).object.metadata.name;
      if (name.startsWith(prefix)) seen.add(name);
    }
  };
  // From whatever moment the server remembers: that of now it may first have to learn itself.
  const path = `${API}/${resource}?watch=true&resourceVersion=0`;
  const follow = async (): Promise<void> => {
    rest = '';
    // Whoever waits complains where nothing is seen any more.
    await connection.watch(path, look, () => void follow().catch(() => undefined));
  };
  await follow();
  return seen;
}

interface Named {
  readonly object: { readonly metadata: { readonly name: string } };
}

/** Makes the models from one number to another; answers how many had to be asked for again. */
export async function create(
  connection: LoadConnection,
  resource: string,
  from: number,
  to: number,
  bodyOf: (name: string) => object,
): Promise<number> {
  let next = from;
  let refusals = 0;
  const worker = async (): Promise<void> => {
    while (next < to) {
      const body = JSON.stringify(bodyOf(`model-${next++}`));
      refusals += await persist(() => connection.request('POST', `${API}/${resource}`, body));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return refusals;
}

/** Asks until it is taken, as people do whom a busy server refuses; answers how often it was not. */
async function persist(ask: () => Promise<unknown>): Promise<number> {
  for (let refusals = 0; ; refusals++) {
    try {
      await ask();
      return refusals;
    } catch (error) {
      if (refusals === REFUSALS_MAX) throw error;
      await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
    }
  }
}
