import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { accessIn } from '../access.ts';
import type { Anything } from '../api.ts';
import { runCli } from '../cli.ts';
import { eventually } from '../eventually.ts';
import { type Sign, signsOfLife } from '../guests.ts';
import { HttpClient } from '../http-client.ts';
import { Kubectl } from '../kubectl.ts';
import { oneLife, type Stay } from '../one-life.ts';
import { SerialKeeper } from '../serial-keeper.ts';
import type { ControlPlane } from './control-plane.ts';

const PATIENCE_MS = 180_000;
/** Below it each node has a directory of its own. */
export const NODES = 'nodes';

/** A cluster with a real control plane as its admin sees it, and what its guests say. */
export class AdministeredCluster {
  readonly directory: string;
  readonly api: HttpClient;
  readonly kubectl: Kubectl;
  readonly #serials: SerialKeeper;

  constructor(directory: string, { kubeconfig }: ControlPlane, api = new HttpClient(accessIn(kubeconfig))) {
    this.directory = directory;
    this.api = api;
    this.kubectl = new Kubectl(this.kubeconfig);
    writeFileSync(this.kubeconfig, kubeconfig, { mode: 0o600 });
    mkdirSync(this.nodesDirectory, { mode: 0o711, recursive: true });
    this.#serials = new SerialKeeper(this.nodesDirectory, join(directory, 'serials'));
  }

  get kubeconfig(): string {
    return join(this.directory, 'kubeconfig');
  }

  get nodesDirectory(): string {
    return join(this.directory, NODES);
  }

  /** Runs `godwit` as the admin, and expects success. */
  async cli(...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await runCli(args, { KUBECONFIG: this.kubeconfig });
    if (code !== 0) throw new Error(`godwit ${args.join(' ')} failed with ${code}:\n${stderr}${stdout}`);
    return stdout;
  }

  /** The pods of a component. */
  async podsOf(component: string): Promise<Anything[]> {
    const { items } = await this.kubectl.json(`get pods -n kubevirt -l kubevirt.io=${component}`);
    return items;
  }

  /** Waits until the guest runs and is heard, and answers a sign of life that came after the call. */
  async lives(name: string): Promise<Sign> {
    const before = new Map([...this.#serials.logs()].map(([uid, log]) => [uid, log.length]));
    return eventually(async () => {
      const { status } = await this.kubectl.json(`get vmi ${name}`);
      expect(status?.phase, JSON.stringify(status)).toBe('Running');
      const { podUID } = status.rightToRun.holder;
      const log = this.#serials.logs().get(podUID) ?? '';
      const sign = signsOfLife(log.slice(before.get(podUID) ?? 0)).at(-1);
      if (!sign) throw new Error(`${name} says nothing: ${log.slice(-500)}`);
      return sign;
    }, PATIENCE_MS);
  }

  /** Has a guest move, and answers where it was, one machine after the other, in the life that it had before. */
  async moves(name: string): Promise<Stay[]> {
    const { boot } = await this.lives(name);
    const { nodeName } = (await this.kubectl.json(`get vmi ${name}`)).status;
    await this.cli('migrate', name, '--watch');
    expect((await this.kubectl.json(`get vmi ${name}`)).status.nodeName).not.toBe(nodeName);
    return this.isStill(name, boot);
  }

  /** The guest goes on with the life that it had, whole; answers where it was. */
  async isStill(name: string, boot: string): Promise<Stay[]> {
    expect((await this.lives(name)).boot).toBe(boot);
    return eventually(async () => {
      const { podUID } = (await this.kubectl.json(`get vmi ${name}`)).status.rightToRun.holder;
      const stays = oneLife(boot, this.#serials.logs());
      // A first line stands alone, and is no stay yet.
      expect(stays.at(-1)?.place).toBe(podUID);
      return stays;
    }, PATIENCE_MS);
  }

  /** Looks no more. */
  close(): void {
    this.#serials.stop();
    this.api.close();
  }
}
