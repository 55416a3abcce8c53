import { describe, expect, it } from 'vitest';
import { ApiError } from '../../api/status.ts';
import type { AdmissionPlugin } from '../registry/contract.ts';
import { AdmissionChain, type ReinvokingPlugin } from './chain.ts';
import { attributesOf, pods } from './attributes.fixture.ts';
import { pod } from './plugins.fixture.ts';

describe('AdmissionChain', () => {
  function recorder(name: string, log: string[], more: Partial<ReinvokingPlugin> = {}): AdmissionPlugin {
    return {
      name,
      handles: () => true,
      mutate: async () => void log.push(`mutate ${name}`),
      validate: async () => void log.push(`validate ${name}`),
      ...more,
    };
  }
  const attributes = attributesOf(pods, pod());

  it('runs the plug-ins in order, mutating ones apart from validating ones, and only those that handle it', async () => {
    const log: string[] = [];
    const chain = new AdmissionChain([
      recorder('a', log),
      recorder('b', log, { handles: () => false }),
      recorder('c', log, { mutate: undefined }),
    ]);
    await chain.mutate(attributes);
    await chain.validate(attributes);
    expect(log).toEqual(['mutate a', 'validate a', 'validate c']);
  });

  it('waits for nobody where no plug-in has to', () => {
    const log: string[] = [];
    const chain = new AdmissionChain([
      recorder('a', log, { mutate: () => void log.push('mutate a') }),
      recorder('b', log, { handles: () => false }),
    ]);
    expect(chain.mutate(attributes)).toBeUndefined();
    expect(log).toEqual(['mutate a']);
  });

  it('stops at the first refusal', async () => {
    const log: string[] = [];
    const refusal = new ApiError(403, 'Forbidden', 'no');
    const chain = new AdmissionChain([
      recorder('a', log, { mutate: () => Promise.reject(refusal) }),
      recorder('b', log),
    ]);
    await expect(chain.mutate(attributes)).rejects.toBe(refusal);
    expect(log).toEqual([]);
  });

  it('runs all mutating plug-ins a second time, not a third, when one asks for it', async () => {
    const log: string[] = [];
    const chain = new AdmissionChain([recorder('a', log), recorder('b', log, { needsReinvocation: () => true })]);
    await chain.mutate(attributes);
    expect(log).toEqual(['mutate a', 'mutate b', 'mutate a', 'mutate b']);
  });
});
