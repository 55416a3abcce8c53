import type { KubeObject } from '../meta.ts';

/** On the Node of a kubelet, the port of the agent's server: the one that its status names is the kubelet's. */
export const AGENT_PORT_ANNOTATION = 'godwit.dev/agent-port';

/** The port at which the agent of a node serves; undefined where nobody says. */
export function agentPortOf(
  node: KubeObject & {
    readonly status?: { readonly daemonEndpoints?: { readonly kubeletEndpoint?: { Port?: number } } };
  },
): number | undefined {
  const said = node.metadata.annotations?.[AGENT_PORT_ANNOTATION];
  const port = said === undefined ? node.status?.daemonEndpoints?.kubeletEndpoint?.Port : Number(said);
  return port !== undefined && Number.isInteger(port) && port > 0 ? port : undefined;
}
