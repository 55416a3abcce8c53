import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { WebSocket } from 'ws';
import { holderOf, synchronizationBelow } from '../../src/cli/data-directory.ts';
import type { Anything } from './api.ts';
import { type Finished, runCli, type Running, startCli } from './cli.ts';
import { eventually } from './eventually.ts';
import { Godwit, type Place } from './godwit.ts';
import { IMAGES } from './guest-manifests.ts';
import { assertNeverDoubled, linuxGuest, probeGuest, type Sign, signsOfLife } from './guests.ts';
import { HttpClient } from './http-client.ts';
import { Kubectl } from './kubectl.ts';
import { passageDirectory } from './passage.ts';
import { commandLineOf, processesIn } from './processes-in.ts';
import { killHolder, replaceHolder } from './replace-holder.ts';
import { say } from './say.ts';
import { SerialKeeper } from './serial-keeper.ts';

/** How long anything may take that a machine under load does: a Linux that is translated takes its time to boot. */
const PATIENCE_MS = 60_000;
/** What those print that came in the place of who was killed, in its directory. */
const REPLACEMENT_LOG = 'replacement.log';

const KUBEVIRT = '/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt';
const GROUPS: Readonly<Record<string, string>> = {
  VirtualMachine: '/apis/kubevirt.io/v1',
  VirtualMachineInstance: '/apis/kubevirt.io/v1',
  PersistentVolumeClaim: '/api/v1',
  ConfigMap: '/api/v1',
  Secret: '/api/v1',
};

export type PowerAction = 'start' | 'stop' | 'restart';

export interface VirtualMachinesOptions {
  readonly nodes?: number;
  readonly linux?: boolean;
  /** Where the cluster lives; here where absent. */
  readonly place?: Place;
}

/** `godwit up` with its nodes on this machine, real guests in its image store, and a look at all that runs there. */
export class VirtualMachines {
  readonly godwit: Godwit;
  readonly kubectl: Kubectl;
  readonly api: HttpClient;
  readonly #directory: string;
  readonly #serials: SerialKeeper;
  /** Where machines are that have left the namespace that all are made in. */
  readonly #namespaces = new Map<string, string>();

  private constructor(directory: string, godwit: Godwit) {
    this.#directory = directory;
    this.godwit = godwit;
    this.kubectl = new Kubectl(godwit.kubeconfig);
    this.api = new HttpClient(godwit.access());
    this.#serials = new SerialKeeper(join(godwit.directory, 'nodes'), join(directory, 'serials'));
  }

  /** Starts everything; returns once all nodes can run guests. */
  static async start(options: VirtualMachinesOptions = {}): Promise<VirtualMachines> {
    const { nodes = 2, linux = false, place } = options;
    const directory = passageDirectory();
    const args = [join(directory, 'd'), '--nodes', String(nodes)] as const;
    const godwit = await (place ? Godwit.startAt(place, ...args) : Godwit.startIn(...args));
    const machines = new VirtualMachines(directory, godwit);
    const kernel = probeGuest(directory);
    await machines.importImage(IMAGES.probe, '--kernel', kernel);
    await machines.importImage(IMAGES.probeDisk, join(directory, 'probe.img'));
    if (linux) {
      const guest = linuxGuest(directory);
      await machines.importImage(IMAGES.linux, '--kernel', guest.kernel, '--initrd', guest.initrd);
    }
    await machines.nodesAreReady(nodes);
    return machines;
  }

  async importImage(name: string, ...args: readonly string[]): Promise<void> {
    await this.cli('image', 'import', name, ...args);
  }

  nodesAreReady(count: number): Promise<void> {
    return eventually(async () => {
      const { items } = (await this.api.request('GET', '/api/v1/nodes')).expect(200).json;
      expect(items.filter((node: Anything) => conditionOf(node, 'Ready')?.status === 'True')).toHaveLength(count);
    }, PATIENCE_MS);
  }

  /** Runs the command in the same directory, and expects success. */
  async cli(...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await this.runCli(...args);
    if (code !== 0) throw new Error(`godwit ${args.join(' ')} failed with ${code}:\n${stderr}${stdout}`);
    return stdout;
  }

