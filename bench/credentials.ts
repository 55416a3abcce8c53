import { readFileSync } from 'node:fs';
import type { Credentials } from './load-connection.ts';

/** What a kubeconfig that Godwit wrote says of the server, and of who may do everything there. */
export function credentialsIn(kubeconfig: string): Credentials {
  const text = readFileSync(kubeconfig, 'utf8');
  const value = (field: string): string => new RegExp(`${field}: (\\S+)`).exec(text)?.[1] ?? '';
  const pem = (field: string): string => Buffer.from(value(field), 'base64').toString('utf8');
  const { hostname, port } = new URL(value('server'));
  return {
    host: hostname,
    port: Number(port),
    ca: pem('certificate-authority-data'),
    certificate: pem('client-certificate-data'),
    key: pem('client-key-data'),
  };
}
