import type { Anything } from '../support/api.ts';

/** Pods in every state that kubectl has a word for, with the status that a kubelet would give them. */
export const pods: Record<string, { readonly pod: Anything; readonly status?: Anything }> = {
  running: {
    pod: {
      metadata: { labels: { app: 'web', tier: 'front' }, annotations: { note: 'hello' } },
      spec: {
        nodeName: 'zoo-node',
        serviceAccountName: 'robot',
        containers: [
          {
            name: 'main',
            image: 'nginx:1.25',
            ports: [{ containerPort: 80, name: 'http' }],
            env: [
              { name: 'PLAIN', value: 'text' },
              { name: 'NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
              { name: 'KEY', valueFrom: { secretKeyRef: { name: 'secret', key: 'key' } } },
            ],
            resources: { requests: { cpu: '100m', memory: '64Mi' }, limits: { memory: '128Mi' } },
            livenessProbe: { httpGet: { path: '/', port: 'http' } },
            volumeMounts: [{ name: 'settings', mountPath: '/etc/settings' }],
          },
          { name: 'side', image: 'busybox:1', command: ['sleep', '1000'] },
        ],
        volumes: [{ name: 'settings', configMap: { name: 'settings' } }],
      },
    },
    status: {
      phase: 'Running',
      podIP: '10.1.0.7',
      podIPs: [{ ip: '10.1.0.7' }],
      hostIP: '192.168.0.5',
      startTime: '2024-01-01T00:00:00Z',
      conditions: [
        { type: 'Ready', status: 'True' },
        { type: 'PodScheduled', status: 'True' },
      ],
      containerStatuses: [
        {
          name: 'main',
          ready: true,
          restartCount: 2,
          image: 'nginx:1.25',
          imageID: 'sha256:1',
          containerID: 'containerd://1',
          state: { running: { startedAt: '2024-01-01T00:00:00Z' } },
        },
        { name: 'side', ready: false, restartCount: 0, image: 'busybox:1', imageID: '', state: { running: {} } },
      ],
    },
  },
  pending: {
    pod: { metadata: { labels: { app: 'db' } }, spec: { containers: [{ name: 'main', image: 'postgres:16' }] } },
  },
  crashing: {
    pod: {
      metadata: { labels: { app: 'web' } },
      spec: { nodeName: 'zoo-node', containers: [{ name: 'main', image: 'broken:1' }] },
    },
    status: {
      phase: 'Running',
      containerStatuses: [
        {
          name: 'main',
          ready: false,
          restartCount: 7,
          image: 'broken:1',
          imageID: '',
          state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off' } },
        },
      ],
    },
  },
  completed: {
    pod: { spec: { restartPolicy: 'Never', containers: [{ name: 'main', image: 'once:1' }] } },
    status: {
      phase: 'Succeeded',
      containerStatuses: [
        {
          name: 'main',
          ready: false,
          restartCount: 0,
          image: 'once:1',
          imageID: '',
          state: { terminated: { exitCode: 0, reason: 'Completed' } },
        },
      ],
    },
  },
  failed: {
    pod: { spec: { restartPolicy: 'Never', containers: [{ name: 'main', image: 'once:1' }] } },
    status: {
      phase: 'Failed',
      containerStatuses: [
        {
          name: 'main',
          ready: false,
          restartCount: 0,
          image: 'once:1',
          imageID: '',
          state: { terminated: { exitCode: 3 } },
        },
      ],
    },
  },
  initializing: {
    pod: {
      spec: {
        nodeName: 'zoo-node',
        initContainers: [
          { name: 'first', image: 'init:1' },
          { name: 'second', image: 'init:1' },
        ],
        containers: [{ name: 'main', image: 'main:1' }],
      },
    },
    status: {
      phase: 'Pending',
      initContainerStatuses: [
        {
          name: 'first',
          ready: true,
          restartCount: 0,
          image: 'init:1',
          imageID: '',
          state: { terminated: { exitCode: 0 } },
        },
        { name: 'second', ready: false, restartCount: 0, image: 'init:1', imageID: '', state: { running: {} } },
      ],
      containerStatuses: [
        {
          name: 'main',
          ready: false,
          restartCount: 0,
          image: 'main:1',
          imageID: '',
          state: { waiting: { reason: 'PodInitializing' } },
        },
      ],
    },
  },
};
