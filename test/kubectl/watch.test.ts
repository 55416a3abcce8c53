import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Anything } from '../support/api.ts';
import { Cluster, ROOT_CERTIFICATE } from '../support/cluster.ts';
import { eventually } from '../support/eventually.ts';
import type { Kubectl } from '../support/kubectl.ts';
import { configMap } from './manifests.ts';

/** `kubectl get -w`: what happens, as it happens, in every form. */

let cluster: Cluster;

beforeAll(async () => {
  cluster = await Cluster.start();
});
afterAll(() => cluster.close());

const lines = (text: string): string[] => text.split('\n').filter((line) => line !== '');

/** The first two words of each line: ages vary, and come last. */
const firstWords = (text: string): string[] => lines(text).map((line) => line.split(/\s+/).slice(0, 2).join(' '));

/** All but what is in every namespace. */
const OURS = `--field-selector=metadata.name!=${ROOT_CERTIFICATE}`;

/** Watches while `act` acts, until the output satisfies `check`; answers the output. */
async function watching(
  kubectl: Kubectl,
  args: string[],
  begun: (output: string) => void,
  act: () => Promise<unknown>,
  check: (output: string) => void,
): Promise<string> {
  const watch = kubectl.start(args);
  // Whole lines: the rest is still being printed.
  const output = (): string => watch.output().slice(0, watch.output().lastIndexOf('\n') + 1);
  try {
    await eventually(() => begun(output()));
    await act();
    await eventually(() => check(output()));
    return output();
  } finally {
    watch.stop();
    await watch.ended;
  }
}

/** Objects printed one after the other, as `-o json` does. */
function documents(output: string): Anything[] {
  return output
    .split(/\n(?=\{)/)
    .filter((text) => text.trim() !== '')
    .map((text) => JSON.parse(text));
}

describe('get --watch', () => {
  it('prints a table, and a row for every change', async () => {
    const { kubectl } = await cluster.namespace('watch');
    await kubectl.ok('create configmap first');
    const output = await watching(
      kubectl,
      ['get', 'configmaps', '-w', OURS],
      (text) => expect(text).toContain('first'),
      async () => {
        await kubectl.ok('create configmap second --from-literal=a=1');
        await kubectl.ok(['patch', 'configmap', 'second', '-p', '{"data":{"b":"2"}}']);
        await kubectl.ok('delete configmap first');
      },
      (text) => expect(lines(text)).toHaveLength(5),
    );
    expect(firstWords(output)).toEqual(['NAME DATA', 'first 0', 'second 1', 'second 2', 'first 0']);
  });

  it('tells what kind of change it was', async () => {
    const { kubectl } = await cluster.namespace('watch');
    await kubectl.ok('create configmap there');
    const output = await watching(
      kubectl,
      ['get', 'configmaps', '-w', '--output-watch-events', OURS],
      (text) => expect(text).toContain('there'),
      async () => {
        await kubectl.ok('create configmap new');
        await kubectl.ok('label configmap new a=b');
        await kubectl.ok('delete configmap new');
      },
      (text) => expect(text).toContain('DELETED'),
    );
    expect(firstWords(output)).toEqual(['EVENT NAME', 'ADDED there', 'ADDED new', 'MODIFIED new', 'DELETED new']);
  });

  it('prints whole objects', async () => {
    const { kubectl, namespace } = await cluster.namespace('watch');
    await kubectl.ok('create configmap there');
    const output = await watching(
      kubectl,
      ['get', 'configmaps', '-w', '-o', 'json', '--output-watch-events', OURS],
      (text) => expect(text).toContain('"there"'),
      async () => {
        await kubectl.ok('create configmap new --from-literal=a=1');
        await kubectl.ok('delete configmap new');
      },
      (text) => expect(text).toContain('DELETED'),
    );
    const events = documents(output);
    expect(events.map(({ type, object }) => [type, object.metadata.name, object.data])).toEqual([
      ['ADDED', 'there', undefined],
      ['ADDED', 'new', { a: '1' }],
      ['DELETED', 'new', { a: '1' }],
    ]);
    for (const { object } of events)
      expect(object).toMatchObject({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace } });
    // What is deleted carries the version of its deletion, from which a watch could go on.
    expect(Number(events[2].object.metadata.resourceVersion)).toBeGreaterThan(
      Number(events[1].object.metadata.resourceVersion),
    );
  });

  it('prints names, columns and templates', async () => {
    const { kubectl } = await cluster.namespace('watch');
    await kubectl.ok('create configmap there');
    const act = (): Promise<unknown> => kubectl.ok('label configmap there a=b');
    const named = await watching(
      kubectl,
      ['get', 'cm', '-w', '-o', 'name', OURS],
      (text) => expect(lines(text)).toHaveLength(1),
      act,
      (text) => expect(lines(text)).toHaveLength(2),
    );
    expect(lines(named)).toEqual(['configmap/there', 'configmap/there']);
    const jsonPath = await watching(
      kubectl,
      ['get', 'cm', 'there', '-w', '-o', 'jsonpath={.metadata.name}:{.metadata.labels.c}{"\\n"}'],
      (text) => expect(text).toBe('there:\n'),
      () => kubectl.ok('label configmap there c=d'),
      (text) => expect(text).toBe('there:\nthere:d\n'),
    );
    expect(jsonPath).toContain('there:d');
  });

  it('of one object ends nothing when that object does', async () => {
    const { kubectl } = await cluster.namespace('watch');
    await kubectl.ok('create configmap one');
    await kubectl.ok('create configmap other');
    const output = await watching(
      kubectl,
      ['get', 'configmap', 'one', '-w', '--no-headers', '--output-watch-events'],
      (text) => expect(text).toContain('one'),
      async () => {
        await kubectl.ok('label configmap other a=b');
        await kubectl.ok('delete configmap one');
        await kubectl.ok('create configmap one');
      },
      (text) => expect(lines(text)).toHaveLength(3),
    );
    expect(firstWords(output)).toEqual(['ADDED one', 'DELETED one', 'ADDED one']);
  });
});

