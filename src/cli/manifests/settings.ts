import type { KubeObject } from '../../api/meta.ts';
import type { Toleration } from '../../migration/fit/objects.ts';
import { SYNCHRONIZATION_PORT } from '../../sync/wire/address.ts';
import { VERSION } from '../version.ts';

/** What an admin may want otherwise than we do; the values of the chart are the same. */

/** What pods of one component ask for. */
export interface Resources {
  readonly requests: Readonly<Record<string, string>>;
  readonly limits?: Readonly<Record<string, string>>;
}

/** Of one of the components that there are several replicas of. */
export interface DeploymentSettings {
  readonly replicas: number;
  readonly resources: Resources;
  /** What is added to its command. */
  readonly arguments: readonly string[];
}

export interface Settings {
  /** One for all components, launchers included. */
  readonly image: string;
  readonly imagePullPolicy: string;
  readonly imagePullSecrets: readonly { readonly name: string }[];
  readonly logLevel: string;
  /** Of all components but agents, which tolerate everything. */
  readonly tolerations: readonly Toleration[];
  readonly controllers: DeploymentSettings;
  readonly extension: DeploymentSettings;
  readonly synchronization: DeploymentSettings & {
    /** Of the Service through which other clusters dial in. */
    readonly serviceType: string;
    readonly servicePort: number;
  };
  readonly agent: {
    /** The nodes on whose machines guests are to run. */
    readonly nodeSelector: Readonly<Record<string, string>>;
    readonly resources: Resources;
    readonly arguments: readonly string[];
    /** Whether it sees the processes of other pods. */
    readonly hostPID: boolean;
    readonly updateStrategy: { readonly type: string; readonly rollingUpdate?: object };
  };
  /** The first configuration of the cluster, which is the admin's from then on. */
  readonly configuration: object;
}

/** What stands for a setting in a template of the chart. */
export class Placeholder {
  /** The way to its value, such as `controllers.replicas`. */
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** As text that survives whatever becomes of the object around it, and is found again. */
  toJSON(): string {
    return `<<${this.path}>>`;
  }
}

/** Settings that are themselves made of settings, one group for each component. */
export const GROUPS = ['controllers', 'extension', 'synchronization', 'agent'] as const;

/** A group of settings of which each may be left open. */
export type OpenGroup<T> = { readonly [K in keyof T]: T[K] | Placeholder };

/** Settings of which each may be left open. */
export type OpenSettings = {
  readonly [K in keyof Settings]: K extends (typeof GROUPS)[number]
    ? OpenGroup<Settings[K]>
    : Settings[K] | Placeholder;
};

/** For components that mostly wait: what they were seen to need, with room. */
const SMALL: Resources = { requests: { cpu: '10m', memory: '128Mi' } };

/** The settings of an installation of which nobody has said anything; `configuration` is that of `godwit up`. */
export function defaultSettings(configuration: KubeObject): Settings {
  return {
    // Of no registry: nothing is published, and what others publish must never run with our rights. scripts/image.mjs names it the same.
    image: `localhost/godwit:v${VERSION}`,
    imagePullPolicy: 'IfNotPresent',
    imagePullSecrets: [],
    logLevel: 'info',
    tolerations: [
      { key: 'CriticalAddonsOnly', operator: 'Exists' },
      // All other nodes may be agents' own, which run no containers.
      { key: 'node-role.kubernetes.io/control-plane', operator: 'Exists', effect: 'NoSchedule' },
    ],
    controllers: { replicas: 2, resources: { requests: { cpu: '50m', memory: '256Mi' } }, arguments: [] },
    extension: { replicas: 2, resources: SMALL, arguments: [] },
    synchronization: {
      replicas: 2,
      resources: SMALL,
      arguments: [],
      serviceType: 'ClusterIP',
      servicePort: SYNCHRONIZATION_PORT,
    },
    agent: {
      // Kubelets cannot set it on themselves.
      nodeSelector: { 'node-restriction.kubernetes.io/godwit-agent': 'true' },
      resources: { requests: { cpu: '100m', memory: '256Mi' } },
      arguments: [],
      hostPID: false,
      updateStrategy: { type: 'OnDelete' },
    },
    configuration: (configuration['spec'] as { configuration: object }).configuration,
  };
}

/** The same where guests run in containers of kubelets: agents come and go, and their guests stay. */
export function onKubelets({ controllers, agent, ...settings }: Settings): Settings {
  return {
    ...settings,
    controllers: { ...controllers, arguments: [...controllers.arguments, '--kubelets'] },
    agent: {
      ...agent,
      arguments: [...agent.arguments, '--kubelet', '--name', '$(NODE_NAME)'],
      hostPID: true,
      updateStrategy: { type: 'RollingUpdate' },
    },
  };
}
