/** What `/version` says: the Kubernetes release whose API this server speaks, and that it is not that release. */
export const KUBERNETES_VERSION = {
  major: '1',
  minor: '34',
  gitVersion: 'v1.34.0+godwit',
  gitCommit: '',
  gitTreeState: 'clean',
  buildDate: '1970-01-01T00:00:00Z',
  goVersion: '',
  compiler: 'node',
  platform: 'linux/amd64',
};
