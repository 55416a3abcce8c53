import { describe, expect, it } from 'vitest';
import { coreDefinitions } from '../../api/kinds/core/definitions.ts';
import type { JsonObject } from '../../api/meta.ts';
import type { ResourceDefinition } from '../../api/resource.ts';
import type { Stored } from '../storage/store.ts';
import { filterOf } from './select.ts';

function definitionOf(plural: string): ResourceDefinition {
  const found = coreDefinitions.find((definition) => definition.plural === plural);
  if (found === undefined) throw new Error(plural);
  return found;
}

function matches(plural: string, selector: string, fields: JsonObject): boolean | undefined {
  const definition = definitionOf(plural);
  const text = JSON.stringify({ metadata: { name: 'a', namespace: 'b', labels: { app: 'web' } }, ...fields });
  const stored = { key: 'b/a', revision: 1, text } as unknown as Stored;
  return filterOf(definition, new URLSearchParams({ fieldSelector: selector })).matches?.(stored);
}

describe('field selectors', () => {
  it.each<[string, string, JsonObject, boolean]>([
    ['pods', 'spec.nodeName=n', { spec: { nodeName: 'n' } }, true],
    ['pods', 'spec.nodeName!=n', { spec: { nodeName: 'n' } }, false],
    ['pods', 'spec.nodeName=', { spec: {} }, true],
    ['pods', 'spec.hostNetwork=false', { spec: {} }, true],
    ['pods', 'status.phase=Running,spec.nodeName=n', { spec: { nodeName: 'n' }, status: { phase: 'Pending' } }, false],
    ['nodes', 'spec.unschedulable=false', {}, true],
    ['nodes', 'spec.unschedulable=true', { spec: { unschedulable: true } }, true],
    ['nodes', 'spec.unschedulable=false', { spec: { unschedulable: true } }, false],
    ['replicationcontrollers', 'status.replicas=0', {}, true],
    ['events', 'involvedObject.name=x', { involvedObject: { name: 'x' } }, true],
    ['configmaps', 'metadata.name=a', {}, true],
  ])('%s with %s of %j: %s', (plural, selector, fields, expected) => {
    expect(matches(plural, selector, fields)).toBe(expected);
  });

  it('refuses fields that the kind does not offer', () => {
    expect(() => matches('pods', 'spec.hostPID=true', {})).toThrow('field label not supported: spec.hostPID');
  });
});
