/** The aggregated API: what can be done with machines and guests besides reading and writing them. */

export const SUBRESOURCE_GROUP = 'subresources.kubevirt.io';
/** The first is the one to use; the other is for tools that still ask for it. */
export const SUBRESOURCE_VERSIONS = ['v1', 'v1alpha3'] as const;

/** What there is of a resource, and by which verb of RBAC it is asked for. */
export interface Subresource {
  readonly resource: 'virtualmachines' | 'virtualmachineinstances';
  readonly subresource: string;
  readonly method: 'GET' | 'PUT';
}

export const SUBRESOURCES: readonly Subresource[] = [
  { resource: 'virtualmachines', subresource: 'start', method: 'PUT' },
  { resource: 'virtualmachines', subresource: 'stop', method: 'PUT' },
  { resource: 'virtualmachines', subresource: 'restart', method: 'PUT' },
  { resource: 'virtualmachines', subresource: 'migrate', method: 'PUT' },
  { resource: 'virtualmachines', subresource: 'evacuate/cancel', method: 'PUT' },
  { resource: 'virtualmachines', subresource: 'reclaim', method: 'PUT' },
  { resource: 'virtualmachines', subresource: 'migrationpolicy', method: 'GET' },
  { resource: 'virtualmachineinstances', subresource: 'pause', method: 'PUT' },
  { resource: 'virtualmachineinstances', subresource: 'unpause', method: 'PUT' },
  { resource: 'virtualmachineinstances', subresource: 'evacuate/cancel', method: 'PUT' },
  { resource: 'virtualmachineinstances', subresource: 'softreboot', method: 'PUT' },
  { resource: 'virtualmachineinstances', subresource: 'reset', method: 'PUT' },
  { resource: 'virtualmachineinstances', subresource: 'console', method: 'GET' },
  { resource: 'virtualmachineinstances', subresource: 'log', method: 'GET' },
  { resource: 'virtualmachineinstances', subresource: 'guestosinfo', method: 'GET' },
];

/** The verb that a role has to allow. */
export function verbOf({ method }: Pick<Subresource, 'method'>): 'get' | 'update' {
  return method === 'GET' ? 'get' : 'update';
}
