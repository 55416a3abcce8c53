import type { KubeObject } from '../../api/meta.ts';
import { NODES_GROUP } from '../../machinery/node-user.ts';

const RBAC = 'rbac.authorization.k8s.io';
const ROLE = 'godwit:agent';

/**
 * What the agents of nodes may do besides what a kubelet may, which the API server's Node authorizer gives them. Of
 * which guests an agent may write the status is more than a role can say: the node-restriction webhook does.
 */
export function agentRights(): KubeObject[] {
  return [
    {
      apiVersion: `${RBAC}/v1`,
      kind: 'ClusterRole',
      metadata: { name: ROLE },
      rules: [
        {
          verbs: ['get', 'list', 'watch'],
          apiGroups: ['kubevirt.io'],
          resources: ['virtualmachineinstances', 'kubevirts'],
        },
        { verbs: ['get'], apiGroups: ['kubevirt.io'], resources: ['virtualmachines'] },
        { verbs: ['patch'], apiGroups: ['kubevirt.io'], resources: ['virtualmachineinstances/status'] },
        { verbs: ['create', 'patch'], apiGroups: [''], resources: ['events'] },
        // Whether the other node of a migration was given up.
        { verbs: ['get'], apiGroups: [''], resources: ['nodes'] },
        // Directories of volumes that nobody has any more are removed by agents.
        { verbs: ['get', 'list', 'watch'], apiGroups: [''], resources: ['persistentvolumes'] },
      ],
    },
    {
      apiVersion: `${RBAC}/v1`,
      kind: 'ClusterRoleBinding',
      metadata: { name: ROLE },
      roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: ROLE },
      subjects: [{ kind: 'Group', apiGroup: RBAC, name: NODES_GROUP }],
    },
  ];
}
