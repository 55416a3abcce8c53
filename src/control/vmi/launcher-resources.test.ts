import { describe, expect, it } from 'vitest';
import type { Domain } from '../../api/kubevirt/domain.ts';
import { formatQuantity } from '../../api/quantity.ts';
import { launcherResources, memoryOverhead, processorCount } from './launcher-resources.ts';

const specOf = (domain: Partial<Domain>) => ({ domain: { devices: {}, ...domain } });

describe('what QEMU needs beside the guest', () => {
  it.each<[string, Partial<Domain>, string]>([
    ['the smallest guest', { memory: { guest: '16Mi' } }, '113Mi'],
    ['page tables', { memory: { guest: '64Gi' } }, '240Mi'],
    ['processors', { memory: { guest: '16Mi' }, cpu: { sockets: 2, cores: 4 } }, '169Mi'],
    ['a trusted platform module', { memory: { guest: '16Mi' }, devices: { tpm: {} } }, '166Mi'],
    ['none of it', { memory: { guest: '16Mi' }, devices: { tpm: { enabled: false } } }, '113Mi'],
  ])('%s', (_, domain, expected) => expect(formatQuantity(memoryOverhead(specOf(domain)))).toBe(expected));
});

describe('how many processors', () => {
  it.each<[Partial<Domain>, number]>([
    [{}, 1],
    [{ cpu: { cores: 2, threads: 2 } }, 4],
    [{ resources: { limits: { cpu: '2500m' } } }, 3],
  ])('%j', (domain, expected) => expect(processorCount(specOf(domain))).toBe(expected));
});

describe('what the pod asks for', () => {
  it.each<[string, Partial<Domain>, object]>([
    ['a plain guest', { memory: { guest: '128Mi' } }, { requests: { cpu: '100m', memory: '241Mi' } }],
    [
      'what is said',
      {
        memory: { guest: '1Gi' },
        cpu: { cores: 2 },
        resources: { requests: { memory: '512Mi', cpu: '500m' }, limits: { cpu: 2 } },
      },
      { requests: { cpu: '500m', memory: '634Mi' }, limits: { cpu: '2' } },
    ],
    [
      'a limit of memory',
      { resources: { limits: { memory: '256Mi' } } },
      { requests: { cpu: '100m', memory: '369Mi' }, limits: { memory: '369Mi' } },
    ],
    [
      'nothing for QEMU',
      { memory: { guest: '128Mi' }, resources: { overcommitGuestOverhead: true } },
      { requests: { cpu: '100m', memory: '128Mi' } },
    ],
    [
      'huge pages',
      { memory: { guest: '64Mi', hugepages: { pageSize: '2Mi' } } },
      {
        requests: { cpu: '100m', memory: '113Mi', 'hugepages-2Mi': '64Mi' },
        limits: { 'hugepages-2Mi': '64Mi' },
      },
    ],
    [
      'processors of its own',
      { memory: { guest: '128Mi' }, cpu: { cores: 2, dedicatedCpuPlacement: true } },
      { requests: { cpu: '2', memory: '249Mi' }, limits: { cpu: '2', memory: '249Mi' } },
    ],
  ])('%s', (_, domain, expected) => expect(launcherResources(specOf(domain), {})).toEqual(expected));
  it('as many processors of guests on one of the node as the cluster says', () => {
    const spec = specOf({ cpu: { cores: 3 }, memory: { guest: '128Mi' } });
    const shared = { developerConfiguration: { cpuAllocationRatio: 1 } };
    expect(launcherResources(spec, shared).requests['cpu']).toBe('3');
    expect(launcherResources(spec, { cpuRequest: '50m' }).requests['cpu']).toBe('150m');
  });
});
