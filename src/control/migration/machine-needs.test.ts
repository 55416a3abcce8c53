import { describe, expect, it } from 'vitest';
import { guestOf } from '../vmi/guests.fixture.ts';
import { machineNeeds } from './machine-needs.ts';

const node = {
  'kubernetes.io/hostname': 'node-a',
  'godwit.dev/accelerator': 'kvm',
  'machine-type.node.kubevirt.io/pc-q35-7.2': 'true',
  'machine-type.node.kubevirt.io/pc-q35-7.1': 'true',
  'cpu-vendor.node.kubevirt.io/AMD': 'true',
  'cpu-model.node.kubevirt.io/EPYC': 'true',
  'cpu-model.node.kubevirt.io/Opteron_G5': 'false',
  'host-model-cpu.node.kubevirt.io/EPYC-Rome': 'true',
  'host-model-required-features.node.kubevirt.io/svm': 'true',
};
const ACCELERATED = { 'godwit.dev/accelerator': 'kvm', 'cpu-vendor.node.kubevirt.io/AMD': 'true' };
const AS_HOST = {
  ...ACCELERATED,
  'host-model-cpu.node.kubevirt.io/EPYC-Rome': 'true',
  'cpu-feature.node.kubevirt.io/svm': 'true',
};
const cpu = (model: string) => ({ domain: { devices: {}, cpu: { model } } });

describe('what a machine that runs needs of another node', () => {
  it.each([
    ['the processor of its host, by default', guestOf(), node, AS_HOST],
    ['the processor of its host', guestOf(cpu('host-passthrough')), node, AS_HOST],
    ['a model', guestOf(cpu('EPYC')), node, { ...ACCELERATED, 'cpu-model.node.kubevirt.io/EPYC': 'true' }],
    ['a model that its node does not speak of', guestOf(cpu('Opteron_G5')), node, ACCELERATED],
    [
      'the machine type that it has, not the one that was asked for',
      guestOf({ domain: { devices: {}, machine: { type: 'q35' } } }, { machine: { type: 'pc-q35-7.1' } }),
      node,
      { ...AS_HOST, 'machine-type.node.kubevirt.io/pc-q35-7.1': 'true' },
    ],
    [
      'no processor where it is translated',
      guestOf(),
      { ...node, 'godwit.dev/accelerator': 'tcg' },
      { ...ACCELERATED, 'godwit.dev/accelerator': 'tcg' },
    ],
    ['nothing of nodes that say nothing', guestOf(), {}, {}],
    ['nothing by a name that every object has', guestOf(cpu('constructor')), {}, {}],
  ])('%s', (_what, guest, labels, expected) => {
    expect(machineNeeds(guest, labels)).toEqual(expected);
  });
});
