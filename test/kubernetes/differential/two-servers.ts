import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { accessIn } from '../../support/access.ts';
import type { Api } from '../../support/api.ts';
import { HERE } from '../../support/godwit.ts';
import { HttpClient } from '../../support/http-client.ts';
import { ControlPlane } from '../../support/kubernetes/control-plane.ts';
import { givenCluster } from '../../support/kubernetes/foreign-cluster.ts';

/** The two servers that are to answer alike, each reached as its administrator. */
export interface TwoServers {
  readonly embedded: Api;
  readonly real: Api;
  stop(): Promise<void>;
}

/** Starts the embedded API and a real one, unless there is one already. */
export async function twoServers(): Promise<TwoServers> {
  const directory = mkdtempSync(join(tmpdir(), 'godwit-test-'));
  const given = await givenCluster();
  const plane = given === undefined ? await ControlPlane.startIn(join(directory, 'kubernetes'), HERE) : undefined;
  const real = new HttpClient(accessIn(given ?? plane?.kubeconfig ?? ''));
  const embeddedDirectory = join(directory, 'embedded');
  const stopEmbedded = await startEmbedded(embeddedDirectory);
  const embedded = new HttpClient(accessIn(readFileSync(join(embeddedDirectory, 'kubeconfig'), 'utf8')));
  return {
    embedded,
    real,
    stop: async () => {
      real.close();
      embedded.close();
      await stopEmbedded();
      await plane?.stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** A `godwit up` that is the embedded one, whatever else the run is on. Answers what ends it. */
async function startEmbedded(directory: string): Promise<() => Promise<void>> {
  const main = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url));
  const args = [main, 'up', '--nodes', '0', '--data-dir', directory, '--listen', '127.0.0.1:0'];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  await new Promise<void>((resolve, reject) => {
    const take = (chunk: Buffer): void => {
      output += chunk;
      if (output.includes('Admin kubeconfig:')) resolve();
    };
    child.stdout.on('data', take);
    child.stderr.on('data', take);
    child.once('error', reject);
    child.once('exit', (code, signal) => reject(new Error(`godwit up ended with ${code ?? signal}:\n${output}`)));
  });
  return async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    await ended;
  };
}
