import { resolve } from 'node:path';
import type { ClusterAccess } from './cluster-access.ts';
import type { Fields } from './kubeconfig-fields.ts';
import type { KubeconfigPorts } from './kubeconfig-ports.ts';
import { RereadFile } from './reread-file.ts';

/** The `cluster` of a kubeconfig: where the server is, and how it is recognised. */

/** An entry, and the directory that relative paths in it begin at. */
export interface Entry {
  readonly fields: Fields;
  readonly directory: string;
}

/** What of the access is about the server. */
export type Place = Pick<ClusterAccess, 'server' | 'serverName' | 'isInsecure' | 'authorities'>;

/** Throws KubeconfigError. The authorities' file has been read when it resolves. */
export async function placeOf({ fields: entry, directory }: Entry, ports: KubeconfigPorts): Promise<Place> {
  const fields = entry.object('cluster');
  const server = fields.requiredText('server');
  if (!URL.canParse(server) || new URL(server).protocol !== 'https:')
    throw fields.error('server', `is ${JSON.stringify(server)}, which is no https URL`);
  if (fields.has('proxy-url')) throw fields.error('proxy-url', 'is set, but proxies are not supported');
  const isInsecure = fields.flag('insecure-skip-tls-verify');
  const inline = fields.pem('certificate-authority-data');
  const path = fields.text('certificate-authority');
  if (isInsecure && (inline !== undefined || path !== undefined))
    throw fields.error('insecure-skip-tls-verify', 'is true although a certificate authority is given');
  const file = path === undefined ? undefined : fileOf(fields, 'certificate-authority', directory, ports);
  const authorities = async (): Promise<string | undefined> => inline ?? file?.text();
  await authorities();
  const serverName = fields.text('tls-server-name');
  return { server, isInsecure, authorities, ...(serverName === undefined ? {} : { serverName }) };
}

/** What a program is told about the cluster. */
export async function clusterInfo({ fields: entry }: Entry, place: Place): Promise<object> {
  const fields = entry.object('cluster');
  const extension = fields
    .list('extensions')
    .find((each) => each.text('name') === 'client.authentication.k8s.io/exec')
    ?.raw('extension');
  const authorities = await place.authorities();
  return {
    server: place.server,
    ...(place.serverName === undefined ? {} : { 'tls-server-name': place.serverName }),
    ...(place.isInsecure ? { 'insecure-skip-tls-verify': true } : {}),
    ...(authorities === undefined ? {} : { 'certificate-authority-data': Buffer.from(authorities).toString('base64') }),
    ...(extension === undefined ? {} : { config: extension }),
  };
}

/** The file that a field names, relative to the kubeconfig's directory; undefined where it names none. */
export function fileOf(
  fields: Fields,
  name: string,
  directory: string,
  ports: KubeconfigPorts,
): RereadFile | undefined {
  const path = fields.text(name);
  // What is given in the kubeconfig itself goes before what is in a file.
  if (path === undefined || fields.has(`${name}-data`)) return undefined;
  return new RereadFile(ports, resolve(directory, path), `${fields.where}.${name}`);
}
