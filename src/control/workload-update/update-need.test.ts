import { describe, expect, it } from 'vitest';
import { MEMORY_ANNOTATION, SOCKETS_ANNOTATION } from '../../api/kubevirt/well-known.ts';
import type { LauncherPod } from '../resources.ts';
import { needLeft } from './update-need.ts';
import { CURRENT, guestOf } from './workloads.fixture.ts';

const CLAIM = { name: 'data', persistentVolumeClaim: { claimName: 'second' } };

/** A guest with two sockets, a gibibyte and its volume on the second claim, if it is in a pod for that. */
function guest(image: string, ...changes: readonly string[]) {
  const made = guestOf('web', { image, changes });
  const domain = { ...made.spec.domain, cpu: { sockets: 2 }, memory: { guest: '1Gi' } };
  return { ...made, spec: { ...made.spec, domain, volumes: [CLAIM] } };
}

function pod(image: string, annotations: Readonly<Record<string, string>>, claimName: string): LauncherPod {
  const volumes = [{ name: 'data', persistentVolumeClaim: { claimName } }];
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'launcher', annotations: { ...annotations } },
    spec: { containers: [{ name: 'compute', image }], volumes },
  };
}

const BEFORE = pod('launcher:1', { [SOCKETS_ANNOTATION]: '1', [MEMORY_ANNOTATION]: '512Mi' }, 'first');
const AFTER = pod(CURRENT, { [SOCKETS_ANNOTATION]: '2', [MEMORY_ANNOTATION]: '1Gi' }, 'second');

describe('what a pod leaves to be done of a guest', () => {
  it.each(['HotVCPUChange', 'HotMemoryChange', 'VolumesChange'])('is %s, unless it was made for it', (change) => {
    expect(needLeft(guest(CURRENT, change), BEFORE, CURRENT)).toEqual({ isOutdated: false, changes: [change] });
    expect(needLeft(guest(CURRENT, change), AFTER, CURRENT)).toBeUndefined();
  });
  it('is another launcher, unless it has that', () => {
    expect(needLeft(guest('launcher:1'), BEFORE, CURRENT)).toEqual({ isOutdated: true, changes: [] });
    expect(needLeft(guest('launcher:1'), AFTER, CURRENT)).toBeUndefined();
  });
  it('is what others have a condition for', () => {
    const need = { isOutdated: false, changes: ['MigrationRequired'] };
    expect(needLeft(guest(CURRENT, 'MigrationRequired', 'HotVCPUChange'), AFTER, CURRENT)).toEqual(need);
  });
  it('is nothing where nothing is needed', () => expect(needLeft(guest(CURRENT), BEFORE, CURRENT)).toBeUndefined());
});
