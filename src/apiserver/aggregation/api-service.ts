import type { Condition, KubeObject } from '../../api/meta.ts';

/** An APIService as on the wire: a group and version, and who serves it. */
export interface ApiService extends KubeObject {
  spec?: {
    group?: string;
    version?: string;
    /** Absent for what this server serves itself. */
    service?: { namespace?: string; name?: string; port?: number };
    /** Base64 of PEM. */
    caBundle?: string;
    insecureSkipTLSVerify?: boolean;
    groupPriorityMinimum?: number;
    versionPriority?: number;
  };
  status?: { conditions?: Condition[] };
}

/** Whether a group and version can be reached, and why not. */
export interface Availability {
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
}

/** Where there is nothing to reach. */
export const LOCAL: Availability = {
  status: 'True',
  reason: 'Local',
  message: 'Local APIServices are always available',
};

/** The name that the APIService of a group and version must have. */
export function apiServiceName(group: string, version: string): string {
  return `${version}.${group}`;
}

/** Sets the Available condition; its time changes only with its status. */
export function setAvailable(service: ApiService, availability: Availability, now: string): void {
  const conditions = service.status?.conditions ?? [];
  const old = conditions.find((condition) => condition.type === 'Available');
  const lastTransitionTime = old?.status === availability.status ? (old.lastTransitionTime ?? now) : now;
  const next: Condition = { type: 'Available', ...availability, lastTransitionTime };
  service.status = {
    ...service.status,
    conditions: old ? conditions.map((each) => (each === old ? next : each)) : [...conditions, next],
  };
}