  runCli(...args: readonly string[]): Promise<Finished> {
    return runCli(args, this.#environment());
  }

  startCli(...args: readonly string[]): Running {
    return startCli(args, this.#environment());
  }

  async create(...objects: readonly object[]): Promise<void> {
    for (const object of objects as Anything[])
      (await this.api.request('POST', pathOf(object.kind, object.metadata.namespace), { body: object })).expect(201);
  }

  /** The namespace in which the machine of this name is meant. */
  namespaceOf(name: string): string {
    return this.#namespaces.get(name) ?? 'default';
  }

  /** From now on the machine of this name is the one in this namespace. */
  isIn(name: string, namespace: string): void {
    this.#namespaces.set(name, namespace);
  }

  /** The machine, or undefined. */
  machine(name: string): Promise<Anything> {
    return this.#find('VirtualMachine', name);
  }

  /** The guest, or undefined. */
  guest(name: string): Promise<Anything> {
    return this.#find('VirtualMachineInstance', name);
  }

  /** Waits until the guest is in this phase. */
  async reaches(name: string, phase: string): Promise<Anything> {
    return eventually(async () => {
      const guest = await this.guest(name);
      expect(guest?.status?.phase, JSON.stringify(guest?.status)).toBe(phase);
      return guest;
    }, PATIENCE_MS);
  }

  /** Waits until the machine's state is this word. */
  async isSaidToBe(name: string, word: string): Promise<Anything> {
    return eventually(async () => {
      const machine = await this.machine(name);
      expect(machine?.status?.printableStatus, JSON.stringify(machine?.status)).toBe(word);
      return machine;
    }, PATIENCE_MS);
  }

  /** Waits until there is no such guest. */
  async isGone(name: string): Promise<void> {
    await eventually(async () => expect(await this.guest(name)).toBeUndefined(), PATIENCE_MS);
  }

  /** Waits until the guest runs and is heard, and answers a sign of life that came after the call. */
  async lives(name: string): Promise<Sign> {
    const before = new Map<string, number>();
    return eventually(async () => {
      const guest = await this.guest(name);
      expect(guest?.status?.phase, JSON.stringify(guest?.status)).toBe('Running');
      const { uid } = guest.metadata;
      const signs = this.signs(guest);
      if (!before.has(uid)) before.set(uid, signs.length);
      expect(signs.length, this.serial(guest).slice(-500)).toBeGreaterThan(before.get(uid) ?? 0);
      return signs.at(-1) as Sign;
    }, PATIENCE_MS);
  }

  /** Waits until another guest lives in the place of this one. */
  async livesAnew(name: string, before: Anything): Promise<Sign> {
    await eventually(async () => {
      const { uid } = (await this.guest(name))?.metadata ?? {};
      expect(uid).toEqual(expect.any(String));
      expect(uid).not.toBe(before.metadata.uid);
    }, PATIENCE_MS);
    return this.lives(name);
  }

  /** What the guest has said on its serial port, on every node that it ran on. */
  serial(guest: Anything): string {
    const logs = this.#serials.logs();
    return Object.keys(guest.status?.activePods ?? {})
      .map((podUID) => logs.get(podUID) ?? '')
      .join('');
  }

  /** Everything that was said on this host, by the pod that ran the guest. */
  logs(): Map<string, string> {
    return this.#serials.logs();
  }

  signs(guest: Anything): Sign[] {
    return signsOfLife(this.serial(guest));
  }

  /** Waits until the guest says something, and answers the line. */
  async says(guest: Anything, pattern: RegExp): Promise<string> {
    return eventually(() => {
      const found = pattern.exec(this.serial(guest));
      expect(found, `${pattern} in ${this.serial(guest).slice(-2000)}`).not.toBeNull();
      return found?.[0] ?? '';
    }, PATIENCE_MS);
  }

  /** No guest ever ran twice at once, of all that this host has seen. */
  assertNeverDoubled(): number {
    return assertNeverDoubled([...this.#serials.logs().values()]);
  }

  /** Sends a command to a guest's console, and answers the line that begins with `answer`. */
  async ask(name: string, command: string): Promise<string> {
    return (await this.hear(name, command)).at(-1) ?? '';
  }

  /** Sends a command to a guest's console, and answers every whole line up to the one that begins with `answer`. */
  async hear(name: string, command: string): Promise<string[]> {
    return this.#converse(name, command, /^answer .*\r?\n/m);
  }

  /** Has the guest turn itself off. */
  async shutDownFromInside(name: string): Promise<void> {
    await this.#converse(name, 'poweroff', /power=off/);
  }

  /** Says something on the console once the guest was heard there, and answers all lines until it said something. */
  async #converse(name: string, command: string, until: RegExp): Promise<string[]> {
    const { url, ca, certificate: cert, key } = this.godwit.access();
    const path = `${this.#subresources(name)}/virtualmachineinstances/${name}/console`;
    const socket = new WebSocket(`${url.replace('https', 'wss')}${path}`, ['plain.kubevirt.io'], { ca, cert, key });
    let heard = '';
    socket.on('message', (data) => (heard += (data as Buffer).toString('latin1')));
    try {
      await once(socket, 'open');
      await eventually(() => expect(heard).toContain('guest boot='), PATIENCE_MS);
      socket.send(Buffer.from(`${command}\r`));
      return await eventually(() => {
        const found = until.exec(heard);
        expect(found, heard.slice(-500)).not.toBeNull();
        return heard
          .slice(0, (found?.index ?? 0) + (found?.[0].length ?? 0))
          .split(/\r?\n/)
          .filter((line) => line !== '');
      }, PATIENCE_MS);
    } finally {
      socket.terminate();
    }
  }

  /** Asks for a change by the aggregated API. */
  async power(name: string, action: PowerAction, body: object = {}): Promise<void> {
    const path = `${this.#subresources(name)}/virtualmachines/${name}/${action}`;
    (await this.api.request('PUT', path, { body })).expect(202);
  }

  async change(name: string, action: 'pause' | 'unpause' | 'softreboot' | 'reset'): Promise<number> {
    const path = `${this.#subresources(name)}/virtualmachineinstances/${name}/${action}`;
    return (await this.api.request('PUT', path, { body: {} })).status;
  }

  async delete(kind: string, name: string, options: object = {}): Promise<void> {
    await this.api.request('DELETE', `${pathOf(kind, this.namespaceOf(name))}/${name}`, { body: options });
  }

  /** `reason: message` of all that was told about an object of this name. */
  async events(name: string): Promise<string[]> {
    const { items } = (await this.api.request('GET', '/api/v1/events')).expect(200).json;
    return items
      .filter(({ involvedObject }: Anything) => involvedObject.name.includes(name))
      .map(({ reason, message }: Anything) => `${reason}: ${message}`);
  }

  /** Waits until people are told so. */
  async told(name: string, pattern: RegExp): Promise<void> {
    await eventually(async () => expect((await this.events(name)).join('\n')).toMatch(pattern), PATIENCE_MS);
  }

  /** Where a port of a guest is reached. */
  async forwardOf(name: string, port: number): Promise<string> {
    return eventually(async () => {
      const [network] = (await this.guest(name))?.status?.interfaces ?? [];
      const forward = network?.forwardedPorts?.find((each: Anything) => each.port === port);
      expect(forward, JSON.stringify(network)).toBeDefined();
      return `${forward.hostAddress}:${forward.hostPort}`;
    });
  }

  /** Where the synchronization controller is reached, once somebody needs it; then it may have to be started first. */
  synchronizationAddress(): Promise<string> {
    return eventually(async () => {
      const { status } = (await this.api.request('GET', KUBEVIRT)).expect(200).json;
      const [address] = status?.synchronizationAddresses ?? [];
      expect(address).toEqual(expect.any(String));
      return address as string;
    }, 2 * PATIENCE_MS);
  }

  /** The process of a guest's machine. */
  qemuOf(guest: Anything): number {
    const [podUID, node] = Object.entries(guest.status.activePods).at(-1) as [string, string];
    return this.qemuIn(node, podUID);
  }

  /** The process of the machine of a pod. */
  qemuIn(node: string, podUID: string): number {
    return Number(readFileSync(join(this.nodesDirectory, node, 'runs', podUID, 'qemu.pid'), 'utf8'));
  }

  /** Below it each node has a directory of its own. */
  get nodesDirectory(): string {
    return join(this.godwit.directory, 'nodes');
  }

  /** Every process of a machine that runs on this host. */
  qemus(): number[] {
    return this.#processes().filter(isQemu);
  }

  agentOf(node: string): number | undefined {
    return holderOf(join(this.nodesDirectory, node))?.pid;
  }

  /** kill -9 to the agent, and another in its place at once: `godwit up` would let more and more time pass. */
  replaceAgent(node: string): Promise<void> {
    return this.#replace(join(this.nodesDirectory, node));
  }

  /** The synchronization controller that the cluster has started by itself. */
  synchronizationPid(): number | undefined {
    return holderOf(synchronizationBelow(this.godwit.directory))?.pid;
  }

  /** The same for the synchronization controller. */
  replaceSynchronization(): Promise<void> {
    return this.#replace(synchronizationBelow(this.godwit.directory));
  }

  #replace(directory: string): Promise<void> {
    const { wrap } = this.godwit.place;
    const outputPath = join(directory, REPLACEMENT_LOG);
    return replaceHolder(() => holderOf(directory)?.pid, { wrap, patienceMs: PATIENCE_MS, outputPath });
  }

  /** kill -9 to the agent; `godwit up` starts another, which is there when this is over, and stays. */
  async killAgent(node: string): Promise<void> {
    const { pid } = await killHolder(() => this.agentOf(node), PATIENCE_MS);
    await eventually(() => expect([undefined, pid]).not.toContain(this.agentOf(node)), PATIENCE_MS);
  }

  /** Stops the agent in its tracks. What it answers lets it go on, as if nothing had been. */
  async holdAgent(node: string): Promise<() => void> {
    const pid = await this.#agentThatRuns(node);
    process.kill(pid, 'SIGSTOP');
    return () => process.kill(pid, 'SIGCONT');
  }

  #agentThatRuns(node: string): Promise<number> {
    return eventually(() => {
      const pid = this.agentOf(node);
      if (pid === undefined) throw new Error(`${node} has no agent`);
      return pid;
    }, PATIENCE_MS);
  }

  /** Ends everything that was started, by force, and removes every file. */
  async stop(): Promise<void> {
    // Whoever has just died has not been heard of yet.
    await new Promise((resolve) => setTimeout(resolve, 100));
    if (!this.godwit.isRunning) say(`godwit up has ended by itself:\n${this.godwit.output.slice(-4000)}`);
    this.#serials.stop();
    this.api.close();
    await this.godwit.stop();
    // Agents first: they would start what is missing.
    for (const isLast of [false, true]) for (const pid of this.#processes()) if (isQemu(pid) === isLast) kill(pid);
    await eventually(() => expect(this.#processes()).toEqual([]), PATIENCE_MS);
    rmSync(this.#directory, { recursive: true, force: true, maxRetries: 3 });
  }

  #environment(): Record<string, string> {
    return { KUBECONFIG: this.godwit.kubeconfig, GODWIT_DATA_DIR: this.godwit.directory };
  }

  #subresources(name: string): string {
    return `/apis/subresources.kubevirt.io/v1/namespaces/${this.namespaceOf(name)}`;
  }

  async #find(kind: string, name: string): Promise<Anything> {
    const answer = await this.api.request('GET', `${pathOf(kind, this.namespaceOf(name))}/${name}`);
    return answer.status === 404 ? undefined : answer.expect(200).json;
  }

  /** Ours are told by the directory, which nobody else has: they have it among their arguments, or run in it. */
  #processes(): number[] {
    return processesIn(this.#directory);
  }
}

export function conditionOf(object: Anything, type: string): Anything {
  return object?.status?.conditions?.find((condition: Anything) => condition.type === type);
}

function pathOf(kind: string, namespace = 'default'): string {
  return `${GROUPS[kind] ?? ''}/namespaces/${namespace}/${kind.toLowerCase()}s`;
}

function isQemu(pid: number): boolean {
  return commandLineOf(pid).split('\0')[0]?.includes('qemu') === true;
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended meanwhile.
  }
}
