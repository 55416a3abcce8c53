import type { KubeObject } from '../../api/meta.ts';

/** What the loops look at of accounts and of what belongs to them. */

export interface ServiceAccount extends KubeObject {
  secrets?: readonly { readonly name?: string }[];
}

export interface Secret extends KubeObject {
  type?: string;
  /** In base 64. */
  data?: { readonly [key: string]: string };
}

export interface ConfigMap extends KubeObject {
  data?: { readonly [key: string]: string };
}
