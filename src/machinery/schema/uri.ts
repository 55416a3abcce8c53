/** URIs as Go's url.ParseRequestURI reads them: absolute, or an absolute path. */

export interface RequestUri {
  readonly scheme: string;
  /** With brackets around IPv6 and with the port. */
  readonly host: string;
  readonly hostname: string;
  readonly port: string;
  /** Still percent-encoded. */
  readonly path: string;
  readonly query: string;
}

const SCHEME = /^[a-zA-Z][a-zA-Z0-9+.-]*$/;
const BAD_ESCAPE = /%(?![0-9a-fA-F]{2})/;
const HOST = /^(?:[a-zA-Z0-9._~!$&'()*+,;=:%<>"-]|\P{ASCII})*$/u;

/** Parses an absolute URI or path; undefined where Go would give an error. */
export function parseRequestUri(text: string): RequestUri | undefined {
  if (text === '' || hasControl(text)) return undefined;
  if (text === '*') return { scheme: '', host: '', hostname: '', port: '', path: '*', query: '' };
  const colon = text.indexOf(':');
  const slash = text.search(/[/?#]/);
  const hasScheme = colon > 0 && (slash < 0 || colon < slash) && SCHEME.test(text.slice(0, colon));
  if (!hasScheme && !text.startsWith('/')) return undefined;
  const scheme = hasScheme ? text.slice(0, colon).toLowerCase() : '';
  const [beforeQuery, query] = cut(hasScheme ? text.slice(colon + 1) : text, '?');
  if (!beforeQuery.startsWith('/')) {
    // An opaque URI such as mailto:x, which is absolute.
    return { scheme, host: '', hostname: '', port: '', path: '', query };
  }
  if (!hasScheme || !beforeQuery.startsWith('//')) return finish(scheme, '', beforeQuery, query);
  const rest = beforeQuery.slice(2);
  const end = rest.indexOf('/');
  const authority = end < 0 ? rest : rest.slice(0, end);
  return finish(scheme, authority, end < 0 ? '' : rest.slice(end), query);
}

function finish(scheme: string, authority: string, path: string, query: string): RequestUri | undefined {
  if (BAD_ESCAPE.test(path)) return undefined;
  const at = authority.lastIndexOf('@');
  const host = at < 0 ? authority : authority.slice(at + 1);
  const split = splitPort(host);
  if (!split) return undefined;
  return { scheme, host, hostname: split[0], port: split[1], path, query };
}

function splitPort(host: string): [hostname: string, port: string] | undefined {
  if (host.startsWith('[')) {
    const close = host.lastIndexOf(']');
    if (close < 0) return undefined;
    const port = host.slice(close + 1);
    if (!/^(:[0-9]*)?$/.test(port)) return undefined;
    return [host.slice(1, close), port.slice(1)];
  }
  const colon = host.lastIndexOf(':');
  const hostname = colon < 0 ? host : host.slice(0, colon);
  const port = colon < 0 ? '' : host.slice(colon + 1);
  if (!/^[0-9]*$/.test(port) || !HOST.test(hostname) || BAD_ESCAPE.test(hostname)) return undefined;
  return [hostname, port];
}

function cut(text: string, separator: string): [string, string] {
  const index = text.indexOf(separator);
  return index < 0 ? [text, ''] : [text.slice(0, index), text.slice(index + 1)];
}

function hasControl(text: string): boolean {
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code < 0x20 || code === 0x7f) return true;
  }
  return false;
}
