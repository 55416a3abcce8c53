import { createHash } from 'node:crypto';
import type { ApiRequest, ApiResponse } from '../http/message.ts';

/** A rendered document: bytes that many clients ask for, and the hash that lets them ask only once. */
export interface RenderedDocument {
  readonly bytes: Uint8Array;
  /** Upper-case hexadecimal SHA-512, as kube-apiserver has it; without quotes. */
  readonly hash: string;
}

/** Renders JSON, or takes bytes as they are. */
export function render(content: object | Uint8Array): RenderedDocument {
  const bytes = content instanceof Uint8Array ? content : Buffer.from(JSON.stringify(content));
  return { bytes, hash: createHash('sha512').update(bytes).digest('hex').toUpperCase() };
}

/** The document, or 304 if the client has it. */
export function respond(
  request: ApiRequest,
  document: RenderedDocument,
  headers: { readonly [name: string]: string },
): ApiResponse {
  const etag = `"${document.hash}"`;
  const all = { etag, vary: 'Accept', ...headers };
  const known = request.headers['if-none-match'];
  const isKnown = known?.split(',').some((each) => each.trim().replace(/^W\//, '') === etag) ?? false;
  return isKnown ? { status: 304, headers: all, body: '' } : { status: 200, headers: all, body: document.bytes };
}
