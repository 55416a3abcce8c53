import { describe, expect, it } from 'vitest';
import { CONTAINER_DISK_MACHINE, objectsOf, PLACED_MACHINE } from '../../api/kubevirt/manifests.fixture.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { machineOf } from '../vm/machines.fixture.ts';
import { makeGuest } from '../vm/make-guest.ts';
import { guestOf } from './guests.fixture.ts';
import { launcherName, launcherPod } from './launcher-pod.ts';

const options = { image: 'launcher:1', configuration: {}, isBlock: (claim: string) => claim === 'database-data' };

/** The guest that a machine's manifest leads to. */
function guestOfManifest(manifest: string): VirtualMachineInstance {
  const machine = objectsOf(manifest)[0] as VirtualMachine;
  const made = makeGuest(
    { ...machine, metadata: { ...machineOf({}).metadata, ...machine.metadata } },
    { sizing: {}, configuration: {}, isReceiver: false },
  );
  if (!made.guest) throw new Error(JSON.stringify(made.errors));
  return { ...made.guest, metadata: { ...made.guest.metadata, uid: 'guest-1' } };
}

describe('the launcher pod', () => {
  it('is not called outdated because the one before it is', () => {
    const guest = guestOfManifest(CONTAINER_DISK_MACHINE);
    const labels = { ...guest.metadata.labels, 'kubevirt.io/outdatedLauncherImage': '' };
    const pod = launcherPod({ ...guest, metadata: { ...guest.metadata, labels } }, options);
    expect(pod.metadata.labels).not.toHaveProperty('kubevirt.io/outdatedLauncherImage');
  });

  it('of a guest with an image', () => {
    expect(launcherPod(guestOfManifest(CONTAINER_DISK_MACHINE), options)).toMatchInlineSnapshot(`
      {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
          "annotations": {
            "descheduler.alpha.kubernetes.io/request-evict-only": "",
            "example.com/owner": "shop",
            "godwit.dev/memory": "1Gi",
            "godwit.dev/sockets": "1",
            "kubectl.kubernetes.io/default-container": "compute",
            "kubevirt.io/domain": "web",
            "kubevirt.io/migrationTransportUnix": "true",
            "kubevirt.io/vm-generation": "3",
          },
          "labels": {
            "kubevirt.io": "virt-launcher",
            "kubevirt.io/created-by": "guest-1",
            "kubevirt.io/domain": "web",
            "vm.kubevirt.io/name": "web",
          },
          "name": "virt-launcher-web-w98xg",
          "namespace": "shop",
          "ownerReferences": [
            {
              "apiVersion": "kubevirt.io/v1",
              "blockOwnerDeletion": true,
              "controller": true,
              "kind": "VirtualMachineInstance",
              "name": "web",
              "uid": "guest-1",
            },
          ],
        },
        "spec": {
          "automountServiceAccountToken": false,
          "containers": [
            {
              "env": [
                {
                  "name": "VMI_NAME",
                  "value": "web",
                },
                {
                  "name": "VMI_UID",
                  "value": "guest-1",
                },
                {
                  "name": "GRACE_PERIOD_SECONDS",
                  "value": "75",
                },
                {
                  "name": "POD_NAME",
                  "valueFrom": {
                    "fieldRef": {
                      "fieldPath": "metadata.name",
                    },
                  },
                },
              ],
              "image": "launcher:1",
              "imagePullPolicy": "IfNotPresent",
              "name": "compute",
              "resources": {
                "limits": {
                  "cpu": "2",
                },
                "requests": {
                  "cpu": "500m",
                  "memory": "1146Mi",
                },
              },
              "securityContext": {
                "allowPrivilegeEscalation": false,
                "capabilities": {
                  "drop": [
                    "ALL",
                  ],
                },
              },
              "volumeMounts": [
                {
                  "mountPath": "/var/run/kubevirt-ephemeral-disks",
                  "name": "ephemeral-disks",
                },
              ],
            },
          ],
          "enableServiceLinks": false,
          "hostname": "web",
          "nodeSelector": {
            "kubernetes.io/arch": "amd64",
            "kubevirt.io/schedulable": "true",
          },
          "readinessGates": [
            {
              "conditionType": "kubevirt.io/virtual-machine-unpaused",
            },
          ],
          "restartPolicy": "Never",
          "securityContext": {
            "fsGroup": 107,
            "runAsGroup": 107,
            "runAsNonRoot": true,
            "runAsUser": 107,
            "seccompProfile": {
              "type": "RuntimeDefault",
            },
          },
          "terminationGracePeriodSeconds": 75,
          "tolerations": [
            {
              "effect": "NoSchedule",
              "key": "godwit.dev/guests-only",
              "operator": "Exists",
            },
          ],
          "volumes": [
            {
              "emptyDir": {},
              "name": "ephemeral-disks",
            },
          ],
        },
      }
    `);
  });
  it('of a guest on claims, placed with everything there is', () => {
    expect(launcherPod(guestOfManifest(PLACED_MACHINE), options)).toMatchInlineSnapshot(`
      {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
          "annotations": {
            "descheduler.alpha.kubernetes.io/request-evict-only": "",
            "godwit.dev/memory": "8Gi",
            "godwit.dev/sockets": "4",
            "kubectl.kubernetes.io/default-container": "compute",
            "kubevirt.io/domain": "database",
            "kubevirt.io/migrationTransportUnix": "true",
            "kubevirt.io/vm-generation": "3",
          },
          "labels": {
            "kubevirt.io": "virt-launcher",
            "kubevirt.io/created-by": "guest-1",
            "vm.kubevirt.io/name": "database",
          },
          "name": "virt-launcher-database-w98xg",
          "namespace": "shop",
          "ownerReferences": [
            {
              "apiVersion": "kubevirt.io/v1",
              "blockOwnerDeletion": true,
              "controller": true,
              "kind": "VirtualMachineInstance",
              "name": "database",
              "uid": "guest-1",
            },
          ],
        },
        "spec": {
          "affinity": {
            "nodeAffinity": {
              "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                  {
                    "matchExpressions": [
                      {
                        "key": "topology.kubernetes.io/zone",
                        "operator": "In",
                        "values": [
                          "a",
                          "b",
                        ],
                      },
                    ],
                  },
                ],
              },
            },
            "podAntiAffinity": {
              "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                  "podAffinityTerm": {
                    "labelSelector": {
                      "matchExpressions": [
                        {
                          "key": "app",
                          "operator": "In",
                          "values": [
                            "database",
                          ],
                        },
                      ],
                    },
                    "topologyKey": "kubernetes.io/hostname",
                  },
                  "weight": 100,
                },
              ],
            },
          },
          "automountServiceAccountToken": false,
          "containers": [
            {
              "env": [
                {
                  "name": "VMI_NAME",
                  "value": "database",
                },
                {
                  "name": "VMI_UID",
                  "value": "guest-1",
                },
                {
                  "name": "GRACE_PERIOD_SECONDS",
                  "value": "45",
                },
                {
                  "name": "POD_NAME",
                  "valueFrom": {
                    "fieldRef": {
                      "fieldPath": "metadata.name",
                    },
                  },
                },
              ],
              "image": "launcher:1",
              "imagePullPolicy": "IfNotPresent",
              "name": "compute",
              "resources": {
                "limits": {
                  "cpu": "4",
                  "hugepages-2Mi": "8Gi",
                  "memory": "205Mi",
                },
                "requests": {
                  "cpu": "4",
                  "hugepages-2Mi": "8Gi",
                  "memory": "205Mi",
                },
              },
              "securityContext": {
                "allowPrivilegeEscalation": false,
                "capabilities": {
                  "drop": [
                    "ALL",
                  ],
                },
              },
              "volumeDevices": [
                {
                  "devicePath": "/dev/data",
                  "name": "data",
                },
              ],
              "volumeMounts": [
                {
                  "mountPath": "/var/run/kubevirt-ephemeral-disks",
                  "name": "ephemeral-disks",
                },
                {
                  "mountPath": "/var/run/kubevirt-private/vmi-disks/root",
                  "name": "root",
                },
              ],
            },
          ],
          "enableServiceLinks": false,
          "hostname": "database",
          "nodeSelector": {
            "disktype": "ssd",
            "kubernetes.io/arch": "amd64",
            "kubevirt.io/schedulable": "true",
          },
          "priorityClassName": "important",
          "readinessGates": [
            {
              "conditionType": "kubevirt.io/virtual-machine-unpaused",
            },
          ],
          "restartPolicy": "Never",
          "schedulerName": "default-scheduler",
          "securityContext": {
            "fsGroup": 107,
            "runAsGroup": 107,
            "runAsNonRoot": true,
            "runAsUser": 107,
            "seccompProfile": {
              "type": "RuntimeDefault",
            },
          },
          "terminationGracePeriodSeconds": 45,
          "tolerations": [
            {
              "effect": "NoSchedule",
              "key": "dedicated",
              "operator": "Equal",
              "value": "databases",
            },
            {
              "effect": "NoSchedule",
              "key": "godwit.dev/guests-only",
              "operator": "Exists",
            },
          ],
          "topologySpreadConstraints": [
            {
              "labelSelector": {
                "matchLabels": {
                  "app": "database",
                },
              },
              "maxSkew": 1,
              "topologyKey": "kubernetes.io/hostname",
              "whenUnsatisfiable": "ScheduleAnyway",
            },
          ],
          "volumes": [
            {
              "emptyDir": {},
              "name": "ephemeral-disks",
            },
            {
              "name": "root",
              "persistentVolumeClaim": {
                "claimName": "database-root",
              },
            },
            {
              "name": "data",
              "persistentVolumeClaim": {
                "claimName": "database-data",
              },
            },
          ],
        },
      }
    `);
  });
  it('of a kubelet is a container that a launcher runs in, which sees what the agent has prepared', () => {
    const guest = guestOf({ domain: { devices: {}, memory: { guest: '64Mi' } } });
    const { spec } = launcherPod(guest, { ...options, kubelets: { imagePullSecrets: ['registry'] } });
    const own = launcherPod(guest, options).spec as { containers: { resources: object }[] };
    expect(spec).toMatchObject({
      hostNetwork: true,
      imagePullSecrets: [{ name: 'registry' }],
      securityContext: { runAsUser: 107, runAsNonRoot: true },
      containers: [
        {
          command: [
            'godwit',
            'launcher',
            '--socket',
            '/var/lib/godwit/launchers/$(POD_UID).sock',
            '--directory',
            '/var/lib/godwit/runs/$(POD_UID)',
            '--log-level',
            'info',
          ],
          env: expect.arrayContaining([
            { name: 'POD_UID', valueFrom: { fieldRef: { fieldPath: 'metadata.uid' } } },
          ]) as unknown,
          volumeMounts: expect.arrayContaining([
            { name: 'agent', mountPath: '/var/lib/godwit', mountPropagation: 'HostToContainer' },
          ]) as unknown,
          resources: { requests: { memory: '257Mi' } },
        },
      ],
      volumes: expect.arrayContaining([
        { name: 'agent', hostPath: { path: '/var/lib/godwit', type: 'Directory' } },
      ]) as unknown,
    });
    expect(own.containers[0]?.resources).toMatchObject({ requests: { memory: '177Mi' } });
  });
  it('has time to hold a guest that is to be saved when it is preempted', () => {
    const featureGates = ['PreemptionEvictionLiveMigration'];
    const configuration = { developerConfiguration: { featureGates } };
    const guest = guestOf({ evictionStrategy: 'LiveMigrate', terminationGracePeriodSeconds: 60 });
    const env = [{ name: 'GRACE_PERIOD_SECONDS', value: '375' }];
    expect(launcherPod(guest, { ...options, configuration }).spec).toMatchObject({
      terminationGracePeriodSeconds: 375,
      containers: [{ env: expect.arrayContaining(env) as unknown }],
    });
    expect(launcherPod(guest, options).spec).toMatchObject({ terminationGracePeriodSeconds: 75 });
  });
  it('has what only pods may read', () => {
    const guest = guestOf({
      volumes: [
        { name: 'config', configMap: { name: 'settings', optional: true } },
        { name: 'keys', secret: { secretName: 'keys' } },
        { name: 'seed', cloudInitNoCloud: { secretRef: { name: 'user' }, networkDataSecretRef: { name: 'network' } } },
        { name: 'host', hostDisk: { path: '/var/lib/disk.img', type: 'DiskOrCreate' } },
        { name: 'copy', ephemeral: { persistentVolumeClaim: { claimName: 'golden', readOnly: true } } },
        { name: 'token', serviceAccount: { serviceAccountName: 'robot' } },
      ],
    });
    const { spec } = launcherPod(guest, options);
    expect(spec).toMatchObject({ serviceAccountName: 'robot', automountServiceAccountToken: true });
    expect((spec as { volumes: object[] }).volumes).toEqual([
      { name: 'ephemeral-disks', emptyDir: {} },
      { name: 'config', configMap: { name: 'settings', optional: true } },
      { name: 'keys', secret: { secretName: 'keys' } },
      { name: 'seed-udata', secret: { secretName: 'user' } },
      { name: 'seed-ndata', secret: { secretName: 'network' } },
      { name: 'host', hostPath: { path: '/var/lib', type: 'DirectoryOrCreate' } },
      { name: 'copy', persistentVolumeClaim: { claimName: 'golden', readOnly: true } },
    ]);
  });
});

describe('its name', () => {
  it('follows from the UID, and is no longer than names may be', () => {
    const [guest, other] = [guestOf(), guestOf()];
    other.metadata.uid = 'guest-2';
    expect(launcherName(guest)).toMatch(/^virt-launcher-web-[a-z0-9]{5}$/);
    expect(launcherName(guest)).toBe(launcherName(guestOf()));
    expect(launcherName(other)).not.toBe(launcherName(guest));
    guest.metadata.name = 'a'.repeat(253);
    expect(launcherName(guest)).toHaveLength(253);
  });
});
