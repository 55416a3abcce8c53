import { describe, expect, it } from 'vitest';
import { parseRequestInfo } from './request-info.ts';

const parse = (method: string, url: string) => {
  const [path = '', query = ''] = url.split('?');
  const { verb, group, version, namespace, resource, name, subresource, rest } = parseRequestInfo(
    method,
    path,
    new URLSearchParams(query),
  );
  return [verb, group, version, namespace, resource, name, subresource, rest].join('|');
};

describe('request info', () => {
  it.each([
    ['GET', '/api/v1/namespaces', 'list||v1||namespaces|||'],
    ['GET', '/api/v1/namespaces/a', 'get||v1|a|namespaces|a||'],
    ['PUT', '/api/v1/namespaces/a/finalize', 'update||v1|a|namespaces|a|finalize|'],
    ['PATCH', '/api/v1/namespaces/a/status', 'patch||v1|a|namespaces|a|status|'],
    ['GET', '/api/v1/namespaces/a/pods', 'list||v1|a|pods|||'],
    ['GET', '/api/v1/namespaces/a/pods?watch=1', 'watch||v1|a|pods|||'],
    ['GET', '/api/v1/pods?watch=false', 'list||v1||pods|||'],
    ['GET', '/api/v1/pods?fieldSelector=metadata.name%3Dx&watch=true', 'watch||v1||pods|x||'],
    ['POST', '/api/v1/namespaces/a/pods/p/eviction', 'create||v1|a|pods|p|eviction|'],
    ['DELETE', '/apis/apps/v1/namespaces/a/deployments', 'deletecollection|apps|v1|a|deployments|||'],
    ['DELETE', '/apis/apps/v1/namespaces/a/deployments/d', 'delete|apps|v1|a|deployments|d||'],
    ['GET', '/api/v1/nodes/n/proxy/logs/x', 'get||v1||nodes|n|proxy|logs/x'],
    [
      'GET',
      '/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode',
      'get|rbac.authorization.k8s.io|v1||clusterroles|system:node||',
    ],
    ['GET', '/healthz', 'get|||||||'],
    ['GET', '/apis/apps/v1', 'get|||||||'],
    ['GET', '/api', 'get|||||||'],
  ])('%s %s', (method, url, expected) => expect(parse(method, url)).toBe(expected));

  it.each(['/api//v1/pods', '/apis/g/v1/../v2/x', '/apis/g/v1/x/.', 'api/v1/pods', '*'])(
    'refuses %s, which could be read in two ways',
    (path) => expect(() => parse('GET', path)).toThrow('empty or dotted'),
  );
  it.each(['a%2Fb', '%2e%2e', '.%2E', '%2e', 'a%00', '%0a', 'a%7f'])(
    'refuses %s as a name, which hides what it is',
    (name) => expect(() => parse('GET', `/api/v1/namespaces/${name}/pods`)).toThrow('encoded slashes, dots or control'),
  );
  it('takes any word for a method, and knows only its own', () => {
    for (const method of ['constructor', '__proto__', 'TRACE', 'get', 'watch', 'deletecollection', ''])
      expect(parse(method, '/api/v1/pods/x')).toBe('||v1||pods|x||');
  });
  it('refuses a path that does not decode', () =>
    expect(() => parse('GET', '/api/v1/pods/%ff')).toThrow('percent-encoded'));
});
