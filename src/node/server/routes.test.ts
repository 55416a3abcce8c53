import { describe, expect, it } from 'vitest';
import { ApiError } from '../../api/status.ts';
import { type Route, routeOf } from './routes.ts';

const GUEST = '/v1/namespaces/shop/virtualmachineinstances/web';
const ALL = { follow: false, tailLines: undefined, limitBytes: undefined, isVerbatim: false };

describe('the paths of the agent', () => {
  it.each<[string, string, Route]>([
    ['GET', '/healthz', { kind: 'health' }],
    ['GET', '/metrics', { kind: 'metrics' }],
    ['PUT', `${GUEST}/pause`, { kind: 'action', action: 'pause', namespace: 'shop', name: 'web' }],
    ['PUT', `${GUEST}/softreboot`, { kind: 'action', action: 'softreboot', namespace: 'shop', name: 'web' }],
    ['GET', `${GUEST}/console`, { kind: 'console', namespace: 'shop', name: 'web' }],
    ['GET', `${GUEST}/guestosinfo`, { kind: 'guestInfo', namespace: 'shop', name: 'web' }],
    ['GET', `${GUEST}/runs`, { kind: 'runs', namespace: 'shop', name: 'web' }],
    ['GET', `${GUEST}/log`, { kind: 'log', namespace: 'shop', name: 'web', run: undefined, options: ALL }],
    [
      'GET',
      `${GUEST}/log?run=u-1&offset=5`,
      { kind: 'log', namespace: 'shop', name: 'web', run: 'u-1', options: { ...ALL, isVerbatim: true, offset: 5 } },
    ],
    [
      'GET',
      `${GUEST}/log?follow=true&tailLines=0&limitBytes=9`,
      {
        kind: 'log',
        namespace: 'shop',
        name: 'web',
        run: undefined,
        options: { follow: true, tailLines: 0, limitBytes: 9, isVerbatim: false },
      },
    ],
    [
      'GET',
      '/containerLogs/shop/virt-launcher-web-1/compute?follow=false&timestamps=false',
      { kind: 'containerLog', namespace: 'shop', pod: 'virt-launcher-web-1', container: 'compute', options: ALL },
    ],
  ])('%s %s', (method, url, route) => expect(routeOf(method, url)).toEqual(route));

  it.each<[string, string, number]>([
    ['GET', '/', 404],
    ['GET', '/v1', 404],
    ['GET', '/v1/namespaces/shop/virtualmachineinstances/web', 404],
    ['GET', `${GUEST}/vnc`, 404],
    ['GET', `${GUEST}/console/more`, 404],
    ['GET', '/v1/namespaces//virtualmachineinstances/web/log', 404],
    ['GET', '/v1/namespaces/shop/virtualmachineinstances/../log', 404],
    ['GET', '/v1/namespaces/shop/virtualmachineinstances/%2e%2e%2fx/log', 404],
    ['GET', '/v1/namespaces/shop/virtualmachineinstances/%zz/log', 400],
    ['GET', `${GUEST}/pause`, 405],
    ['PUT', `${GUEST}/console`, 405],
    ['PUT', `${GUEST}/guestosinfo`, 405],
    ['PUT', `${GUEST}/runs`, 405],
    ['POST', '/healthz', 405],
    ['GET', `${GUEST}/log?follow=perhaps`, 400],
    ['GET', `${GUEST}/log?tailLines=-1`, 400],
    ['GET', `${GUEST}/log?limitBytes=0`, 400],
    ['GET', `${GUEST}/log?run=u-1&offset=-1`, 400],
    ['GET', `${GUEST}/log?run=u-1&offset=1&tailLines=1`, 400],
    ['GET', `${GUEST}/log?limitBytes=1e9`, 400],
    ['GET', '/containerLogs/shop/pod/compute?previous=true', 400],
    ['GET', '/containerLogs/shop/pod/compute?sinceSeconds=5', 400],
    ['GET', '/containerLogs/shop/pod', 404],
  ])('%s %s is refused', (method, url, code) => {
    let thrown: unknown;
    try {
      routeOf(method, url);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(ApiError);
    expect(thrown).toMatchObject({ code });
  });
});
