import { documents } from './chart.ts';
import { manifests, usualSettings } from './manifests.ts';
import { PARTS } from './parts.ts';

/** What `godwit manifests` does. */

export interface ManifestsOptions {
  readonly image?: string;
  readonly only?: readonly string[];
  readonly output: 'json' | 'yaml';
}

/** Prints all that an admin installs on Kubernetes, or parts of it. */
export function printManifests({ image, only = PARTS, output }: ManifestsOptions, print: (line: string) => void): void {
  const settings = usualSettings();
  const parts = manifests({ ...settings, ...(image === undefined ? {} : { image }) });
  const objects = PARTS.filter((part) => only.includes(part)).flatMap((part) => parts[part]);
  if (output === 'yaml') print(documents(objects).trimEnd());
  else print(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }, undefined, 2));
}
