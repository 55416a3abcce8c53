import { parseAllDocuments } from 'yaml';
import type { KubeObject } from '../meta.ts';

/** Manifests as users of KubeVirt write them, each with something that the others have not. */

/** The objects of a YAML text. */
export function objectsOf(manifest: string): KubeObject[] {
  return parseAllDocuments(manifest).map((document) => document.toJS() as KubeObject);
}

/** A machine with an image, cloud-init, and the pod's network. */
export const CONTAINER_DISK_MACHINE = `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: web
  labels: {app: web}
spec:
  runStrategy: Always
  template:
    metadata:
      creationTimestamp: null
      labels: {kubevirt.io/domain: web}
      annotations: {example.com/owner: shop}
    spec:
      evictionStrategy: LiveMigrate
      terminationGracePeriodSeconds: 60
      domain:
        cpu: {cores: 2, sockets: 1, threads: 1, model: host-model}
        memory: {guest: 1Gi}
        resources:
          requests: {memory: 1Gi, cpu: 500m}
          limits: {cpu: 2}
        machine: {type: q35}
        devices:
          rng: {}
          disks:
          - {name: root, bootOrder: 1, disk: {bus: virtio}}
          - {name: seed, disk: {bus: virtio}}
          interfaces:
          - name: default
            masquerade: {}
            ports:
            - {name: http, port: 80, protocol: TCP}
      networks:
      - {name: default, pod: {}}
      volumes:
      - name: root
        containerDisk: {image: "registry.example.com/fedora:41", imagePullPolicy: IfNotPresent}
      - name: seed
        cloudInitNoCloud:
          userData: |
            #cloud-config
            password: swallow
            chpasswd: {expire: false}
          networkData: |
            version: 2
`;

/** A machine on a claim, in the older way of saying that it runs, placed with everything there is. */
export const PLACED_MACHINE = `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: database}
spec:
  running: false
  dataVolumeTemplates:
  - metadata: {name: database-root, creationTimestamp: null}
    spec:
      storage: {resources: {requests: {storage: 10Gi}}}
      source: {http: {url: "https://images.example.com/disk.qcow2"}}
  template:
    spec:
      nodeSelector: {disktype: ssd}
      priorityClassName: important
      schedulerName: default-scheduler
      tolerations:
      - {key: dedicated, operator: Equal, value: databases, effect: NoSchedule}
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: ScheduleAnyway
        labelSelector: {matchLabels: {app: database}}
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
            - matchExpressions:
              - {key: topology.kubernetes.io/zone, operator: In, values: [a, b]}
        podAntiAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
          - weight: 100
            podAffinityTerm:
              topologyKey: kubernetes.io/hostname
              labelSelector: {matchExpressions: [{key: app, operator: In, values: [database]}]}
      domain:
        cpu: {sockets: 4, dedicatedCpuPlacement: true, numa: {guestMappingPassthrough: {}}}
        memory: {guest: 8Gi, hugepages: {pageSize: 2Mi}}
        firmware:
          uuid: 5d307ca9-b3ef-428c-8861-06e72d69f223
          bootloader: {efi: {secureBoot: false, persistent: true}}
        features: {acpi: {enabled: true}, smm: {enabled: true}, hyperv: {relaxed: {enabled: true}}}
        clock: {utc: {}, timer: {hpet: {present: false}}}
        devices:
          tpm: {persistent: true}
          watchdog: {name: dog, i6300esb: {action: poweroff}}
          gpus: [{name: one, deviceName: example.com/gpu}]
          disks:
          - name: root
            serial: D0001
            cache: none
            io: native
            blockSize: {custom: {logical: 512, physical: 4096}}
            disk: {bus: virtio}
          - {name: data, disk: {bus: sata}}
          - {name: tools, cdrom: {bus: sata, readonly: true}}
          interfaces:
          - {name: storage, bridge: {}, macAddress: "de:ad:00:00:be:af", model: virtio}
      networks:
      - {name: storage, multus: {networkName: storage-net}}
      readinessProbe: {tcpSocket: {port: 5432}, initialDelaySeconds: 20}
      accessCredentials:
      - sshPublicKey:
          source: {secret: {secretName: keys}}
          propagationMethod: {noCloud: {}}
      volumes:
      - {name: root, dataVolume: {name: database-root}}
      - {name: data, persistentVolumeClaim: {claimName: database-data}}
      - {name: tools, containerDisk: {image: example.com/tools}}
  updateVolumesStrategy: Migration
`;

