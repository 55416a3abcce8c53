import { describe, expect, it } from 'vitest';
import { formatQuantity } from '../api/quantity.ts';
import { type Amounts, isBestEffort, podLimits, podRequests, type PodWithResources } from './pod-resources.ts';

function pod(spec: PodWithResources['spec']): PodWithResources {
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec };
}

const shown = (amounts: Amounts) =>
  Object.fromEntries([...amounts].map(([name, each]) => [name, formatQuantity(each)]));
const asks = (cpu: string, memory?: string, restartPolicy?: string) => {
  const list = { cpu, ...(memory === undefined ? {} : { memory }) };
  return { resources: { requests: list, limits: list }, ...(restartPolicy === undefined ? {} : { restartPolicy }) };
};

describe('the resources of a pod', () => {
  it.each([
    ['nothing', undefined, {}],
    ['containers add up', { containers: [asks('1', '1Gi'), asks('500m')] }, { cpu: '1500m', memory: '1Gi' }],
    [
      'the largest init container counts if it is more',
      { containers: [asks('1', '1Gi')], initContainers: [asks('3'), asks('2', '512Mi')] },
      { cpu: '3', memory: '1Gi' },
    ],
    [
      'sidecars add to the containers',
      { containers: [asks('1')], initContainers: [asks('200m', undefined, 'Always'), asks('1')] },
      { cpu: '1200m' },
    ],
    [
      'sidecars add to the init containers after them, not before',
      { containers: [asks('1')], initContainers: [asks('5'), asks('2', undefined, 'Always'), asks('4')] },
      { cpu: '6' },
    ],
    [
      'what the pod states as a whole wins',
      { containers: [asks('1', '1Gi')], resources: { requests: { cpu: '4' }, limits: { cpu: '4' } } },
      { cpu: '4', memory: '1Gi' },
    ],
    ['overhead comes on top', { containers: [asks('1')], overhead: { cpu: '100m' } }, { cpu: '1100m' }],
  ])('%s', (_, spec, expected) => {
    expect(shown(podRequests(pod(spec)))).toEqual(expected);
    expect(shown(podLimits(pod(spec)))).toEqual(expected);
  });

  it('adds overhead only to what is limited', () => {
    const spec = { containers: [{ resources: { limits: { cpu: '1' } } }], overhead: { cpu: '100m', memory: '1Mi' } };
    expect(shown(podLimits(pod(spec)))).toEqual({ cpu: '1100m' });
    expect(shown(podRequests(pod(spec)))).toEqual({ cpu: '100m', memory: '1Mi' });
  });

  it.each([
    ['no resources', { containers: [{}] }, true],
    ['only zeros', { containers: [asks('0', '0')] }, true],
    ['only storage', { containers: [{ resources: { requests: { 'ephemeral-storage': '1Gi' } } }] }, true],
    ['an init container with a limit', { containers: [{}], initContainers: [asks('1')] }, false],
    ['a pod that asks as a whole', { containers: [{}], resources: { requests: { memory: '1' } } }, false],
  ])('is best effort with %s: %s', (_, spec, expected) => {
    expect(isBestEffort(pod(spec))).toBe(expected);
  });
});
