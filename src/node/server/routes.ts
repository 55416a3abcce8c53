import { type ApiError, badRequest, methodNotAllowed, pathNotFound } from '../../api/status.ts';
import { unreachable } from '../../api/unreachable.ts';
import type { LogOptions } from './serial-log-stream.ts';

/** What the agent's server is asked for: virt-handler's paths for guests, a kubelet's for pods. */

/** What can be done to a guest by asking once. */
export type GuestAction = 'pause' | 'unpause' | 'softreboot' | 'reset';

export type Route =
  | { readonly kind: 'health' }
  | { readonly kind: 'metrics' }
  | { readonly kind: 'action'; readonly action: GuestAction; readonly namespace: string; readonly name: string }
  | { readonly kind: 'console'; readonly namespace: string; readonly name: string }
  | { readonly kind: 'guestInfo'; readonly namespace: string; readonly name: string }
  | { readonly kind: 'runs'; readonly namespace: string; readonly name: string }
  | {
      readonly kind: 'log';
      readonly namespace: string;
      readonly name: string;
      /** The launcher pod whose run it is; all runs where undefined. */
      readonly run: string | undefined;
      readonly options: LogOptions;
    }
  | {
      readonly kind: 'containerLog';
      readonly namespace: string;
      readonly pod: string;
      readonly container: string;
      readonly options: LogOptions;
    };

const ACTIONS: ReadonlySet<string> = new Set<GuestAction>(['pause', 'unpause', 'softreboot', 'reset']);

/** Which it is. Throws an ApiError for what is none, or is asked for in a wrong way. */
export function routeOf(method: string, url: string): Route {
  const [path = '', query = ''] = url.split('?', 2);
  const segments = path.split('/').slice(1).map(decoded);
  const parameters = new URLSearchParams(query);
  const [first, ...rest] = segments;
  if (first === 'v1') return guestRoute(method, rest, parameters);
  if (first === 'containerLogs' && rest.length === 3) {
    only(method, 'GET');
    const [namespace = '', pod = '', container = ''] = rest;
    return { kind: 'containerLog', namespace, pod, container, options: containerLogOptions(parameters, container) };
  }
  if (segments.length === 1 && (first === 'healthz' || first === 'metrics')) {
    only(method, 'GET');
    return { kind: first === 'healthz' ? 'health' : 'metrics' };
  }
  throw pathNotFound();
}

function guestRoute(method: string, segments: readonly string[], parameters: URLSearchParams): Route {
  const [namespaces, namespace = '', plural, name = '', verb = ''] = segments;
  const isGuest = namespaces === 'namespaces' && plural === 'virtualmachineinstances' && segments.length === 5;
  if (!isGuest) throw pathNotFound();
  if (isAction(verb)) {
    only(method, 'PUT');
    return { kind: 'action', action: verb, namespace, name };
  }
  const isRead = verb === 'console' || verb === 'log' || verb === 'guestosinfo' || verb === 'runs';
  if (!isRead) throw pathNotFound();
  only(method, 'GET');
  switch (verb) {
    case 'console':
    case 'runs':
      return { kind: verb, namespace, name };
    case 'guestosinfo':
      return { kind: 'guestInfo', namespace, name };
    case 'log': {
      const run = parameters.get('run') || undefined;
      // A run is one of several that are put together, of which the next may go on in the same line.
      const offset = run === undefined ? undefined : count(parameters, 'offset', 0);
      const options = { ...logOptions(parameters), isVerbatim: run !== undefined, offset };
      if (offset !== undefined && options.tailLines !== undefined)
        throw badRequest('offset and tailLines do not go together');
      return { kind: 'log', namespace, name, run, options };
    }
    default:
      return unreachable(verb);
  }
}

function isAction(verb: string): verb is GuestAction {
  return ACTIONS.has(verb);
}

function only(method: string, allowed: string): void {
  if (method !== allowed) throw methodNotAllowed();
}

/** A segment of a path; nothing here has a name that is empty or leads elsewhere. */
function decoded(segment: string): string {
  let text: string;
  try {
    text = decodeURIComponent(segment);
  } catch (error) {
    throw badRequest('the path is not encoded as paths are', error);
  }
  if (text === '' || text === '.' || text === '..' || /[/\0]/.test(text)) throw pathNotFound();
  return text;
}

function logOptions(parameters: URLSearchParams): LogOptions {
  return {
    follow: flag(parameters, 'follow'),
    tailLines: count(parameters, 'tailLines', 0),
    limitBytes: count(parameters, 'limitBytes', 1),
    isVerbatim: false,
  };
}

/** What kubelets take, less what a serial port does not know. */
function containerLogOptions(parameters: URLSearchParams, container: string): LogOptions {
  if (flag(parameters, 'previous'))
    throw badRequest(`previous terminated container "${container}" not found: launchers are started once`);
  for (const name of ['sinceSeconds', 'sinceTime', 'timestamps'])
    if ((parameters.get(name) ?? 'false') !== 'false')
      throw badRequest(`${name} cannot be had: a serial port does not say when it said something`);
  return logOptions(parameters);
}

function flag(parameters: URLSearchParams, name: string): boolean {
  const value = parameters.get(name);
  if (value === null || value === 'false' || value === '0') return false;
  if (value === '' || value === 'true' || value === '1') return true;
  throw invalid(name, value, 'true or false');
}

function count(parameters: URLSearchParams, name: string, min: number): number | undefined {
  const value = parameters.get(name);
  if (value === null || value === '') return undefined;
  const number = /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN;
  if (!(number >= min)) throw invalid(name, value, `a whole number, ${min} or more`);
  return number;
}

function invalid(name: string, value: string, wanted: string): ApiError {
  return badRequest(`${name} is ${JSON.stringify(value.slice(0, 50))}, which is not ${wanted}`);
}
