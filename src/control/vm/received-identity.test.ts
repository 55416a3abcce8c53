import { describe, expect, it } from 'vitest';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceSpec } from '../../api/kubevirt/virtual-machine-instance-spec.ts';
import {
  IDENTITY_ANNOTATION,
  RECEIVER_ANNOTATION,
  RESTORE_STRATEGY_ANNOTATION,
} from '../../api/kubevirt/well-known.ts';
import { guestOf, machineOf } from './machines.fixture.ts';
import { receivedIdentity } from './received-identity.ts';

const HOLDER = { node: 'n', nodeUID: 'nu', podUID: 'pu', generation: 'g' };
const HERE = { epoch: 5, holder: HOLDER };

const template = (domain: object, more: object = {}): VirtualMachine['spec']['template'] => ({
  spec: { domain: { devices: {}, memory: { guest: '64Mi' }, ...domain }, ...more } as VirtualMachineInstanceSpec,
});
const receiver = (of: VirtualMachine['spec']['template']): VirtualMachine =>
  machineOf({ runStrategy: 'WaitAsReceiver', template: of });
const come = (domain: object, more: object = {}): VirtualMachineInstance => {
  const guest = guestOf('Running', { status: { rightToRun: HERE } });
  return {
    ...guest,
    spec: { ...guest.spec, ...more, domain: { devices: {}, ...domain } } as VirtualMachineInstanceSpec,
  };
};

describe('a machine that has received a guest', () => {
  it('has its firmware, whatever it had before, and what else is in it', () => {
    const machine = receiver(template({ firmware: { uuid: 'random', bootloader: { bios: {} } } }));
    const next = receivedIdentity(machine, come({ firmware: { uuid: 'of-the-guest', serial: 'S-1' } }));
    expect(next?.domain.firmware).toEqual({ uuid: 'of-the-guest', serial: 'S-1', bootloader: { bios: {} } });
    expect(next?.domain.memory).toEqual({ guest: '64Mi' });
  });

  it('has its addresses, by the names of interfaces', () => {
    const interfaces = [
      { name: 'one', masquerade: {} },
      { name: 'two', bridge: {}, macAddress: '02:00:00:00:00:02' },
    ];
    const machine = receiver(template({ devices: { interfaces } }, { networks: [{ name: 'one' }, { name: 'two' }] }));
    const guest = come({
      devices: {
        interfaces: [
          { name: 'two', bridge: {}, macAddress: '02:00:00:00:00:22' },
          { name: 'one', masquerade: {}, macAddress: '02:00:00:00:00:11' },
        ],
      },
    });
    const next = receivedIdentity(machine, guest);
    expect(next?.domain.devices.interfaces).toEqual([
      { name: 'one', masquerade: {}, macAddress: '02:00:00:00:00:11' },
      { name: 'two', bridge: {}, macAddress: '02:00:00:00:00:22' },
    ]);
    expect(next?.networks).toEqual([{ name: 'one' }, { name: 'two' }]);
  });

  it('names the network that it had without naming it', () => {
    const interfaces = [{ name: 'default', bridge: {}, macAddress: '02:00:00:00:00:11' }];
    const networks = [{ name: 'default', pod: {} }];
    const next = receivedIdentity(receiver(template({})), come({ devices: { interfaces } }, { networks }));
    expect(next).toMatchObject({ networks, domain: { devices: { interfaces } } });
  });

  it('is left alone where it says all that already, and will not be looked at again', () => {
    const firmware = { uuid: 'of-the-guest' };
    const machine = receiver(template({ firmware }));
    const restored = {
      ...machine,
      metadata: { ...machine.metadata, annotations: { [RESTORE_STRATEGY_ANNOTATION]: 'Always' } },
    };
    expect(receivedIdentity(restored, come({ firmware }))).toBeUndefined();
    expect(receivedIdentity(machine, come({ firmware }))).toEqual(machine.spec.template.spec);
  });

  it('is told once: what somebody says there afterwards is not taken back', () => {
    const machine = receiver(template({ firmware: { uuid: 'of-somebody' } }));
    const guest = come({ firmware: { uuid: 'of-the-guest' } });
    const noted = (uid: string): VirtualMachine => ({
      ...machine,
      metadata: { ...machine.metadata, annotations: { [IDENTITY_ANNOTATION]: uid } },
    });
    expect(receivedIdentity(noted(guest.metadata.uid ?? ''), guest)).toBeUndefined();
    expect(receivedIdentity(noted('of-an-earlier-guest'), guest)?.domain.firmware?.uuid).toBe('of-the-guest');
  });
});

it.each<readonly [string, VirtualMachine, VirtualMachineInstance | undefined]>([
  ['nobody is there', receiver(template({})), undefined],
  [
    'it waits',
    receiver(template({})),
    {
      ...come({ firmware: { uuid: 'u' } }),
      metadata: { name: 'web', annotations: { [RECEIVER_ANNOTATION]: 'true' } },
      status: { phase: 'WaitingForSync' },
    },
  ],
  ['it is no receiver', machineOf({ runStrategy: 'Always' }), come({ firmware: { uuid: 'u' } })],
  [
    'it went away again',
    receiver(template({})),
    { ...come({ firmware: { uuid: 'u' } }), status: { phase: 'Running', rightToRun: { ...HERE, across: true } } },
  ],
  [
    'it is over',
    receiver(template({})),
    { ...come({ firmware: { uuid: 'u' } }), status: { phase: 'Succeeded', rightToRun: HERE } },
  ],
])('nothing is kept where %s', (_, machine, guest) => {
  expect(receivedIdentity(machine, guest)).toBeUndefined();
});
