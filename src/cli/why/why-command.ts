import { isFinalMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { CREATED_BY_LABEL } from '../../api/kubevirt/well-known.ts';
import { pods } from '../../cluster/resources.ts';
import { TargetFitness } from '../../control/migration/target-fitness.ts';
import { guestKeyOf } from '../../control/migration/keys.ts';
import type { Env } from '../../env/ports.ts';
import { sourceNodeOf } from '../../migration/phase/facts.ts';
import { findCondition } from '../../kube/conditions.ts';
import { type ClusterConnection, type ClusterOptions, withCluster } from '../cluster-connection.ts';
import type { OutputFormat } from '../cluster-options.ts';
import type { Paint } from '../colours.ts';
import { launchedGuestUid } from '../drain/drained-pods.ts';
import { UserError } from '../failure.ts';
import { printValue } from '../print-value.ts';
import { type Queue, queueOf } from '../queue/queue.ts';
import { oneLine } from '../redrawn-lines.ts';
import { indexOf, type SeenIndex } from '../seen/index-of.ts';
import { lookAtCluster, type SeenCluster } from '../seen/seen-cluster.ts';
import { withInformers } from '../seen/with-informers.ts';
import { type Answer, answerLines } from './answer.ts';
import { chosen, type Kind, parseSubject, type Subject } from './subject.ts';
import { whyMachine } from './why-machine.ts';
import { whyMigration } from './why-migration.ts';
import { whyNode } from './why-node.ts';

/** `godwit why VM|MIGRATION|NODE`. */

export interface WhyCommandOptions extends ClusterOptions {
  readonly output?: OutputFormat;
}

interface Scene {
  readonly connection: ClusterConnection;
  readonly env: Env;
  readonly seen: SeenCluster;
  readonly index: SeenIndex;
  readonly queue: Queue;
}

/** Prints one answer. Rejects where there is nothing of the name. */
export async function why(
  words: readonly string[],
  options: WhyCommandOptions,
  env: Env,
  print: (line: string) => void,
  paint: Paint,
): Promise<void> {
  const subject = parseSubject(words);
  await withCluster(options, env, async (connection) => {
    const { client, namespace } = connection;
    const nowMs = env.clock.now();
    const seen = await lookAtCluster(client, { namespace, nowMs }, new AbortController().signal);
    const scene = { connection, env, seen, index: indexOf(seen), queue: queueOf(seen) };
    const answer = await answerTo(subject, scene);
    if (printValue(answer, options.output, print)) return;
    for (const line of answerLines(answer, (text) => paint('bold', text))) print(oneLine(line));
    if (seen.denied.length > 0) print(`You may not look at ${seen.denied.join(', ')}: the answer may lack something.`);
  });
}

async function answerTo(subject: Subject, scene: Scene): Promise<Answer> {
  const { namespace } = scene.connection;
  const { seen, index } = scene;
  const key = `${namespace}/${subject.name}`;
  const migration = seen.migrations.find(
    ({ metadata }) => metadata.namespace === namespace && metadata.name === subject.name,
  );
  const node = seen.nodes.find(({ metadata }) => metadata.name === subject.name);
  const found: Kind[] = [
    ...(index.machines.has(key) ? (['vm'] as const) : []),
    ...(index.guests.has(key) ? (['vmi'] as const) : []),
    ...(migration ? (['migration'] as const) : []),
    ...(node ? (['node'] as const) : []),
  ];
  const kind = chosen(subject, found, namespace);
  if (kind === 'migration' && migration) {
    const guest = index.guests.get(guestKeyOf(migration));
    const targetPod = index.targetPods.get(migration.metadata.uid ?? '');
    return whyMigration({ migration, guest, targetPod, queue: scene.queue, nowMs: seen.nowMs });
  }
  if (kind === 'node' && node) {
    const guests = seen.guests.filter((guest) => sourceNodeOf(guest) === subject.name && isAlive(guest));
    const configuration = seen.kubeVirt?.spec.configuration ?? {};
    return whyNode({
      node,
      guests,
      migrationsOf: index.migrationsOf,
      queue: scene.queue,
      configuration,
      nowMs: seen.nowMs,
    });
  }
  return machineAnswer(subject.name, kind, scene);
}

function isAlive({ status }: VirtualMachineInstance): boolean {
  return status?.phase !== 'Succeeded' && status?.phase !== 'Failed';
}

async function machineAnswer(name: string, kind: Kind, scene: Scene): Promise<Answer> {
  const { seen, index, queue, connection } = scene;
  const { namespace } = connection;
  const key = `${namespace}/${name}`;
  const guest = index.guests.get(key);
  const migrations = index.migrationsOf.get(key) ?? [];
  const current = migrations.find((each) => !isFinalMigration(each));
  return whyMachine({
    namespace,
    name,
    machine: kind === 'vmi' ? undefined : index.machines.get(key),
    guest,
    migrations,
    targetPod: index.targetPods.get(current?.metadata.uid ?? ''),
    node: seen.nodes.find(({ metadata }) => metadata.name === (guest && sourceNodeOf(guest))),
    queue,
    configuration: seen.kubeVirt?.spec.configuration ?? {},
    unheard: seen.kubeVirt?.status?.restoration?.unheard ?? [],
    unfitness: guest && (await unfitnessOf(guest, scene)),
    nowMs: seen.nowMs,
  });
}

/** Whoever may look at everything is told sooner than that. */
const FIT_MS_MAX = 15_000;

/** Why no node takes the pod of a guest that has none, node by node; undefined where that cannot be found out. */
async function unfitnessOf(guest: VirtualMachineInstance, { connection, env }: Scene): Promise<string | undefined> {
  if (findCondition(guest.status?.conditions, 'PodScheduled')?.status !== 'False') return undefined;
  const { client } = connection;
  const { namespace = '', uid = '' } = guest.metadata;
  const { signal } = new AbortController();
  try {
    const labelSelector = `${CREATED_BY_LABEL}=${uid}`;
    const { items } = await client.list(pods, { namespace, labelSelector }, signal);
    const pod = items.find((each) => launchedGuestUid(each) === uid && !each.spec?.nodeName);
    if (!pod) return undefined;
    return await withInformers({ client, env, timeoutMs: FIT_MS_MAX }, (informers) => {
      const fitness = new TargetFitness(informers);
      return () => fitness.unfitness(guest, pod);
    });
  } catch (error) {
    // Not everybody may look at all nodes and pods; what the scheduler says is left then.
    if (error instanceof UserError) return undefined;
    throw error;
  }
}