/** A machine whose size comes from an instance type, and what is referred to. */
export const INSTANCETYPE_MACHINE = `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: small}
spec:
  runStrategy: RerunOnFailure
  instancetype: {kind: virtualmachineinstancetype, name: small}
  preference: {name: linux}
  template:
    spec:
      domain: {devices: {}}
      volumes:
      - {name: root, containerDisk: {image: "example.com/linux:1"}}
---
apiVersion: instancetype.kubevirt.io/v1beta1
kind: VirtualMachineInstancetype
metadata: {name: small}
spec:
  cpu: {guest: 2, dedicatedCPUPlacement: false}
  memory: {guest: 2Gi, overcommitPercent: 10}
  nodeSelector: {size: small}
  annotations: {example.com/size: small}
---
apiVersion: instancetype.kubevirt.io/v1beta1
kind: VirtualMachineClusterInstancetype
metadata: {name: large}
spec:
  cpu: {guest: 16, model: host-passthrough, maxSockets: 32}
  memory: {guest: 64Gi, maxGuest: 128Gi, hugepages: {pageSize: 1Gi}}
  ioThreadsPolicy: auto
  hostDevices: [{name: card, deviceName: example.com/card}]
---
apiVersion: instancetype.kubevirt.io/v1beta1
kind: VirtualMachinePreference
metadata: {name: linux}
spec:
  cpu: {preferredCPUTopology: cores}
  devices: {preferredDiskBus: virtio, preferredInterfaceModel: virtio, preferredRng: {}}
---
apiVersion: instancetype.kubevirt.io/v1beta1
kind: VirtualMachineClusterPreference
metadata: {name: windows}
spec:
  cpu: {preferredCPUTopology: spread, spreadOptions: {across: SocketsCoresThreads, ratio: 4}}
  clock: {preferredClockOffset: {utc: {}}, preferredTimer: {hyperv: {}}}
  features: {preferredAcpi: {}, preferredHyperv: {vapic: {}, spinlocks: {spinlocks: 8191}}, preferredSmm: {}}
  firmware: {preferredEfi: {secureBoot: true, persistent: true}}
  machine: {preferredMachineType: q35}
  requirements: {cpu: {guest: 2}, memory: {guest: 4Gi}}
`;

/** Guests without a machine: all kinds of volumes, and a kernel of an image. */
export const GUESTS = `
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstance
metadata: {name: volumes}
spec:
  startStrategy: Paused
  hostname: volumes
  dnsPolicy: None
  dnsConfig: {nameservers: [192.0.2.1]}
  domain:
    resources: {requests: {memory: 128M}}
    devices:
      autoattachPodInterface: false
      disks:
      - {name: empty, disk: {}}
      - {name: host, disk: {bus: virtio, readonly: true}}
      - {name: config, disk: {}}
      - {name: secret, disk: {}}
      - {name: drive, disk: {}}
      - {name: copy, disk: {}}
      - {name: answers, cdrom: {bus: sata}}
      filesystems:
      - {name: shared, virtiofs: {}}
  volumes:
  - {name: empty, emptyDisk: {capacity: 1Gi}}
  - {name: host, hostDisk: {path: /var/lib/disk.img, type: DiskOrCreate, capacity: 500Mi, shared: true}}
  - {name: config, configMap: {name: settings, volumeLabel: cfg, optional: true}}
  - {name: secret, secret: {secretName: keys}}
  - {name: drive, cloudInitConfigDrive: {secretRef: {name: seed}, networkDataSecretRef: {name: seed}}}
  - {name: copy, ephemeral: {persistentVolumeClaim: {claimName: golden}}}
  - {name: answers, sysprep: {configMap: {name: unattend}}}
  - {name: shared, serviceAccount: {serviceAccountName: default}}
---
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstance
metadata: {name: kernel}
spec:
  evictionStrategy: LiveMigrateIfPossible
  livenessProbe: {guestAgentPing: {}, periodSeconds: 5}
  domain:
    memory: {guest: 64Mi}
    chassis: {manufacturer: Example}
    firmware:
      kernelBoot:
        kernelArgs: console=ttyS0
        container: {image: "example.com/kernel:6", kernelPath: /boot/vmlinuz, initrdPath: /boot/initrd}
    devices: {}
`;

