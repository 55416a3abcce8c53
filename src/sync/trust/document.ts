import type { X509Certificate } from 'node:crypto';
import { stringify } from 'yaml';
import { decodeYaml } from '../../machinery/decode.ts';
import { bundleText, isClusterId, parseBundle } from './bundle.ts';
import { isPeerName } from './objects.ts';

/** What a cluster says of itself to another one, as a file that somebody carries from here to there. Nothing in it is secret. */
export interface TrustDocument {
  readonly clusterId: string;
  /** What it calls itself; the other side may call it otherwise. */
  readonly name: string;
  readonly authorities: readonly X509Certificate[];
}

const API_VERSION = 'godwit.io/v1';
const KIND = 'ClusterTrust';

/** More than a bundle and its surroundings never is. */
export const DOCUMENT_BYTES_MAX = 64 * 1024;

/** The document as YAML. */
export function formatDocument({ clusterId, name, authorities }: TrustDocument): string {
  const bundle = bundleText(authorities);
  return stringify({ apiVersion: API_VERSION, kind: KIND, clusterId, name, bundle }, { lineWidth: 0 });
}

/** The document in YAML or JSON. Throws an error that says why it is none. */
export function parseDocument(bytes: Uint8Array): TrustDocument {
  if (bytes.length > DOCUMENT_BYTES_MAX) throw new Error(`it is larger than ${DOCUMENT_BYTES_MAX} bytes`);
  const { value } = decodeYaml(bytes);
  const fields = typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
  const text = (key: string): string => {
    const field = Object.hasOwn(fields, key) ? fields[key] : undefined;
    return typeof field === 'string' ? field : '';
  };
  if (text('apiVersion') !== API_VERSION || text('kind') !== KIND)
    throw new Error(`it is no ${KIND} of ${API_VERSION}, which 'godwit trust export' prints`);
  const [clusterId, name] = [text('clusterId'), text('name')];
  if (!isClusterId(clusterId)) throw new Error('its clusterId is none');
  if (!isPeerName(name)) throw new Error('its name is none: small letters, digits, dots and dashes, at most 63');
  return { clusterId, name, authorities: parseBundle(text('bundle')) };
}
