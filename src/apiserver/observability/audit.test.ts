import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { testEnv } from '../../env/test.ts';
import type { ApiRequest, RequestInfo } from '../http/message.ts';
import { type AuditedRequest, AuditLog, type AuditSink } from './audit.ts';
import { AuditFile } from './audit-file.ts';

/** A fake sink that keeps what it is given, and can be told to hang or fail. */
class FakeSink implements AuditSink {
  text = '';
  writes = 0;
  isClosed = false;
  failure: Error | undefined;
  gate: Promise<void> = Promise.resolve();

  async write(lines: string): Promise<void> {
    this.writes++;
    await this.gate;
    if (this.failure) throw this.failure;
    this.text += lines;
  }

  async close(): Promise<void> {
    this.isClosed = true;
  }

  events(): Record<string, unknown>[] {
    return this.text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  }
}

const info: RequestInfo = {
  verb: 'get',
  isResource: true,
  path: '/api/v1/namespaces/a/secrets/s',
  group: '',
  version: 'v1',
  namespace: 'a',
  resource: 'secrets',
  subresource: '',
  name: 's',
  rest: '',
};

function entry(rest: Partial<AuditedRequest> = {}, url = info.path): AuditedRequest {
  const [path = '', query = ''] = url.split('?');
  const request: ApiRequest = {
    method: 'GET',
    path,
    query: new URLSearchParams(query),
    headers: { 'user-agent': 'kubectl/v1.34.0', authorization: 'Bearer secret' },
    body: () => {
      throw new Error('bodies are none of its business');
    },
    remoteAddress: '192.0.2.7',
    signal: new AbortController().signal,
  };
  return {
    request,
    info,
    user: { username: 'andi', uid: 'u-1', groups: ['dev'] },
    receivedMs: Date.UTC(2026, 0, 1),
    code: 200,
    decision: 'allow',
    ...rest,
  };
}

