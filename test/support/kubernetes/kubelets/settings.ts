/** How a kubelet and its containerd are set up, two of which share a small machine; pure. */

/** What holds the namespaces of a pod, and does nothing else. */
export const PAUSE_IMAGE = 'docker.io/godwit/pause:test';

/** Pods of a host are on one bridge, and known by their own addresses wherever they go. */
export function networkConfiguration(podRange: string): object {
  const ipam = { type: 'host-local', ranges: [[{ subnet: podRange }]] };
  return {
    cniVersion: '0.4.0',
    name: 'pods',
    plugins: [{ type: 'bridge', bridge: 'pods', isDefaultGateway: true, ipMasq: false, ipam }],
  };
}

export function containerdConfiguration(pluginsDirectory: string, networksDirectory: string): string {
  const cri = 'plugins."io.containerd.grpc.v1.cri"';
  return `version = 2
[${cri}]
  sandbox_image = "${PAUSE_IMAGE}"
  # Whoever runs tests may not make anything less likely to be killed than they are.
  restrict_oom_score_adj = true
[${cri}.cni]
  bin_dir = "${pluginsDirectory}"
  conf_dir = "${networksDirectory}"
`;
}

/** `path` names the files of the host. */
export function kubeletConfiguration(address: string, path: (file: string) => string): object {
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    address,
    containerRuntimeEndpoint: 'unix:///run/containerd/containerd.sock',
    authentication: { x509: { clientCAFile: path('ca.crt') }, anonymous: { enabled: false } },
    authorization: { mode: 'Webhook' },
    tlsCertFile: path('kubelet.crt'),
    tlsPrivateKeyFile: path('kubelet.key'),
    // Machines with either version of cgroups will do, and so will those on which others have a say in them.
    failCgroupV1: false,
    cgroupDriver: 'cgroupfs',
    cgroupsPerQOS: false,
    enforceNodeAllocatable: [],
    failSwapOn: false,
    makeIPTablesUtilChains: false,
    // Its disk is this machine's, of which others have their share: nothing is evicted or removed for that.
    evictionHard: { 'memory.available': '100Mi', 'nodefs.available': '1%', 'imagefs.available': '1%' },
    imageGCHighThresholdPercent: 100,
    resolvConf: '',
  };
}