/** The cluster's configuration, with much that is not for us. */
export const CONFIGURATION = `
apiVersion: kubevirt.io/v1
kind: KubeVirt
metadata: {name: kubevirt}
spec:
  certificateRotateStrategy: {}
  imagePullPolicy: IfNotPresent
  customizeComponents: {patches: []}
  workloadUpdateStrategy: {workloadUpdateMethods: [LiveMigrate, Evict], batchEvictionSize: 10, batchEvictionInterval: 1m0s}
  infra: {replicas: 2}
  configuration:
    evictionStrategy: LiveMigrate
    developerConfiguration:
      featureGates: [DecentralizedLiveMigration, Snapshot, Snapshot]
      logVerbosity: {virtLauncher: 3}
    migrations:
      parallelMigrationsPerCluster: 10
      bandwidthPerMigration: 64Mi
      allowPostCopy: true
    network: {defaultNetworkInterface: masquerade, permitSlirpInterface: false}
    smbios: {manufacturer: Example, product: Guest}
    vmRolloutStrategy: LiveUpdate
`;

/** Migrations: of one node to another, and the halves of one between clusters. */
export const MIGRATIONS = `
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstanceMigration
metadata: {name: away, annotations: {kubevirt.io/evacuationMigration: node-1}}
spec:
  vmiName: web
  priority: system-critical
  addedNodeSelector: {zone: b}
---
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstanceMigration
metadata: {name: send}
spec:
  vmiName: web
  sendTo: {migrationID: "77", connectURL: "10.0.0.7:9185"}
---
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstanceMigration
metadata: {name: receive}
spec:
  vmName: web
  receive: {key: "77"}
`;

/** The full manifest of the proposal of policies, as it stands there but for its first line; and KubeVirt's form. */
export const POLICIES = `
apiVersion: migrations.kubevirt.io/v1alpha1
kind: MigrationPolicy
metadata:
  name: my-awesome-policy
spec:
  # Migration Configuration
  allowAutoConverge: true
  bandwidthPerMigration: 217Ki
  completionTimeoutPerGiB: 23
  allowPostCopy: false
  disableTLS: false

  # Matching to VMs
  selectors:
    namespaceSelector:
      matchLabels:
        hpc-workloads: true
        xyz-workloads-type: ""
    virtualMachineInstanceSelector:
      matchLabels:
        workload-type: db
        operating-system: ""
---
apiVersion: migrations.kubevirt.io/v1alpha1
kind: MigrationPolicy
metadata: {name: flat}
spec:
  allowPostCopy: true
  allowWorkloadDisruption: true
  maxDowntimeMs: 300
  progressTimeout: 60
  experimental:
    stallDetector: {stallMargin: 4, ewmaAlpha: 400m, searchLocalMinima: true, precopyPossibleFactor: "1.5"}
    compression: zstd
  selectors:
    namespaceSelector: {hpc-workloads: "True"}
    virtualMachineInstanceSelector: {workload-type: ""}
`;