describe('audit log', () => {
  it('writes an event as Kubernetes does', async () => {
    const sink = new FakeSink();
    const log = new AuditLog(testEnv(), sink);
    log.record(entry({ reason: 'RBAC: allowed by RoleBinding "x"' }, `${info.path}?pretty=true`));
    await log.stop();
    expect(sink.isClosed).toBe(true);
    expect(sink.events()).toEqual([
      {
        kind: 'Event',
        apiVersion: 'audit.k8s.io/v1',
        level: 'Metadata',
        auditID: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
        stage: 'ResponseComplete',
        requestURI: '/api/v1/namespaces/a/secrets/s?pretty=true',
        verb: 'get',
        user: { username: 'andi', uid: 'u-1', groups: ['dev'] },
        sourceIPs: ['192.0.2.7'],
        userAgent: 'kubectl/v1.34.0',
        objectRef: { resource: 'secrets', namespace: 'a', name: 's', apiVersion: 'v1' },
        responseStatus: { metadata: {}, code: 200 },
        requestReceivedTimestamp: '2026-01-01T00:00:00.000000Z',
        stageTimestamp: '2026-01-01T00:00:00.000000Z',
        annotations: {
          'authorization.k8s.io/decision': 'allow',
          'authorization.k8s.io/reason': 'RBAC: allowed by RoleBinding "x"',
        },
      },
    ]);
    expect(sink.text).not.toContain('Bearer');
  });

  it('says why a request failed, and who impersonates whom', async () => {
    const sink = new FakeSink();
    const log = new AuditLog(testEnv(), sink);
    const failure = { reason: 'Forbidden', message: 'no'.repeat(5000) } as const;
    const impersonator = { username: 'root', groups: [] };
    log.record(entry({ code: 403, decision: 'forbid', failure, impersonator, stage: 'ResponseStarted' }));
    await log.stop();
    expect(sink.events()).toMatchObject([
      {
        stage: 'ResponseStarted',
        user: { username: 'root' },
        impersonatedUser: { username: 'andi' },
        responseStatus: { code: 403, status: 'Failure', reason: 'Forbidden' },
        annotations: { 'authorization.k8s.io/decision': 'forbid' },
      },
    ]);
    expect(sink.text.length).toBeLessThan(3000);
  });

  it('strikes out what may be secret in a URL, and cuts what is long', async () => {
    const sink = new FakeSink();
    const log = new AuditLog(testEnv(), sink);
    log.record(entry({}, `/x?token=hunter2&a=1&access_token=hunter2&long=${'y'.repeat(10_000)}`));
    await log.stop();
    expect(sink.text).not.toContain('hunter2');
    expect(String(sink.events()[0]?.['requestURI']).length).toBe(4096);
  });

  it('writes soon, and many events in one go', async () => {
    const env = testEnv();
    const sink = new FakeSink();
    const log = new AuditLog(env, sink);
    for (let index = 0; index < 50; index++) log.record(entry());
    expect(sink.writes).toBe(0);
    env.clock.advance(100);
    expect(sink.writes).toBe(1);
    await log.stop();
    expect(sink.events()).toHaveLength(50);
  });

  it('goes on after a write that has taken along what the next was meant for', async () => {
    const sink = new FakeSink();
    const env = testEnv();
    const log = new AuditLog(env, sink);
    let open: () => void = () => undefined;
    sink.gate = new Promise((resolve) => (open = resolve));
    log.record(entry());
    env.clock.advance(100);
    // The write is under way, and this one waits for its own time.
    log.record(entry());
    open();
    await new Promise((resolve) => setImmediate(resolve));
    expect(sink.events()).toHaveLength(2);
    env.clock.advance(100);
    log.record(entry());
    env.clock.advance(100);
    await log.stop();
    expect(sink.events()).toHaveLength(3);
  });

  it.each([
    ['secrets', '', 400, undefined],
    ['secrets', '', 422, undefined],
    ['secrets', '', 404, 'because'],
    ['serviceaccounts', 'token', 400, undefined],
    ['tokenreviews', '', 409, undefined],
    ['configmaps', '', 400, 'because'],
  ])('of a failed request for %s/%s with %i it keeps the message %s', async (resource, subresource, code, message) => {
    const sink = new FakeSink();
    const log = new AuditLog(testEnv(), sink);
    const failure = { reason: 'BadRequest', message: 'because' } as const;
    log.record(entry({ info: { ...info, resource, subresource }, code, failure }));
    await log.stop();
    expect(sink.events()[0]?.['responseStatus']).toEqual({
      metadata: {},
      status: 'Failure',
      reason: 'BadRequest',
      code,
      ...(message === undefined ? {} : { message }),
    });
  });

  it('drops and counts events when the sink does not keep up', async () => {
    const sink = new FakeSink();
    let open = (): void => undefined;
    sink.gate = new Promise((resolve) => {
      open = resolve;
    });
    const log = new AuditLog(testEnv(), sink);
    const total = 30_000;
    const each = entry();
    for (let index = 0; index < total; index++) log.record(each);
    expect(log.dropped).toBeGreaterThan(0);
    open();
    await log.stop();
    expect(sink.text.split('\n').length - 1).toBe(total - log.dropped);
  });

  it('counts what a failing sink loses, and goes on', async () => {
    const env = testEnv();
    const sink = new FakeSink();
    const log = new AuditLog(env, sink);
    sink.failure = new Error('disk full');
    log.record(entry());
    env.clock.advance(100);
    await Promise.resolve();
    await Promise.resolve();
    await Promise.resolve();
    expect(log.dropped).toBe(1);
    sink.failure = undefined;
    log.record(entry());
    await log.stop();
    expect(sink.events()).toHaveLength(1);
  });
});

describe('audit file', () => {
  let directory: string;

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'audit-'));
  });

  afterEach(() => rmSync(directory, { recursive: true }));

  it('appends privately, across restarts', async () => {
    const path = join(directory, 'audit.log');
    for (const line of ['a\n', 'b\n']) {
      const file = new AuditFile(path);
      await file.write(line);
      await file.close();
    }
    expect(readFileSync(path, 'utf8')).toBe('a\nb\n');
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it('sets aside what has grown too large, and keeps a few', async () => {
    const path = join(directory, 'audit.log');
    const file = new AuditFile(path, 10);
    for (let index = 0; index < 9; index++) await file.write(`line ${index}\n`);
    await file.close();
    expect(readdirSync(directory).sort()).toEqual(['audit.log', ...[1, 2, 3, 4, 5].map((each) => `audit.log.${each}`)]);
    expect(readFileSync(path, 'utf8')).toBe('line 8\n');
    expect(readFileSync(`${path}.1`, 'utf8')).toBe('line 7\n');
    expect(readFileSync(`${path}.5`, 'utf8')).toBe('line 3\n');
  });
});
