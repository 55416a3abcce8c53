import { expect, it } from 'vitest';
import { shapeOfRequest } from './request-shape.ts';

/** KubeVirt's own cases (pkg/monitoring/metrics/common/client/client_test.go), with the URL that client-go tells. */

it.each([
  ['GET', '/api/v1/namespaces/kubevirt/pods', 'pods', 'LIST', '/api/v1/namespaces/%7Bnamespace%7D/pods'],
  ['GET', '/api/v1/namespaces/a/pods/b', 'pods', 'GET', '/api/v1/namespaces/%7Bnamespace%7D/pods/%7Bname%7D'],
  ['GET', '/api/v1/pods?watch=true&resourceVersion=1', 'pods', 'WATCH', '/api/v1/pods'],
  ['GET', '/apis/kubevirt.io/v1/kubevirts', 'kubevirts', 'LIST', '/apis/kubevirt.io/v1/kubevirts'],
  ['GET', '/apis/kubevirt.io/v1/kubevirts/it', 'kubevirts', 'GET', '/apis/kubevirt.io/v1/kubevirts/%7Bname%7D'],
  ['PUT', '/api/v1/nodes/n/status', 'nodes', 'UPDATE', '/api/v1/nodes/%7Bname%7D/status'],
  ['PATCH', '/api/v1/nodes/n', 'nodes', 'PATCH', '/api/v1/nodes/%7Bname%7D'],
  ['POST', '/api/v1/namespaces/a/events', 'events', 'CREATE', '/api/v1/namespaces/%7Bnamespace%7D/events'],
  ['DELETE', '/api/v1/namespaces/a/pods/b', 'pods', 'DELETE', '/api/v1/namespaces/%7Bnamespace%7D/pods/%7Bname%7D'],
  ['GET', '/api/v1/namespaces', 'namespaces', 'LIST', '/api/v1/namespaces'],
  ['GET', '/api/v1/namespaces/a', 'namespaces', 'GET', '/api/v1/namespaces/%7Bname%7D'],
  ['PUT', '/api/v1/namespaces/a/finalize', 'namespaces', 'UPDATE', '/api/v1/namespaces/%7Bname%7D/finalize'],
  ['GET', '/api/v1/nodes/n/proxy/what/ever', 'nodes', 'GET', '/api/v1/nodes/%7Bname%7D/proxy'],
  ['GET', '/apis/kubevirt.io/v1', 'none', 'none', '/apis'],
  ['GET', '/openapi/v3/apis/a', 'none', 'none', '/openapi'],
])('%s %s is about %s', (method, asked, resource, verb, path) => {
  expect(shapeOfRequest(method, asked)).toEqual({ resource, verb, path });
});
