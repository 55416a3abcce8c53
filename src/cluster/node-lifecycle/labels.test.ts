import { describe, expect, it } from 'vitest';
import { makeNode } from '../../migration/fit/cluster.fixture.ts';
import { labelsFor } from './labels.ts';

describe('labels that have two names', () => {
  it.each<[Record<string, string>, Record<string, string> | undefined]>([
    [{}, undefined],
    [{ 'beta.kubernetes.io/os': 'linux' }, undefined],
    [{ 'kubernetes.io/os': 'linux' }, { 'beta.kubernetes.io/os': 'linux' }],
    [{ 'kubernetes.io/os': 'linux', 'beta.kubernetes.io/os': 'linux' }, undefined],
    [{ 'kubernetes.io/os': 'linux', 'beta.kubernetes.io/os': 'plan9' }, { 'beta.kubernetes.io/os': 'linux' }],
    [
      { 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'amd64' },
      { 'beta.kubernetes.io/os': 'linux', 'beta.kubernetes.io/arch': 'amd64' },
    ],
  ])('%j needs %j', (labels, expected) => {
    expect(labelsFor(makeNode('n', { labels }))).toEqual(expected);
  });
});
