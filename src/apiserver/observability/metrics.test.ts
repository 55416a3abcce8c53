import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../env/test.ts';
import type { RequestInfo } from '../http/message.ts';
import { ApiServerMetrics } from './metrics.ts';

const info = (rest: Partial<RequestInfo> = {}): RequestInfo => ({
  verb: 'list',
  isResource: true,
  path: '/api/v1/namespaces/a/pods',
  group: '',
  version: 'v1',
  namespace: 'a',
  resource: 'pods',
  subresource: '',
  name: '',
  rest: '',
  ...rest,
});

function start() {
  const clock = new ManualClock();
  const metrics = new ApiServerMetrics(clock, () => [
    { bucket: 'pods', count: 3 },
    { bucket: 'deployments.apps', count: 1 },
  ]);
  const line = async (pattern: RegExp): Promise<string[]> =>
    (await metrics.render()).split('\n').filter((each) => pattern.test(each));
  return { clock, metrics, line };
}

describe('metrics', () => {
  it('counts requests by what was asked and the status answered', async () => {
    const { metrics, line } = start();
    for (const code of [200, 200, 404]) metrics.begin(info(), true, false).end(code);
    expect(await line(/^apiserver_request_total/)).toEqual([
      'apiserver_request_total{verb="LIST",group="",version="v1",resource="pods",subresource="",scope="namespace",code="200"} 2',
      'apiserver_request_total{verb="LIST",group="",version="v1",resource="pods",subresource="",scope="namespace",code="404"} 1',
    ]);
  });

  it.each<[Partial<RequestInfo>, string, string]>([
    [{ verb: 'get', name: 'x' }, 'GET', 'resource'],
    [{ verb: 'create' }, 'POST', 'resource'],
    [{ verb: 'update', name: 'x' }, 'PUT', 'resource'],
    [{ verb: 'deletecollection' }, 'DELETECOLLECTION', 'namespace'],
    [{ verb: 'list', namespace: '' }, 'LIST', 'cluster'],
    [{ verb: 'brew' }, 'OTHER', 'namespace'],
    [{ verb: 'constructor' }, 'OTHER', 'namespace'],
  ])('labels %o', async (rest, verb, scope) => {
    const { metrics, line } = start();
    metrics.begin(info(rest), true, false).end(200);
    const [first] = await line(/^apiserver_request_total/);
    expect(first).toContain(`verb="${verb}"`);
    expect(first).toContain(`scope="${scope}"`);
  });

  it('measures how long requests took', async () => {
    const { clock, metrics, line } = start();
    const measurement = metrics.begin(info(), true, false);
    expect(await line(/^apiserver_current_inflight_requests\{/)).toContain(
      'apiserver_current_inflight_requests{request_kind="readOnly"} 1',
    );
    clock.advance(150);
    measurement.end(200);
    const buckets = await line(/^apiserver_request_duration_seconds_bucket/);
    expect(buckets.find((each) => each.includes('le="0.1"'))).toMatch(/ 0$/);
    expect(buckets.find((each) => each.includes('le="0.2"'))).toMatch(/ 1$/);
    expect(await line(/^apiserver_current_inflight_requests\{/)).toContain(
      'apiserver_current_inflight_requests{request_kind="readOnly"} 0',
    );
  });

  it('keeps long requests apart', async () => {
    const { metrics, line } = start();
    const watch = metrics.begin(info({ verb: 'watch' }), true, true);
    expect(await line(/^apiserver_longrunning_requests\{/)).toEqual([expect.stringMatching(/verb="WATCH".* 1$/)]);
    watch.end(200);
    expect(await line(/^apiserver_longrunning_requests\{/)).toEqual([expect.stringMatching(/ 0$/)]);
    expect(await line(/^apiserver_request_duration_seconds_count/)).toEqual([]);
  });

  it('lets no client make labels', async () => {
    const { metrics, line } = start();
    for (let index = 0; index < 100; index++) {
      metrics.begin(info({ resource: `made-up-${index}`, name: 'x', verb: 'get' }), false, false).end(404);
    }
    expect(await line(/^apiserver_request_total/)).toEqual([
      'apiserver_request_total{verb="GET",group="",version="",resource="",subresource="",scope="",code="404"} 100',
    ]);
  });

  it('counts what is stored when asked', async () => {
    expect(await start().line(/^apiserver_storage_objects\{/)).toEqual([
      'apiserver_storage_objects{resource="pods"} 3',
      'apiserver_storage_objects{resource="deployments.apps"} 1',
    ]);
  });

  it('counts calls of webhooks', async () => {
    const { metrics, line } = start();
    const call = { name: 'a.example.com', type: 'validating', operation: 'CREATE', durationMs: 10 } as const;
    metrics.webhookCalled({ ...call, outcome: 'allowed' });
    metrics.webhookCalled({ ...call, outcome: 'denied' });
    metrics.webhookCalled({ ...call, outcome: 'failed-open' });
    expect(await line(/^apiserver_admission_webhook_(rejection|fail_open)_count/)).toEqual([
      'apiserver_admission_webhook_rejection_count{name="a.example.com",type="validating",operation="CREATE",error_type="no_error"} 1',
      'apiserver_admission_webhook_fail_open_count{name="a.example.com",type="validating"} 1',
    ]);
    expect(await line(/^apiserver_admission_webhook_admission_duration_seconds_count/)).toHaveLength(2);
  });
});
