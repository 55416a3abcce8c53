import { expect, it } from 'vitest';
import type { OwnerReference } from '../../api/meta.ts';
import type { Pod } from '../../migration/fit/objects.ts';
import { decidePod } from './drained-pods.ts';

const NO_RULES = { force: false, deleteEmptydirData: false };

function pod(kind?: string, more: Pick<Pod, 'spec' | 'status'> = {}): Pod {
  const apiVersion = kind === 'VirtualMachineInstance' ? 'kubevirt.io/v1' : 'apps/v1';
  const owner: OwnerReference = { apiVersion, kind: kind ?? '', name: 'o', uid: 'u', controller: true };
  const ownerReferences = kind === undefined ? {} : { ownerReferences: [owner] };
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', ...ownerReferences }, ...more };
}

const scratch = { name: 'scratch', emptyDir: {} };
const keeping: Pick<Pod, 'spec'> = { spec: { volumes: [scratch] } };

it.each([
  ['of a ReplicaSet', pod('ReplicaSet'), NO_RULES, 'evict'],
  ['of a guest', pod('VirtualMachineInstance'), NO_RULES, 'evict'],
  ['of a guest, whatever it keeps', pod('VirtualMachineInstance', keeping), NO_RULES, 'evict'],
  ['of a DaemonSet', pod('DaemonSet'), NO_RULES, 'leave'],
  ['of another pod', pod('Pod'), NO_RULES, 'leave'],
  ['that has ended', pod(undefined, { status: { phase: 'Succeeded' } }), NO_RULES, 'leave'],
  ['of nobody', pod(), NO_RULES, 'refuse'],
  ['of nobody, by force', pod(), { ...NO_RULES, force: true }, 'evict'],
  ['that keeps something', pod('ReplicaSet', keeping), NO_RULES, 'refuse'],
  ['that keeps something, by force', pod('ReplicaSet', keeping), { ...NO_RULES, force: true }, 'refuse'],
  ['that keeps something nobody needs', pod('ReplicaSet', keeping), { ...NO_RULES, deleteEmptydirData: true }, 'evict'],
])('a pod %s', (_, given, rules, kind) => {
  expect(decidePod(given, rules).kind).toBe(kind);
});

it('a pod that its node started by itself is left alone', () => {
  const metadata = { name: 'p', annotations: { 'kubernetes.io/config.mirror': 'x' } };
  expect(decidePod({ ...pod(), metadata }, { force: true, deleteEmptydirData: true }).kind).toBe('leave');
});
