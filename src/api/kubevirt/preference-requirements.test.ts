import { describe, expect, it } from 'vitest';
import type { InstancetypeSpec } from './instancetype.ts';
import type { PreferenceSpec } from './preference.ts';
import { preferenceErrors } from './preference-requirements.ts';
import type { VirtualMachineInstanceSpec } from './virtual-machine-instance-spec.ts';

type Domain = Partial<VirtualMachineInstanceSpec['domain']>;

const CPU = 'spec.template.spec.domain.cpu';
const topology = (
  preferredCPUTopology: NonNullable<PreferenceSpec['cpu']>['preferredCPUTopology'],
  spreadOptions?: NonNullable<PreferenceSpec['cpu']>['spreadOptions'],
): PreferenceSpec => ({
  requirements: { cpu: { guest: 4 } },
  cpu: { ...(preferredCPUTopology ? { preferredCPUTopology } : {}), ...(spreadOptions ? { spreadOptions } : {}) },
});
const size = (guest: number, memory: string | number = '1Gi'): InstancetypeSpec => ({
  cpu: { guest },
  memory: { guest: memory },
});

describe('what a preference requires', () => {
  it.each<[PreferenceSpec | undefined, InstancetypeSpec | undefined, Domain, fields: string[]]>([
    [undefined, size(1), {}, []],
    [{}, undefined, {}, []],
    [topology(undefined), size(4), {}, []],
    [topology(undefined), size(3), {}, ['spec.instancetype']],
    [topology(undefined), undefined, {}, [CPU]],
    [topology(undefined), undefined, { cpu: { sockets: 4 } }, []],
    [topology(undefined), undefined, { cpu: { cores: 4 } }, [`${CPU}.sockets`]],
    [topology('cores'), undefined, { cpu: { cores: 3, sockets: 9 } }, [`${CPU}.cores`]],
    [topology('threads'), undefined, { cpu: { threads: 4 } }, []],
    [topology('any'), undefined, { cpu: { threads: 2, cores: 2, sockets: 1 } }, []],
    [
      topology('any'),
      undefined,
      { cpu: { threads: 2, cores: 1, sockets: 1 } },
      [`${CPU}.cores`, `${CPU}.sockets`, `${CPU}.threads`],
    ],
    [topology('spread'), undefined, { cpu: { sockets: 2, cores: 2 } }, []],
    [topology('spread'), undefined, { cpu: { sockets: 2, cores: 1 } }, [`${CPU}.sockets`, `${CPU}.cores`]],
    [
      topology('spread', { across: 'CoresThreads' }),
      undefined,
      { cpu: { cores: 1, threads: 2 } },
      [`${CPU}.cores`, `${CPU}.threads`],
    ],
    [
      topology('spread', { across: 'SocketsCoresThreads' }),
      undefined,
      { cpu: { sockets: 1, cores: 2, threads: 2 } },
      [],
    ],
    [topology('spread'), size(5), {}, ['spec.instancetype']],
    [topology('spread', { across: 'SocketsCoresThreads' }), size(6), {}, ['spec.instancetype']],
    [{ cpu: { preferredCPUTopology: 'spread' } }, size(1), {}, []],
    [{ requirements: { memory: { guest: '1Gi' } } }, size(1, '1Gi'), {}, []],
    [{ requirements: { memory: { guest: '1Gi' } } }, size(1, '1G'), {}, ['spec.instancetype']],
    [{ requirements: { memory: { guest: '1Gi' } } }, undefined, {}, ['spec.template.spec.domain.memory']],
    [{ requirements: { memory: { guest: '1Gi' } } }, undefined, { memory: { guest: '2Gi' } }, []],
  ])('%j of %j and %j is missing at %j', (preference, instancetype, domain, fields) => {
    const sizing = { ...(preference ? { preference } : {}), ...(instancetype ? { instancetype } : {}) };
    const errors = preferenceErrors(sizing, { domain: { devices: {}, ...domain } });
    expect(errors.map(({ field }) => field)).toEqual(fields);
  });
  it('is said in so many words', () => {
    const [error] = preferenceErrors(
      { preference: topology(undefined), instancetype: size(2) },
      { domain: { devices: {} } },
    );
    expect(error?.message).toBe('Invalid value: 2: the preference requires 4 vCPU of the instance type');
  });
});
