import { describe, expect, it } from 'vitest';
import { answerHealth, type HealthCheck } from './health.ts';

function ask(target: string, isStarted = true): { status: number; body: unknown } | undefined {
  const checks: HealthCheck[] = [
    { name: 'ping', isLiveness: true, isHealthy: () => true },
    { name: 'bootstrap', isLiveness: false, isHealthy: () => isStarted },
  ];
  const [path = '', query = ''] = target.split('?');
  const answer = answerHealth(checks, path, new URLSearchParams(query));
  return answer && { status: answer.status, body: answer.body };
}

describe('health', () => {
  it.each([
    ['/healthz', 'ok'],
    ['/livez', 'ok'],
    ['/readyz', 'ok'],
    ['/readyz/ping', 'ok'],
    ['/readyz/bootstrap', 'ok'],
    ['/readyz?verbose', '[+]ping ok\n[+]bootstrap ok\nreadyz check passed\n'],
    ['/livez?verbose=true', '[+]ping ok\nlivez check passed\n'],
    ['/readyz?verbose&exclude=ping', '[+]ping excluded: ok\n[+]bootstrap ok\nreadyz check passed\n'],
  ])('answers %s', (target, body) => expect(ask(target)).toEqual({ status: 200, body }));

  it('says which check fails, and not why', () => {
    expect(ask('/readyz', false)).toEqual({
      status: 500,
      body: '[+]ping ok\n[-]bootstrap failed: reason withheld\nreadyz check failed\n',
    });
    expect(ask('/readyz/bootstrap', false)?.status).toBe(500);
    expect(ask('/readyz?exclude=bootstrap', false)).toEqual({ status: 200, body: 'ok' });
  });

  it('is alive while it starts: a restart would not help', () => {
    expect(ask('/livez', false)).toEqual({ status: 200, body: 'ok' });
    expect(ask('/livez/bootstrap')).toBeUndefined();
  });

  it.each(['/', '/healthzz', '/readyz/nothing', '/version', '/readyz/__proto__'])('leaves %s alone', (target) =>
    expect(ask(target)).toBeUndefined(),
  );
});