describe('get --watch-only', () => {
  it('leaves out what is there already', async () => {
    const { kubectl } = await cluster.namespace('watch');
    await kubectl.ok('create configmap old');
    await kubectl.ok('create configmap changing');
    const watch = kubectl.start(['get', 'configmaps', '--watch-only', '-o', 'name']);
    try {
      // Nothing tells when the watch has begun, so something happens until it is seen.
      let change = 0;
      await eventually(async () => {
        await kubectl.ok(`label configmap changing change=${++change} --overwrite`);
        expect(watch.output()).toContain('configmap/changing');
      });
      expect(watch.output()).not.toContain('old');
    } finally {
      watch.stop();
      await watch.ended;
    }
  });
});

describe('watching with selectors', () => {
  it('shows what begins and ceases to match as added and deleted', async () => {
    const { kubectl } = await cluster.namespace('watch');
    await kubectl.apply(configMap('match', { a: '1' }, { app: 'web' }));
    await kubectl.apply(configMap('miss', {}, { app: 'db' }));
    const output = await watching(
      kubectl,
      ['get', 'configmaps', '-w', '-l', 'app=web', '--no-headers', '--output-watch-events'],
      (text) => expect(text).toContain('match'),
      async () => {
        await kubectl.ok('label configmap miss app=web --overwrite');
        await kubectl.ok('label configmap match other=x');
        await kubectl.ok('label configmap match app-');
        await kubectl.ok('delete configmap miss');
      },
      (text) => expect(lines(text)).toHaveLength(5),
    );
    expect(firstWords(output)).toEqual([
      'ADDED match',
      'ADDED miss',
      'MODIFIED match',
      'DELETED match',
      'DELETED miss',
    ]);
  });

  it('does so by field as well', async () => {
    const { kubectl, namespace } = await cluster.namespace('watch');
    await kubectl.ok('run first --image=main:1');
    const path = `/api/v1/namespaces/${namespace}/pods/first/status`;
    const output = await watching(
      kubectl,
      ['get', 'pods', '-w', '--field-selector=status.phase=Pending', '--no-headers', '--output-watch-events'],
      (text) => expect(text).toContain('first'),
      () => cluster.merge(path, { status: { phase: 'Running' } }),
      (text) => expect(text).toContain('DELETED'),
    );
    // The scheduler may say meanwhile that there is no node.
    expect(firstWords(output).filter((words) => words !== 'MODIFIED first')).toEqual(['ADDED first', 'DELETED first']);
  });

  it('looks everywhere', async () => {
    const { kubectl, namespace } = await cluster.namespace('watch');
    const output = await watching(
      cluster.kubectl,
      ['get', 'leases', '-A', '-w', '--no-headers', '-o', 'custom-columns=:.metadata.namespace,:.metadata.name'],
      () => undefined,
      async () => {
        await kubectl.apply({ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'lease' } });
      },
      (text) => expect(text).toContain('lease'),
    );
    expect(lines(output).map((line) => line.trim().split(/\s+/))).toContainEqual([namespace, 'lease']);
  });

  it('follows custom resources, from before there are any', async () => {
    const { kubectl } = await cluster.namespace('watch');
    await kubectl.apply({
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'things.watch.example.com' },
      spec: {
        group: 'watch.example.com',
        scope: 'Namespaced',
        names: { plural: 'things', kind: 'Thing' },
        versions: [
          {
            name: 'v1',
            served: true,
            storage: true,
            additionalPrinterColumns: [{ name: 'Size', type: 'integer', jsonPath: '.spec.size' }],
            schema: {
              openAPIV3Schema: {
                type: 'object',
                properties: { spec: { type: 'object', properties: { size: { type: 'integer' } } } },
              },
            },
          },
        ],
      },
    });
    await kubectl.ok('wait --for=condition=Established crd/things.watch.example.com');
    const thing = (size: number): object => ({
      apiVersion: 'watch.example.com/v1',
      kind: 'Thing',
      metadata: { name: 'thing' },
      spec: { size },
    });
    const output = await watching(
      kubectl,
      ['get', 'things', '-w'],
      () => undefined,
      async () => {
        await kubectl.apply(thing(1));
        await kubectl.apply(thing(2));
      },
      (text) => expect(text).toMatch(/thing\s+2/),
    );
    expect(firstWords(output)).toEqual(expect.arrayContaining(['NAME SIZE', 'thing 2']));
  });
});
