import { mkdirSync } from 'node:fs';
import { get as getHttp } from 'node:http';
import { get as getHttps } from 'node:https';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Anything, Api } from '../../api.ts';
import { KeptProcess } from '../kept-process.ts';
import type { PodNetwork, PodPlace } from './pod-network.ts';
import { writeVolume } from './pod-volumes.ts';

const root = fileURLToPath(new URL('../../../..', import.meta.url));
/** Where a pod finds what its image would have: Node, and this package. */
const [PROGRAMS, PACKAGE] = ['/run/bin', '/run/godwit'];
const PROBE_TIMEOUT_MS = 5000;

/**
 * Run by root in a mount namespace of its own: from the mounts of a pod, its user and group, and its command to what a container
 * would have. Its files are this machine's, which it can only read; `/run`, where mounts go, is its own.
 */
const CONTAINER = `
  set -e
  root=$1 node=$2 user=$3 group=$4 mounts=$5
  shift 5
  mount -t tmpfs -o mode=755 tmpfs /run
  mkdir ${PROGRAMS} ${PACKAGE}
  mount --bind "$root" ${PACKAGE}
  touch ${PROGRAMS}/node
  mount --bind "$node" ${PROGRAMS}/node
  ln -s ${PACKAGE}/dist/cli/main.js ${PROGRAMS}/godwit
  for each in $mounts; do
    mkdir -p "\${each#*:}"
    mount --bind "\${each%%:*}" "\${each#*:}"
  done
  mount -o remount,bind,ro /
  cd /
  exec setpriv --reuid "$user" --regid "$group" --clear-groups --no-new-privs --bounding-set -all --inh-caps -all \\
    env -i PATH=${PROGRAMS}:/usr/bin:/bin HOME=/ "$@"`;

export interface PodProcessOptions {
  /** An admin's. */
  readonly api: Api;
  readonly network: PodNetwork;
  /** Where the API server is. */
  readonly server: URL;
  /** The pod's own, on this machine. */
  readonly directory: string;
}

/** The one container of a pod, as a process of this machine, with the pod's account, arguments, volumes, user, name and address. */
export class PodProcess {
  readonly place: PodPlace;
  readonly #pod: Anything;
  readonly #process: KeptProcess;

  private constructor(pod: Anything, place: PodPlace, process: KeptProcess) {
    this.#pod = pod;
    this.place = place;
    this.#process = process;
  }

  static async start(pod: Anything, { api, network, server, directory }: PodProcessOptions): Promise<PodProcess> {
    const { containers, volumes = [], securityContext } = pod.spec;
    const [container, ...others] = containers;
    if (others.length > 0) throw new Error('the stand-in runs pods of one container');
    mkdirSync(directory, { recursive: true, mode: 0o711 });
    const mounts: string[] = [];
    for (const { name, mountPath } of container.volumeMounts ?? []) {
      const below = join(directory, name);
      await writeVolume(
        api,
        pod,
        volumes.find((each: Anything) => each.name === name),
        below,
      );
      mounts.push(`${below}:${mountPath}`);
    }
    const place = await network.place(pod.metadata.name);
    const { runAsUser, runAsGroup } = securityContext;
    const environment = { KUBERNETES_SERVICE_HOST: server.hostname, KUBERNETES_SERVICE_PORT: server.port };
    const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
    const command = [...variables, ...container.command, ...(container.args ?? [])];
    const settings = [root, process.execPath, String(runAsUser), String(runAsGroup), mounts.join(' ')];
    const kept = new KeptProcess({
      command: 'unshare',
      args: ['--mount', 'sh', '-c', CONTAINER, 'sh', ...settings, ...command],
      outputPath: join(directory, 'output.log'),
      wrap: place.namespace.wrap,
    });
    kept.start();
    return new PodProcess(pod, place, kept);
  }

  get output(): string {
    return this.#process.output();
  }

  /** How often it has ended by itself, and was started again. */
  get restarts(): number {
    return this.#process.restarts;
  }

  /** What the readiness probe of its pod says. */
  async isReady(): Promise<boolean> {
    const [{ readinessProbe, ports }] = this.#pod.spec.containers;
    const { path, port, scheme = 'HTTP' } = readinessProbe.httpGet;
    const { containerPort } = ports.find(({ name }: Anything) => name === port);
    const get = scheme === 'HTTPS' ? getHttps : getHttp;
    const url = `${scheme.toLowerCase()}://${this.place.address}:${containerPort}${path}`;
    return new Promise((resolve) => {
      // Kubelets do not look at certificates either.
      const request = get(url, { rejectUnauthorized: false, timeout: PROBE_TIMEOUT_MS, agent: false }, (response) => {
        response.resume();
        resolve(response.statusCode === 200);
      });
      request.once('timeout', () => request.destroy(new Error('it does not answer')));
      request.once('error', () => resolve(false));
    });
  }

  /** kill -9, and nobody starts it again, as if it had crashed too often already. */
  async crash(): Promise<void> {
    await this.#process.kill();
  }

  /** SIGTERM, and after the pod's grace period SIGKILL. */
  async end(): Promise<void> {
    await this.#process.terminate(1000 * this.#pod.spec.terminationGracePeriodSeconds);
    this.place.namespace.release();
  }
}
