import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AGENT_KEYS_ANNOTATION, agentKeysText } from '../../src/api/kubevirt/agent-keys.ts';
import type { JsonObject, KubeObject } from '../../src/api/meta.ts';
import { realDiskFiles } from '../../src/env/real-disk-files.ts';
import { realDurableFile } from '../../src/env/real-durable-file.ts';
import { realFiles } from '../../src/env/real-files.ts';
import { realEnv } from '../../src/env/real.ts';
import { restrictNodes } from '../../src/extension/webhooks/node-restriction.ts';
import { ramBytesFor } from '../../src/hypervisor/qemu/ram-size.ts';
import { runFiles } from '../../src/hypervisor/qemu/run-files.ts';
import { Client } from '../../src/kube/client.ts';
import { InProcessTransport } from '../../src/kube/in-process-transport.ts';
import { virtualMachineInstances } from '../../src/kube/kubevirt-resources.ts';
import { Manager } from '../../src/kube/manager.ts';
import type { Transport, TransportRequest } from '../../src/kube/transport.ts';
import { applyMergePatch } from '../../src/machinery/patch/merge-patch.ts';
import { createAuthority, DAY_MS, issueIdentity } from '../../src/machinery/x509/authority.ts';
import { Agent } from '../../src/node/agent.ts';
import { keyPin } from '../../src/node/identity/key-pin.ts';
import { ImageStore } from '../../src/node/images/image-store.ts';
import { machineSpec } from '../../src/node/machine/machine-spec.ts';
import { MigrationCertificates } from '../../src/node/migrations/certificates.ts';
import { HttpsPeers } from '../../src/node/migrations/https-peers.ts';
import { SocketRelays } from '../../src/node/migrations/socket-relays.ts';
import { AgentServer } from '../../src/node/server/agent-server.ts';
import { diskBytesOf } from '../../src/node/volumes/disk-size.ts';
import { ImageStampFiles } from '../../src/node/volumes/image-stamp-files.ts';
import { NodeVolumes } from '../../src/node/volumes/node-volumes.ts';
import type { InProcessApi } from '../support/in-process.ts';
import { UNPRIVILEGED, Workbench } from '../support/qemu.ts';
import { nodes } from './agent-scene.ts';

const env = realEnv('silent');
const { signal } = new AbortController();
const HOST = '127.0.0.1';
const PROBE = 'mib=8 tick=20 hz=200 rate=10 dms=5';

/** Somebody who may do everything. */
export function adminOf(api: InProcessApi): Client {
  const identity = { user: 'admin', groups: ['system:masters'] };
  return new Client(new InProcessTransport((request) => api.core.handle(request), identity), 'test');
}

/**
 * The agent of one node, on a real disk and real QEMUs, with a certificate that nobody else's authority has signed, and
 * with the rights of its node: what the webhook would refuse is remembered.
 */
export class AcrossAgent {
  readonly node: string;
  /** What the node wrote, and may not. */
  readonly refused: readonly string[];
  /** How often it was looked at what it wrote. */
  readonly judged: readonly string[];
  readonly #directory: string;
  readonly #stop: () => Promise<void>;

  private constructor(node: string, directory: string, { refused, judged }: Verdicts, stop: () => Promise<void>) {
    this.node = node;
    [this.refused, this.judged] = [refused, judged];
    this.#directory = directory;
    this.#stop = stop;
  }

