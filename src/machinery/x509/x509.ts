import type * as Module from '@peculiar/x509';

export type X509 = typeof Module;

let loading: Promise<X509> | undefined;

/**
 * The certificate library, loaded when first needed: it costs more than a tenth of a second, and a server that starts
 * with valid certificates never needs it. Its dependency container insists on reflect-metadata being there first.
 */
export function loadX509(): Promise<X509> {
  loading ??= import('reflect-metadata').then(() => import('@peculiar/x509'));
  return loading;
}
