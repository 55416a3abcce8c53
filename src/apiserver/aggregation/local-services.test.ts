import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../api/meta.ts';
import type { ResourceDefinition } from '../../api/resource.ts';
import { ApiError } from '../../api/status.ts';
import { silentLogger } from '../../env/test.ts';
import { FakeView, until } from './aggregation.fixture.ts';
import { LocalApiServices, localApiServices } from './local-services.ts';

const definition = (group: string, version: string, custom = false): ResourceDefinition =>
  ({ group, version, plural: 'foos', kind: 'Foo', custom }) as ResourceDefinition;

describe('localApiServices', () => {
  it('makes one per group and version', () => {
    const services = localApiServices([
      definition('', 'v1'),
      definition('', 'v1'),
      definition('apps', 'v1'),
      definition('example.com', 'v1', true),
    ]);
    expect([...services.keys()]).toEqual(['v1.', 'v1.apps', 'v1.example.com']);
    expect(services.get('v1.')?.spec).toEqual({ version: 'v1', groupPriorityMinimum: 20_000, versionPriority: 15 });
    expect(services.get('v1.example.com')).toMatchObject({
      metadata: { labels: { 'kube-aggregator.kubernetes.io/automanaged': 'true' } },
      spec: { group: 'example.com', version: 'v1', groupPriorityMinimum: 1000, versionPriority: 100 },
    });
  });
});

describe('LocalApiServices', () => {
  it('creates what is missing, removes what is no longer served, and leaves others alone', async () => {
    const view = new FakeView();
    let definitions = [definition('', 'v1'), definition('example.com', 'v1', true)];
    let changed = (): void => undefined;
    const names = (): string[] => view.list().map((each) => each.metadata.name ?? '');
    const foreign: KubeObject = {
      apiVersion: 'apiregistration.k8s.io/v1',
      kind: 'APIService',
      metadata: { name: 'v1.foreign.example.com' },
      spec: { service: { namespace: 'a', name: 'b' } },
    };
    view.put(foreign);
    const services = new LocalApiServices(
      {
        definitions: () => definitions,
        onDefinitionsChange: (listener) => {
          changed = listener;
        },
        apiServices: view,
        create: async (object) => {
          if (view.get('', object.metadata.name ?? '')) throw new ApiError(409, 'AlreadyExists', 'there');
          view.put(object);
        },
        delete: async (name) => view.drop('', name),
      },
      silentLogger,
    );
    const stop = new AbortController();
    const running = services.run(stop.signal);
    await until(() => names().length === 3);
    definitions = [definition('', 'v1'), definition('foreign.example.com', 'v1', true)];
    changed();
    await until(() => names().length === 2);
    expect(names().sort()).toEqual(['v1.', 'v1.foreign.example.com']);
    expect(view.get('', 'v1.foreign.example.com')).toBe(foreign);
    view.drop('', 'v1.');
    await until(() => names().includes('v1.'));
    stop.abort();
    await running;
  });
});