  static async start(api: InProcessApi, bench: Workbench, node: string): Promise<AcrossAgent> {
    const directory = join(bench.directory, node);
    await realDiskFiles.makeDirectory(directory, { mode: 0o711 });
    const authority = await createAuthority(env, `cluster of ${node}`);
    const names = { commonName: `system:node:${node}`, organizations: ['system:nodes'], validityMs: DAY_MS };
    const shown = await issueIdentity(authority, { ...names, usages: ['client'] });
    const serving = await issueIdentity(authority, { ...names, dnsNames: [node], usages: ['server'] });
    const pins = [shown, serving].map(({ certificatePem }) => keyPin(new X509Certificate(certificatePem)));
    const annotations = { [AGENT_KEYS_ANNOTATION]: agentKeysText(pins) };
    await adminOf(api).create(nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name: node, annotations } }, signal);
    const verdicts: Verdicts = { refused: [], judged: [] };
    const identity = { user: `system:node:${node}`, groups: ['system:nodes'] };
    const inner = new InProcessTransport((request) => api.core.handle(request), identity);
    const client = new Client(watched(inner, adminOf(api), identity, verdicts), 'agent');
    let server: AgentServer | undefined;
    const images = new ImageStore({ directory: join(directory, 'images'), files: realDiskFiles, ...env });
    const stamps = new ImageStampFiles({ files: realDiskFiles, directory: join(directory, 'stamps') });
    const { version } = bench;
    const access = {
      authorities: async () => authority.certificatePem,
      credentials: async () => ({ certificate: shown.certificatePem, key: shown.keyPem }),
    };
    const agent = new Agent({
      env,
      client,
      nodeName: node,
      hypervisor: Workbench.hypervisor(version),
      volumes: new NodeVolumes({ client, files: realDiskFiles, images, reservedDirectories: [directory], stamps }),
      stamps,
      specOf: (guest, volumes) => {
        const kernel = { path: join(bench.directory, 'probe.elf'), commandLine: PROBE };
        return machineSpec(guest, { ...volumes, kernel }, new Map(), { version, accelerator: 'tcg' });
      },
      journal: realDurableFile(join(directory, 'journal')),
      files: realDiskFiles,
      directory,
      ...(UNPRIVILEGED ? { user: UNPRIVILEGED } : {}),
      migration: {
        peers: new HttpsPeers({ access, clock: env.clock }),
        address: () => (server ? { address: HOST, port: server.port } : undefined),
        host: HOST,
        credentials: new MigrationCertificates({
          env,
          files: { ...realDiskFiles, ...realFiles },
          directory: join(directory, 'migrations'),
          user: UNPRIVILEGED,
        }),
        relays: new SocketRelays({ ...env, user: UNPRIVILEGED }),
        cpus: 2,
        ramBytesOf: ({ memoryBytes }) => ramBytesFor(memoryBytes, version, 'tcg'),
        diskBytesOf: (disk) => diskBytesOf(realDiskFiles, disk),
      },
    });
    server = await AgentServer.listen({
      env,
      client,
      node,
      guests: agent.access,
      peers: agent.peers,
      isAwaited: agent.isAwaited,
      certificate: { current: serving, onChange: () => undefined },
      clientAuthorities: async () => authority.certificatePem,
      metrics: async () => '',
      host: HOST,
      port: 0,
    });
    const stopping = new AbortController();
    const running = new Manager({ env, name: node }).add(server, ...agent.services).run(stopping.signal);
    running.catch(() => undefined);
    const stop = async (): Promise<void> => {
      stopping.abort();
      await running;
    };
    return new AcrossAgent(node, directory, verdicts, stop);
  }

  /** All that a guest has said in this pod. */
  serialLog(podUID: string): string {
    return readFileSync(runFiles(join(this.#directory, 'runs', podUID)).serialLog, 'utf8');
  }

  /** What was made for a volume of this pod. */
  image(podUID: string, file: string): Buffer {
    return readFileSync(join(this.#directory, 'pods', podUID, file));
  }

  stop(): Promise<void> {
    return this.#stop();
  }
}

/** What the webhook would have said. */
interface Verdicts {
  readonly refused: string[];
  readonly judged: string[];
}

/** Shows what a node writes of guests to the webhook that would be asked, were it here. */
function watched(
  inner: Transport,
  admin: Client,
  userInfo: { user: string; groups: string[] },
  { refused, judged }: Verdicts,
): Transport {
  const webhook = restrictNodes({ unheard: () => [] });
  const guestIn = ({ method, path }: TransportRequest): readonly [string, string] | undefined => {
    const [, namespace, name] = /\/namespaces\/([^/]+)\/virtualmachineinstances\/([^/]+)\/status/.exec(path) ?? [];
    return method === 'PATCH' && namespace && name ? [namespace, name] : undefined;
  };
  return {
    close: () => inner.close(),
    send: async (request) => {
      const guest = guestIn(request);
      const before = guest && (await admin.get(virtualMachineInstances, ...guest, signal));
      const answer = await inner.send(request);
      const patch = JSON.parse(request.body ?? '{}') as JsonObject;
      const isOfThat =
        (patch['metadata'] as JsonObject | undefined)?.['resourceVersion'] === before?.metadata.resourceVersion;
      if (!before || answer.status !== 200 || !isOfThat) return answer;
      const verdict = await webhook(
        {
          uid: 'u',
          operation: 'UPDATE',
          resource: { group: 'kubevirt.io', version: 'v1', resource: 'virtualmachineinstances' },
          subResource: 'status',
          userInfo: { username: userInfo.user, groups: userInfo.groups },
          object: applyMergePatch(before as unknown as JsonObject, patch) as unknown as KubeObject,
          oldObject: before,
        },
        signal,
      );
      refused.push(...(verdict.allowed ? [] : [`${verdict.status.message ?? ''}: ${request.body ?? ''}`]));
      judged.push(request.path);
      return answer;
    },
  };
}
