import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import {
  type Backend,
  BackendError,
  type BackendRequest,
  type BackendResponse,
  type BackendTransport,
} from '../aggregation/backend.ts';
import { pods } from '../admission/attributes.fixture.ts';
import type { Call } from '../endpoints/context.ts';
import { PLAIN } from '../endpoints/negotiate.ts';
import type { ApiResponse } from '../http/message.ts';
import { TestRegistry } from '../registry/registry.fixture.ts';
import { podLog } from './pod-log.ts';

const pod = (name: string, spec: object): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'ns' },
  spec: { nodeName: 'n1', containers: [{ name: 'compute' }], ...spec },
});

const node = (name: string, status: object): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name },
  status,
});

const OBJECTS = [
  pod('one', {}),
  pod('waiting', { nodeName: '' }),
  pod('two', { containers: [{ name: 'a' }, { name: 'b' }], initContainers: [{ name: 'i' }] }),
  pod('lost', { nodeName: 'gone' }),
  pod('silent', { nodeName: 'n2' }),
  node('n1', {
    addresses: [
      { type: 'Hostname', address: 'box' },
      { type: 'InternalIP', address: 'fd00::1' },
    ],
    daemonEndpoints: { kubeletEndpoint: { Port: 1234 } },
  }),
  node('n2', {}),
];

type Reply = (backend: Backend, request: BackendRequest) => Partial<BackendResponse> & { readonly text?: string };

async function ask(path: string, reply: Reply = () => ({})): Promise<ApiResponse> {
  const [name = '', query = ''] = path.split('?');
  const transport: BackendTransport = {
    send: async (backend, request) => {
      const { status = 200, headers = {}, text = '' } = reply(backend, request);
      const body = async function* () {
        yield Buffer.from(text);
      };
      return { status, headers, body: body() };
    },
    upgrade: () => Promise.reject(new Error('nobody asked for that')),
  };
  const request = { query: new URLSearchParams(query), signal: new AbortController().signal };
  const call = { request, target: { definition: pods, namespace: 'ns', name }, representation: PLAIN };
  const registry = await TestRegistry.open(...OBJECTS);
  return podLog({ registry, transport, authority: 'ca' }, call as unknown as Call);
}

/** Code, reason and message of a refusal. */
async function refusal(path: string, reply?: Reply): Promise<string> {
  const error: unknown = await ask(path, reply).catch((thrown: unknown) => thrown);
  if (!(error instanceof ApiError)) throw error;
  return `${error.code} ${error.reason} ${error.message}`;
}

describe('what a node is asked', () => {
  it('by its name, at its best address first, trusting the cluster’s authority alone', async () => {
    let asked: [Backend, BackendRequest] | undefined;
    await ask('one?follow&tailLines=7&container=compute&pretty=true&insecureSkipTLSVerifyBackend=true', (...all) => {
      asked = all;
      return {};
    });
    expect(asked?.[0]).toEqual({
      addresses: [
        { host: 'fd00::1', port: 1234 },
        { host: 'box', port: 1234 },
      ],
      serverName: 'n1',
      caBundle: 'ca',
      isInsecure: false,
    });
    expect(asked?.[1]).toMatchObject({ method: 'GET', path: '/containerLogs/ns/one/compute?follow=true&tailLines=7' });
  });

  it('nothing where the pod has no node yet', async () => {
    expect(await ask('waiting')).toMatchObject({ status: 204, body: '' });
  });
});

describe('what is refused', () => {
  it.each<[string, RegExp]>([
    ['none', /^404 NotFound pods "none" not found$/],
    ['lost', /^404 NotFound nodes "gone" not found$/],
    [
      'two',
      /^400 BadRequest a container name must be specified for pod two, choose one of: \[a b\] or one of the init/,
    ],
    ['two?container=c', /^400 BadRequest container c is not valid for pod two$/],
    ['one?tailLines=-1', /^422 Invalid PodLogOptions "one" is invalid: tailLines/],
    ['one?tailLines=many', /^400 /],
    ['one?limitBytes=0', /limitBytes: Invalid value/],
    ['one?sinceSeconds=0', /sinceSeconds: Invalid value/],
    ['one?sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z', /^422 .*at most one of/],
    ['one?sinceTime=yesterday', /^400 /],
  ])('%s', async (path, expected) => expect(await refusal(path)).toMatch(expected));

  it.each<[number, string, RegExp]>([
    [400, 'it is waiting to start', /^400 BadRequest it is waiting to start$/],
    [500, 'no disk', /^500 InternalError Internal error occurred: no disk$/],
    [404, 'no such log', /^404 NotFound the server could not find the requested resource/],
    [403, 'who are you', /^403 Unknown the server rejected our request/],
  ])('with what the node says: %s', async (status, text, expected) =>
    expect(await refusal('one', () => ({ status, text }))).toMatch(expected),
  );

  it.each<[string, BackendError, string]>([
    [
      'refuses',
      new BackendError('x', { cause: Object.assign(new Error('x'), { code: 'ECONNREFUSED' }) }),
      'dial tcp [fd00::1]:1234: connect: connection refused',
    ],
    ['is silent', new BackendError('x', { isTimeout: true }), 'dial tcp [fd00::1]:1234: i/o timeout'],
    ['is somebody else', new BackendError('wrong certificate'), 'wrong certificate'],
  ])('when the node %s', async (_, error, expected) => {
    const message = await refusal('one', () => {
      throw error;
    });
    expect(message).toBe(`500  Get "https://[fd00::1]:1234/containerLogs/ns/one/compute": ${expected}`);
  });

  it('when the node has no address', async () => {
    const message = await refusal('silent', () => {
      throw new BackendError('the backend has no address');
    });
    expect(message).toMatch(/no preferred addresses found/);
  });
});
