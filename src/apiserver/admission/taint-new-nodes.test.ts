import { describe, expect, it } from 'vitest';
import { attributesOf, nodes } from './attributes.fixture.ts';
import { refused } from './plugins.fixture.ts';
import { TaintNewNodes } from './taint-new-nodes.ts';

describe('TaintNewNodes', () => {
  const added = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' };
  const other = { key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' };

  it.each([
    ['no spec', undefined, [added]],
    ['no taints', {}, [added]],
    ['another taint', { taints: [other] }, [other, added]],
    ['this very taint', { taints: [added] }, [added]],
  ])('a new node with %s', async (_, spec, expected) => {
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' }, ...(spec ? { spec } : {}) };
    await refused(new TaintNewNodes(), attributesOf(nodes, node));
    expect(node).toMatchObject({ spec: { taints: expected } });
  });

  it('leaves nodes alone that are there', () => {
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' } };
    expect(new TaintNewNodes().handles(attributesOf(nodes, node, { operation: 'UPDATE', oldObject: node }))).toBe(
      false,
    );
  });
});
