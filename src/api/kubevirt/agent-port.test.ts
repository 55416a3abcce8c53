import { expect, it } from 'vitest';
import { AGENT_PORT_ANNOTATION, agentPortOf } from './agent-port.ts';

const status = { daemonEndpoints: { kubeletEndpoint: { Port: 10_250 } } };
const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'a' } };

it.each([
  ['is that of the node itself', { ...node, status }, 10_250],
  ['is not the one of a kubelet', { ...node, metadata: said('9186'), status }, 9186],
  ['is nowhere', node, undefined],
  ['is nothing', { ...node, metadata: said('http'), status }, undefined],
])('the port of an agent %s', (_, object, port) => expect(agentPortOf(object)).toBe(port));

function said(port: string): { name: string; annotations: Record<string, string> } {
  return { name: 'a', annotations: { [AGENT_PORT_ANNOTATION]: port } };
}
