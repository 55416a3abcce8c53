import { describe, expect, it } from 'vitest';
import { testEnv } from '../env/test.ts';
import { KubeMetrics } from './metrics.ts';
import { ScriptedTransport } from './scripted-transport.fixture.ts';
import { TransportError } from './transport.ts';
import { WorkQueue } from './work-queue.ts';

function linesOf(text: string, prefix: string): string[] {
  return text.split('\n').filter((line) => line.startsWith(prefix));
}

describe('metrics', () => {
  it('are all there, and nought, before anything happens', async () => {
    const metrics = new KubeMetrics(testEnv().clock);
    metrics.queue('vm');
    metrics.controller('vm', 3);
    metrics.leader('godwit');
    const text = await metrics.render();
    expect(linesOf(text, 'controller_runtime_').filter((line) => !line.includes('_bucket'))).toEqual([
      'controller_runtime_reconcile_total{controller="vm",result="success"} 0',
      'controller_runtime_reconcile_total{controller="vm",result="error"} 0',
      'controller_runtime_reconcile_total{controller="vm",result="requeue"} 0',
      'controller_runtime_reconcile_total{controller="vm",result="requeue_after"} 0',
      'controller_runtime_reconcile_errors_total{controller="vm"} 0',
      'controller_runtime_terminal_reconcile_errors_total{controller="vm"} 0',
      'controller_runtime_reconcile_panics_total{controller="vm"} 0',
      'controller_runtime_max_concurrent_reconciles{controller="vm"} 3',
      'controller_runtime_active_workers{controller="vm"} 0',
      'controller_runtime_reconcile_time_seconds_sum{controller="vm"} 0',
      'controller_runtime_reconcile_time_seconds_count{controller="vm"} 0',
    ]);
    expect(linesOf(text, 'leader_election_')).toEqual([
      'leader_election_master_status{name="godwit"} 0',
      'leader_election_slowpath_total{name="godwit"} 0',
    ]);
    expect(linesOf(text, 'kubevirt_workqueue_').filter((line) => !line.includes('_bucket'))).toEqual([
      'kubevirt_workqueue_depth{name="vm",priority="0"} 0',
      'kubevirt_workqueue_adds_total{name="vm"} 0',
      'kubevirt_workqueue_queue_duration_seconds_sum{name="vm"} 0',
      'kubevirt_workqueue_queue_duration_seconds_count{name="vm"} 0',
      'kubevirt_workqueue_work_duration_seconds_sum{name="vm"} 0',
      'kubevirt_workqueue_work_duration_seconds_count{name="vm"} 0',
      'kubevirt_workqueue_unfinished_work_seconds{name="vm"} 0',
      'kubevirt_workqueue_longest_running_processor_seconds{name="vm"} 0',
      'kubevirt_workqueue_retries_total{name="vm"} 0',
    ]);
  });

  it('tell what a queue does', async () => {
    const env = testEnv();
    const metrics = new KubeMetrics(env.clock);
    const queue = new WorkQueue({
      env,
      name: 'vm',
      priorityOf: (key) => (key === 'urgent' ? 1000 : 0),
      stats: metrics.queue('vm'),
    });
    for (const key of ['urgent', 'a', 'b', 'a']) queue.add(key);
    queue.addAfter('late', 60_000);
    env.clock.advance(2000);
    for (const _ of [1, 2]) queue.tryNext();
    env.clock.advance(500);
    queue.done('urgent');
    env.clock.advance(500);
    const text = await metrics.render();
    expect(linesOf(text, 'kubevirt_workqueue_depth')).toEqual([
      'kubevirt_workqueue_depth{name="vm",priority="0"} 1',
      'kubevirt_workqueue_depth{name="vm",priority="1000"} 0',
    ]);
    expect(linesOf(text, 'kubevirt_workqueue_adds_total')).toEqual(['kubevirt_workqueue_adds_total{name="vm"} 3']);
    expect(linesOf(text, 'kubevirt_workqueue_retries_total')).toEqual([
      'kubevirt_workqueue_retries_total{name="vm"} 1',
    ]);
    expect(linesOf(text, 'kubevirt_workqueue_unfinished')).toEqual([
      'kubevirt_workqueue_unfinished_work_seconds{name="vm"} 1',
    ]);
    expect(linesOf(text, 'kubevirt_workqueue_longest')).toEqual([
      'kubevirt_workqueue_longest_running_processor_seconds{name="vm"} 1',
    ]);
    expect(linesOf(text, 'kubevirt_workqueue_queue_duration_seconds').slice(8)).toEqual([
      'kubevirt_workqueue_queue_duration_seconds_bucket{name="vm",le="1"} 0',
      'kubevirt_workqueue_queue_duration_seconds_bucket{name="vm",le="10"} 2',
      'kubevirt_workqueue_queue_duration_seconds_bucket{name="vm",le="100"} 2',
      'kubevirt_workqueue_queue_duration_seconds_bucket{name="vm",le="1000"} 2',
      'kubevirt_workqueue_queue_duration_seconds_bucket{name="vm",le="+Inf"} 2',
      'kubevirt_workqueue_queue_duration_seconds_sum{name="vm"} 4',
      'kubevirt_workqueue_queue_duration_seconds_count{name="vm"} 2',
    ]);
    expect(linesOf(text, 'kubevirt_workqueue_work_duration_seconds_sum')).toEqual([
      'kubevirt_workqueue_work_duration_seconds_sum{name="vm"} 0.5',
    ]);
  });

  it('tell what became of requests, and how long they took, watches aside', async () => {
    const env = testEnv();
    const metrics = new KubeMetrics(env.clock);
    const answers: (number | undefined)[] = [200, 409, undefined, 200, 200];
    const inner = new ScriptedTransport(() => {
      env.clock.advance(200);
      const status = answers.shift();
      if (status === undefined) throw new TransportError('no answer');
      return { status };
    });
    const transport = metrics.metered(inner, 'server:6443');
    const { signal } = new AbortController();
    const send = (method: 'GET' | 'PUT', path: string) => transport.send({ method, path, headers: {}, signal });
    await send('GET', '/api/v1/pods');
    await send('PUT', '/api/v1/namespaces/a/pods/b');
    await expect(send('PUT', '/api/v1/namespaces/a/pods/b')).rejects.toThrow('no answer');
    await send('GET', '/api/v1/pods?allowWatchBookmarks=true&watch=true');
    await send('GET', '/api/v1/pods?watch=true&resourceVersion=1');
    const text = await metrics.render();
    const of = 'host="server:6443",resource="pods"';
    expect(linesOf(text, 'kubevirt_rest_client_requests_total')).toEqual([
      `kubevirt_rest_client_requests_total{code="200",method="GET",${of},verb="LIST"} 1`,
      `kubevirt_rest_client_requests_total{code="409",method="PUT",${of},verb="UPDATE"} 1`,
      `kubevirt_rest_client_requests_total{code="<error>",method="PUT",${of},verb="UPDATE"} 1`,
      `kubevirt_rest_client_requests_total{code="200",method="GET",${of},verb="WATCH"} 2`,
    ]);
    const durations = linesOf(text, 'kubevirt_rest_client_request_latency_seconds');
    const bounds = durations.filter((line) => line.includes('verb="LIST"')).map((line) => /le="(.+?)"/.exec(line)?.[1]);
    expect(bounds.slice(0, -2).join(' ')).toBe(
      '0.005 0.025 0.05 0.1 0.2 0.4 0.6 0.8 1 1.25 1.5 2 3 4 5 6 8 10 15 20 30 45 60 +Inf',
    );
    const list = 'verb="LIST",url="https://server:6443/api/v1/pods"';
    const update = 'verb="UPDATE",url="https://server:6443/api/v1/namespaces/%7Bnamespace%7D/pods/%7Bname%7D"';
    expect(durations.filter((line) => /_(sum|count)|le="0\.1"|le="0\.2"/.test(line))).toEqual([
      `kubevirt_rest_client_request_latency_seconds_bucket{le="0.1",${list}} 0`,
      `kubevirt_rest_client_request_latency_seconds_bucket{le="0.2",${list}} 1`,
      `kubevirt_rest_client_request_latency_seconds_sum{${list}} 0.2`,
      `kubevirt_rest_client_request_latency_seconds_count{${list}} 1`,
      `kubevirt_rest_client_request_latency_seconds_bucket{le="0.1",${update}} 0`,
      `kubevirt_rest_client_request_latency_seconds_bucket{le="0.2",${update}} 2`,
      `kubevirt_rest_client_request_latency_seconds_sum{${update}} 0.4`,
      `kubevirt_rest_client_request_latency_seconds_count{${update}} 2`,
    ]);
  });

  it('do not pile up with priorities that come and go', () => {
    const env = testEnv();
    const stats = new KubeMetrics(env.clock).queue('vm');
    let priority = 0;
    const queue = new WorkQueue({ env, name: 'vm', priorityOf: () => priority, stats });
    for (priority = 1; priority <= 1000; priority++) {
      queue.add('a');
      queue.done(queue.tryNext() as string);
    }
    expect(stats.depths.size).toBeLessThanOrEqual(101);
  });

  it('are what Prometheus can read, whatever the names', async () => {
    const metrics = new KubeMetrics(testEnv().clock);
    metrics.queue('a"b\\c\nd');
    expect(linesOf(await metrics.render(), 'kubevirt_workqueue_adds')).toEqual([
      String.raw`kubevirt_workqueue_adds_total{name="a\"b\\c\nd"} 0`,
    ]);
    expect(metrics.contentType).toContain('text/plain');
  });
});
