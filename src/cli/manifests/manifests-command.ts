import { documents } from './chart.ts';
import { manifests, usualSettings } from './manifests.ts';
import { PARTS } from './parts.ts';
import { onKubelets } from './settings.ts';

/** What `godwit manifests` does. */

export interface ManifestsOptions {
  readonly image?: string;
  readonly kubelets?: boolean;
  readonly only?: readonly string[];
  readonly output: 'json' | 'yaml';
}

/** Prints all that an admin installs on Kubernetes, or parts of it. */
export function printManifests(options: ManifestsOptions, print: (line: string) => void): void {
  const { image, kubelets, only = PARTS, output } = options;
  const settings = kubelets ? onKubelets(usualSettings()) : usualSettings();
  const parts = manifests({ ...settings, ...(image === undefined ? {} : { image }) });
  const objects = PARTS.filter((part) => only.includes(part)).flatMap((part) => parts[part]);
  if (output === 'yaml') print(documents(objects).trimEnd());
  else print(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }, undefined, 2));
}
