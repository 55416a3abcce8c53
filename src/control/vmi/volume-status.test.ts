import { describe, expect, it } from 'vitest';
import type { PersistentVolumeClaim } from '../../migration/fit/objects.ts';
import { guestOf } from './guests.fixture.ts';
import { volumeStatusOf } from './volume-status.ts';

const claim: PersistentVolumeClaim = {
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'data' },
  spec: { accessModes: ['ReadWriteMany'], volumeMode: 'Filesystem', resources: { requests: { storage: '1Gi' } } },
  status: { phase: 'Bound', capacity: { storage: '2Gi' } },
};
const claimOf = (name: string) => (name === 'data' ? claim : undefined);
const volumes = [
  { name: 'root', persistentVolumeClaim: { claimName: 'data' } },
  { name: 'cloud', cloudInitNoCloud: { userData: '#' } },
];
const info = {
  claimName: 'data',
  accessModes: ['ReadWriteMany'],
  volumeMode: 'Filesystem',
  requests: { storage: '1Gi' },
  capacity: { storage: '2Gi' },
};

describe('what is said of volumes', () => {
  it('is nothing where there are none', () => expect(volumeStatusOf(guestOf(), claimOf)).toBeUndefined());

  it('is what is known of their claims, in the order of their names', () => {
    expect(volumeStatusOf(guestOf({ volumes }), claimOf)).toEqual([
      { name: 'cloud', target: '' },
      { name: 'root', target: '', persistentVolumeClaimInfo: info },
    ]);
  });

  it('leaves what others said, and forgets volumes that are no more', () => {
    const guest = guestOf(
      { volumes },
      {
        volumeStatus: [
          { name: 'root', target: 'vda', size: 5 },
          { name: 'old', target: 'vdb' },
        ],
      },
    );
    expect(volumeStatusOf(guest, claimOf)).toEqual([
      { name: 'cloud', target: '' },
      { name: 'root', target: 'vda', size: 5, persistentVolumeClaimInfo: info },
    ]);
  });

  it('keeps what was known of a claim that is gone', () => {
    const known = { name: 'root', target: 'vda', persistentVolumeClaimInfo: { claimName: 'data' } };
    const guest = guestOf({ volumes: volumes.slice(0, 1) }, { volumeStatus: [known] });
    expect(volumeStatusOf(guest, () => undefined)).toEqual([known]);
  });
});
