import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../env/test.ts';
import { makeCluster, makePod } from '../../migration/fit/cluster.fixture.ts';
import { Demand } from '../../migration/fit/fit.ts';
import type { Node, Pod } from '../../migration/fit/objects.ts';
import { podInfoOf } from '../../migration/fit/pod-info.ts';
import { score } from '../../migration/fit/score.ts';
import type { PodDisruptionBudget } from '../disruption-budgets/objects.ts';
import { Budgets } from './budgets.ts';
import { decide } from './decide.ts';
import { Nominations } from './nominations.ts';

/**
 * What kube-scheduler 1.34.1 did in clusters made up at random: recorded from the real one, on a real kube-apiserver. Of
 * a thousand such clusters, those are kept that say something of their own. Its word about resource claims, which we
 * have none of, is left out of its messages.
 */
interface Recorded {
  readonly nodes: readonly Node[];
  readonly pods?: readonly Pod[];
  readonly namespaces: Record<string, Record<string, string>>;
  readonly budgets?: readonly PodDisruptionBudget[];
  readonly incoming: Pod;
  readonly answer:
    | { readonly node: string }
    | { readonly message: string; readonly nominatedNode?: string; readonly victims?: readonly string[] };
}

const recorded = readFileSync(new URL('kube-scheduler-answers.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Recorded);

const complete = ({ metadata, spec, status }: Pod): Pod => makePod(metadata.name ?? '', spec, metadata, status);

function situation({ nodes, pods = [], namespaces, budgets: objects = [] }: Recorded) {
  const placed: Record<string, Pod[]> = {};
  for (const pod of pods) (placed[pod.spec?.nodeName ?? ''] ??= []).push(complete(pod));
  const budgets = new Budgets();
  for (const object of objects) budgets.set(object);
  return { cluster: makeCluster({ nodes, pods: placed, namespaces }), nominations: new Nominations(), budgets };
}

const bound = recorded.filter(({ answer }) => 'node' in answer);
const refused = recorded.filter(({ answer }) => 'message' in answer);

describe('as kube-scheduler', () => {
  it('was recorded', () => {
    expect([bound.length, refused.length]).toEqual([20, 44]);
  });

  it.each(refused.map((each) => [each.incoming.metadata.name, each] as const))('says why not: %s', (_, each) => {
    const decision = decide(podInfoOf(complete(each.incoming)), situation(each), seededRandom(1));
    if (decision.type === 'bind') throw new Error(`bound to ${decision.node}`);
    const { message } = decision;
    const preemption =
      decision.type === 'preempt'
        ? { nominatedNode: decision.node, victims: decision.victims.map(({ pod }) => pod.metadata.name).sort(byText) }
        : {};
    expect({ message, ...preemption }).toEqual(each.answer);
  });

  it.each(bound.map((each) => [each.incoming.metadata.name, each] as const))('finds the same best: %s', (_, each) => {
    const view = situation(each);
    const incoming = podInfoOf(complete(each.incoming));
    expect(decide(incoming, view, seededRandom(1)).type).toBe('bind');
    const demand = new Demand(incoming, view.cluster);
    const fitting = [...view.cluster.nodes.values()].filter((node) => demand.reasons(node).length === 0);
    const scores = score(incoming, fitting, view.cluster);
    const best = fitting.filter((_node, index) => scores[index] === Math.max(...scores)).map(({ name }) => name);
    expect('node' in each.answer && best).toContain('node' in each.answer && each.answer.node);
  });
});

function byText(a = '', b = ''): number {
  return a < b ? -1 : 1;
}
