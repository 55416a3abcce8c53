import { describe, expect, it } from 'vitest';
import type { StateChangeRequest } from '../../api/kubevirt/state-change-request.ts';
import { GUEST_FINALIZER, MACHINE_FINALIZER } from '../../api/kubevirt/well-known.ts';
import { machineOf } from './machines.fixture.ts';
import { makeGuest } from './make-guest.ts';

const plain = { sizing: {}, configuration: {}, isReceiver: false };
const size = { cpu: { guest: 2 }, memory: { guest: '2Gi' } };

describe('the guest of a machine', () => {
  it('has the labels and annotations of the template, and belongs to the machine', () => {
    const machine = machineOf({
      template: {
        metadata: { labels: { app: 'web' }, annotations: { 'example.com/owner': 'shop' } },
        spec: { domain: { devices: {}, memory: { guest: '64Mi' } } },
      },
    });
    machine.metadata.labels = { not: 'passed on' };
    expect(makeGuest(machine, plain).guest?.metadata).toEqual({
      name: 'web',
      namespace: 'shop',
      labels: { app: 'web', 'vm.kubevirt.io/name': 'web' },
      annotations: {
        'example.com/owner': 'shop',
        'kubevirt.io/vm-generation': '3',
        'godwit.dev/template-hash': expect.stringMatching(/^[0-9a-f]{16}$/),
      },
      ownerReferences: [
        {
          apiVersion: 'kubevirt.io/v1',
          kind: 'VirtualMachine',
          name: 'web',
          uid: 'machine-1',
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
      finalizers: [MACHINE_FINALIZER, GUEST_FINALIZER],
    });
  });
  it('starts paused when that is what was asked for, and first', () => {
    const strategyAfter = (...stateChangeRequests: StateChangeRequest[]): string | undefined =>
      makeGuest(machineOf({}, { stateChangeRequests }), plain).guest?.spec.startStrategy;
    const paused: StateChangeRequest = { action: 'Start', data: { paused: 'true' } };
    expect(strategyAfter(paused)).toBe('Paused');
    expect(strategyAfter({ action: 'Start' })).toBeUndefined();
    expect(strategyAfter({ action: 'Start', data: { paused: 'false' } })).toBeUndefined();
    expect(strategyAfter({ action: 'Stop', uid: 'u' }, paused)).toBeUndefined();
  });
  it('has the same UUID and hardware addresses whenever it is made, and its own where it says so', () => {
    const spec = {
      domain: {
        memory: { guest: '64Mi' },
        devices: {
          interfaces: [
            { name: 'default', masquerade: {} },
            { name: 'storage', bridge: {}, macAddress: 'de:ad:00:00:be:af' },
          ],
        },
      },
      networks: [
        { name: 'default', pod: {} },
        { name: 'storage', multus: { networkName: 'storage' } },
      ],
    };
    const machine = machineOf({ template: { spec } });
    const [first, again] = [makeGuest(machine, plain).guest, makeGuest(machine, plain).guest];
    expect(first?.spec).toEqual(again?.spec);
    expect(first?.spec.domain.firmware?.uuid).toMatch(/^[0-9a-f-]{36}$/);
    expect(first?.spec.domain.devices.interfaces?.map(({ macAddress }) => macAddress)).toEqual([
      expect.stringMatching(/^.[26ae](:..){5}$/),
      'de:ad:00:00:be:af',
    ]);
    machine.metadata.uid = 'machine-2';
    expect(makeGuest(machine, plain).guest?.spec.domain.firmware).not.toEqual(first?.spec.domain.firmware);
  });
  it('is as large as its instance type says, which it names', () => {
    const machine = machineOf({
      template: { spec: { domain: { devices: {} } } },
      instancetype: { name: 'small', kind: 'VirtualMachineInstancetype' },
      preference: { name: 'linux' },
    });
    const { guest } = makeGuest(machine, { ...plain, sizing: { instancetype: size } });
    expect(guest?.spec.domain).toMatchObject({ cpu: { sockets: 2 }, memory: { guest: '2Gi' } });
    expect(guest?.metadata.annotations).toMatchObject({
      'kubevirt.io/instancetype-name': 'small',
      'kubevirt.io/cluster-preference-name': 'linux',
    });
  });
  it('is none where template and instance type say two things', () => {
    const machine = machineOf({ instancetype: { name: 'small' } });
    const { guest, errors } = makeGuest(machine, { ...plain, sizing: { instancetype: size } });
    expect(guest).toBeUndefined();
    expect(errors.map(({ field }) => field)).toEqual(['spec.template.spec.domain.memory']);
  });
  it('says when it comes from elsewhere', () => {
    const { guest } = makeGuest(machineOf({}), { ...plain, isReceiver: true });
    expect(guest?.metadata.annotations).toMatchObject({ 'kubevirt.io/create-migration-target': 'true' });
  });
});
