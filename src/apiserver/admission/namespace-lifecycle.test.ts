import { describe, expect, it } from 'vitest';
import { attributesOf, configMaps, namespaces, nodes } from './attributes.fixture.ts';
import { TestRegistry, anyDefinition, userContext } from '../registry/registry.fixture.ts';
import { NamespaceLifecycle } from './namespace-lifecycle.ts';
import { object, refused } from './plugins.fixture.ts';

describe('NamespaceLifecycle', () => {
  async function scene(): Promise<[TestRegistry, NamespaceLifecycle]> {
    const registry = await TestRegistry.open();
    await registry.put(object('Namespace', 'ns', { status: { phase: 'Active' } }, ''));
    await registry.put(object('Namespace', 'going', { status: { phase: 'Terminating' } }, ''));
    return [registry, new NamespaceLifecycle(registry)];
  }
  const configMap = (namespace: string) => object('ConfigMap', 'c', {}, namespace);

  it('refuses what is created or updated in a namespace that does not exist', async () => {
    const [, plugin] = await scene();
    for (const operation of ['CREATE', 'UPDATE'] as const) {
      const error = await refused(plugin, attributesOf(configMaps, configMap('nope'), { operation }));
      expect(error?.toStatus()).toMatchObject({
        code: 404,
        reason: 'NotFound',
        message: 'namespaces "nope" not found',
        details: { name: 'nope', kind: 'namespaces' },
      });
    }
  });

  it('refuses creation in a terminating namespace, with the cause', async () => {
    const [, plugin] = await scene();
    const error = await refused(plugin, attributesOf(configMaps, configMap('going')));
    expect(error?.toStatus()).toMatchObject({
      code: 403,
      reason: 'Forbidden',
      message:
        'configmaps "c" is forbidden: unable to create new content in namespace going because it is being terminated',
      details: {
        name: 'c',
        kind: 'configmaps',
        causes: [
          {
            reason: 'NamespaceTerminating',
            message: 'namespace going is being terminated',
            field: 'metadata.namespace',
          },
        ],
      },
    });
  });

  it.each([
    ['creation in a live namespace', attributesOf(configMaps, configMap('ns'))],
    ['updates in a terminating one', attributesOf(configMaps, configMap('going'), { operation: 'UPDATE' })],
    [
      'deletion in a terminating one',
      attributesOf(configMaps, undefined, { operation: 'DELETE', oldObject: configMap('going') }),
    ],
    [
      'deletion in a lost one',
      attributesOf(configMaps, undefined, { operation: 'DELETE', oldObject: configMap('nope') }),
    ],
    ['cluster-scoped objects', attributesOf(nodes, object('Node', 'n', {}, ''))],
    ['namespaces themselves', attributesOf(namespaces, object('Namespace', 'new', {}, ''))],
    [
      'questions about permissions in a lost one',
      attributesOf(
        anyDefinition('authorization.k8s.io', 'v1', 'localsubjectaccessreviews', 'LocalSubjectAccessReview'),
        configMap('nope'),
      ),
    ],
  ])('lets %s pass', async (_, attributes) => {
    const [, plugin] = await scene();
    expect(await refused(plugin, attributes)).toBeUndefined();
  });

  it.each([
    ['default', true],
    ['kube-system', true],
    ['kube-public', true],
    ['kube-node-lease', true],
    ['ns', false],
  ])('deletion of namespace %s is refused: %s', async (name, isRefused) => {
    const [, plugin] = await scene();
    const oldObject = object('Namespace', name, {}, '');
    const error = await refused(plugin, attributesOf(namespaces, undefined, { operation: 'DELETE', oldObject }));
    expect(error?.message).toBe(
      isRefused ? `namespaces "${name}" is forbidden: this namespace may not be deleted` : undefined,
    );
  });

  it('names an object without a name by its generateName', async () => {
    const [, plugin] = await scene();
    const nameless = configMap('going');
    nameless.metadata = { generateName: 'gen-', namespace: 'going' };
    const error = await refused(plugin, attributesOf(configMaps, nameless));
    expect(error?.message).toMatch(/^configmaps "gen-" is forbidden/);
  });

  it('lets nothing slip in at the last moment, not even before the end of its namespace is on the disk', async () => {
    const namespace = object('Namespace', 'ns', { spec: { finalizers: ['kubernetes'] } }, '');
    let whileAsked: () => Promise<unknown> = async () => undefined;
    const webhook = { name: 'webhook', handles: () => true, validate: () => whileAsked().then(() => undefined) };
    const registry = await TestRegistry.withPlugins((each) => [new NamespaceLifecycle(each), webhook], namespace);
    const create = () =>
      registry.create(userContext(), { definition: configMaps, namespace: 'ns', name: 'c' }, configMap('ns'));
    const end = () =>
      registry.delete(userContext({ isAdmitted: true }), { definition: namespaces, namespace: '', name: 'ns' }, {});
    whileAsked = async () => void end();
    await expect(create()).rejects.toThrow('because it is being terminated');
    whileAsked = async () => undefined;
    await expect(create()).rejects.toThrow('because it is being terminated');
    whileAsked = () => registry.drop(namespace);
    await registry.put(namespace);
    await expect(create()).rejects.toThrow('namespaces "ns" not found');
    await registry.put(namespace);
    whileAsked = async () => undefined;
    await create();
  });
});
