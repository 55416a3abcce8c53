import type { ApiRequest, ApiResponse } from './http/message.ts';

/** `/healthz`, `/livez` and `/readyz`: one word for load balancers, and every check by name for people who ask. */

/** Something that is well or is not. */
export interface HealthCheck {
  /** As in `/readyz/<name>`. */
  readonly name: string;
  /** A check that is only about readiness says nothing about whether a restart would help. */
  readonly isLiveness: boolean;
  readonly isHealthy: () => boolean;
}

/** The paths that are answered, but for those of single checks. */
export const HEALTH_PATHS: readonly string[] = ['/healthz', '/livez', '/readyz'];

/** Answers a health path; undefined for any other, and for a check that does not exist. */
export function answerHealth(
  checks: readonly HealthCheck[],
  path: string,
  query: ApiRequest['query'],
): ApiResponse | undefined {
  const root = HEALTH_PATHS.find((each) => path === each || path.startsWith(`${each}/`));
  if (root === undefined) return undefined;
  const own = checks.filter(({ isLiveness }) => isLiveness || root !== '/livez');
  if (path === root) return answerAll(own, root.slice(1), query);
  const name = path.slice(root.length + 1);
  const check = own.find((each) => each.name === name);
  if (!check) return undefined;
  return check.isHealthy() ? text(200, 'ok') : text(500, `internal server error: ${name} failed\n`);
}

function answerAll(checks: readonly HealthCheck[], what: string, query: ApiRequest['query']): ApiResponse {
  const excluded = new Set(query.getAll('exclude'));
  let isHealthy = true;
  let details = '';
  for (const { name, isHealthy: check } of checks) {
    if (excluded.has(name)) {
      details += `[+]${name} excluded: ok\n`;
    } else if (check()) {
      details += `[+]${name} ok\n`;
    } else {
      // Why is in the log: whoever asks here may be anyone.
      details += `[-]${name} failed: reason withheld\n`;
      isHealthy = false;
    }
  }
  if (!isHealthy) return text(500, `${details}${what} check failed\n`);
  return text(200, query.has('verbose') ? `${details}${what} check passed\n` : 'ok');
}

function text(status: number, body: string): ApiResponse {
  return {
    status,
    headers: { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' },
    body,
  };
}
