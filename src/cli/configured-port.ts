import type { KubeVirt } from '../api/kubevirt/kube-virt.ts';

/** The port that the configuration gives to the synchronization controller; undefined where it says none that there is. */
export function configuredPort(spec: KubeVirt['spec'] | undefined): number | undefined {
  const text = spec?.synchronizationPort ?? '';
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  return port > 0 && port < 65_536 ? port : undefined;
}
