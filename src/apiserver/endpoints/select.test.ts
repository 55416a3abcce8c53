import { describe, expect, it } from 'vitest';
import { builtinDefinitions } from '../../api/kinds/builtins.ts';
import type { JsonObject } from '../../api/meta.ts';
import type { ResourceDefinition } from '../../api/resource.ts';
import type { Stored } from '../storage/store.ts';
import { filterOf } from './select.ts';

function definitionOf(plural: string): ResourceDefinition {
  const found = builtinDefinitions.find((definition) => definition.plural === plural);
  if (found === undefined) throw new Error(plural);
  return found;
}

function storedOf(fields: JsonObject): Stored {
  const text = JSON.stringify({ metadata: { name: 'a', namespace: 'b', labels: { app: 'web' } }, ...fields });
  return { key: 'b/a', revision: 1, text, selectable: undefined };
}

function selects(definition: ResourceDefinition, fieldSelector: string, stored: Stored): boolean | undefined {
  return filterOf(definition, new URLSearchParams({ fieldSelector })).matches?.(stored);
}

function matches(plural: string, selector: string, fields: JsonObject): boolean | undefined {
  return selects(definitionOf(plural), selector, storedOf(fields));
}

describe('field selectors', () => {
  it.each<[string, string, JsonObject, boolean]>([
    ['pods', 'spec.nodeName=n', { spec: { nodeName: 'n' } }, true],
    ['pods', 'spec.nodeName!=n', { spec: { nodeName: 'n' } }, false],
    ['pods', 'spec.nodeName=', { spec: {} }, true],
    ['pods', 'spec.host=n', { spec: { nodeName: 'n' } }, true],
    ['pods', 'spec.hostNetwork=false', { spec: {} }, true],
    ['pods', 'status.phase=Running,spec.nodeName=n', { spec: { nodeName: 'n' }, status: { phase: 'Pending' } }, false],
    ['nodes', 'spec.unschedulable=false', {}, true],
    ['nodes', 'spec.unschedulable=true', { spec: { unschedulable: true } }, true],
    ['nodes', 'spec.unschedulable=false', { spec: { unschedulable: true } }, false],
    ['replicationcontrollers', 'status.replicas=0', {}, true],
    ['jobs', 'status.successful=2', { status: { succeeded: 2 } }, true],
    ['jobs', 'status.successful=0', { status: {} }, true],
    ['events', 'involvedObject.name=x', { involvedObject: { name: 'x' } }, true],
    ['events', 'source=kubelet', { source: { component: 'kubelet' }, reportingComponent: 'other' }, true],
    ['events', 'source=kubelet', { reportingComponent: 'kubelet' }, true],
    ['events', 'source=other', { source: { component: 'kubelet' }, reportingComponent: 'other' }, false],
    ['configmaps', 'metadata.name=a', {}, true],
  ])('%s with %s of %j: %s', (plural, selector, fields, expected) => {
    expect(matches(plural, selector, fields)).toBe(expected);
  });

  it.each([
    ['pods', 'spec.hostPID=true', 'field label not supported: spec.hostPID'],
    ['namespaces', 'metadata.namespace=a', 'field label not supported: metadata.namespace'],
    [
      'replicasets',
      'status.replicas=1',
      '"status.replicas" is not a known field selector: only "metadata.name", "metadata.namespace"',
    ],
  ])('refuses what the kind does not offer: %s by %s', (plural, selector, message) => {
    expect(() => matches(plural, selector, {})).toThrow(message);
  });

  it('knows no zeros of custom kinds: what is not there is empty', () => {
    const schema = {
      type: 'object',
      properties: { spec: { type: 'object', properties: { on: { type: 'boolean' } } } },
    };
    const gadgets: ResourceDefinition = {
      ...definitionOf('configmaps'),
      schema: schema as ResourceDefinition['schema'],
      custom: true,
      selectableFields: ['spec.on'],
    };
    expect(selects(gadgets, 'spec.on=false', storedOf({ spec: {} }))).toBe(false);
    expect(selects(gadgets, 'spec.on=', storedOf({ spec: {} }))).toBe(true);
    expect(selects(gadgets, 'spec.on=false', storedOf({ spec: { on: false } }))).toBe(true);
  });

  it('does not mistake what one version selects by for what another does', () => {
    const first = { ...definitionOf('configmaps'), custom: true, selectableFields: ['spec.a'] };
    const second = { ...first, version: 'v2', selectableFields: ['spec.b'] };
    const stored = storedOf({ spec: { a: '1', b: '2' } });
    expect(selects(first, 'spec.a=1', stored)).toBe(true);
    expect(selects(second, 'spec.b=2', stored)).toBe(true);
    expect(selects(first, 'spec.a=1', stored)).toBe(true);
  });
});

describe('the interest of a selector', () => {
  const valueFor = (labelSelector: string, fieldSelector: string): string | undefined => {
    const pods = definitionOf('pods');
    const { interest } = filterOf(pods, new URLSearchParams({ labelSelector, fieldSelector }));
    const found = interest?.facet.valueOf(storedOf({ spec: { nodeName: 'n' } }));
    return interest && `${interest.value}: ${found}`;
  };

  it.each<[string, string, string | undefined]>([
    ['', '', undefined],
    ['', 'spec.nodeName=m', 'm: n'],
    ['', 'spec.nodeName!=m', undefined],
    ['app=web', 'spec.nodeName=m', 'm: n'],
    ['app=web', 'spec.nodeName=m,metadata.name=x', 'x: a'],
    ['app=db', '', 'db: web'],
    ['app in (db)', 'metadata.namespace=c', 'db: web'],
    ['app in (db,web)', 'metadata.namespace=c', 'c: b'],
    ['app', '', undefined],
    ['app!=db', '', undefined],
    ['constructor=x', '', 'x: undefined'],
  ])('of labels "%s" and fields "%s" is in %s', (labelSelector, fieldSelector, expected) => {
    expect(valueFor(labelSelector, fieldSelector)).toBe(expected);
  });

  it('is looked up together with others that select by the same', () => {
    const pods = definitionOf('pods');
    const of = (fieldSelector: string) => filterOf(pods, new URLSearchParams({ fieldSelector })).interest?.facet;
    expect(of('spec.nodeName=a')).toBe(of('spec.nodeName=b'));
    expect(of('spec.nodeName=a')).not.toBe(of('status.phase=a'));
  });
});
