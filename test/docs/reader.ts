import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { processesIn } from '../support/processes-in.ts';
import { eventually } from '../support/eventually.ts';
import { linuxGuest } from '../support/guests.ts';
import { kubectlMinor } from '../support/kubectl.ts';
import { passageDirectory } from '../support/passage.ts';
import { stepsOf } from './page.ts';
import type { Scene } from './scenes.ts';
import { Terminal } from './terminal.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const PATIENCE_MS = 120_000;
/** What a tutorial must not leave behind. */
const LEFTOVERS = 'vm,vmi,vmim,pvc,migrationpolicies,ns -A';

/** Somebody who has a clone and a home of their own, and follows pages of the documentation. */
export class Reader {
  readonly #home: string;
  readonly #terminal: Terminal;
  #before = '';

  /** With a kubeconfig of their own where they have a cluster already. */
  constructor(kubeconfig?: string) {
    this.#home = passageDirectory();
    const [directory, programs] = [join(this.#home, 'godwit'), join(this.#home, 'bin')];
    for (const each of [directory, programs]) mkdirSync(each);
    // What is saved goes beside them, and not into the work tree.
    for (const each of ['examples', 'dist']) symlinkSync(join(root, each), join(directory, each));
    const main = JSON.stringify(join(root, 'dist/cli/main.js'));
    writeFileSync(join(programs, 'godwit'), `#!/bin/sh\nexec ${process.execPath} ${main} "$@"\n`, { mode: 0o755 });
    if (kubeconfig !== undefined) {
      mkdirSync(join(this.#home, '.kube'));
      writeFileSync(join(this.#home, '.kube', 'config'), kubeconfig, { mode: 0o600 });
    }
    // What is missing of what the pages take for granted is installed and built now.
    kubectlMinor();
    linuxGuest(this.#home);
    const { LANG, TMPDIR } = process.env;
    const PATH = `${programs}:${process.env['PATH'] ?? ''}`;
    const env = { PATH, LANG, TMPDIR, HOME: this.#home, KUBECONFIG: join(this.#home, '.godwit', 'kubeconfig') };
    this.#terminal = new Terminal({ directory, env, home: this.#home });
  }

  /** Has a cluster as `npm start` leaves it, with the small Linux among its images. */
  async start(nodes = 3): Promise<void> {
    const { output } = this.#terminal.type(`godwit up --nodes ${nodes} --listen 127.0.0.1:0`);
    await eventually(() => expect(output()).toContain('Admin kubeconfig:'), PATIENCE_MS);
    await eventually(async () => {
      const ready = (await this.#kubectl('get nodes --no-headers')).match(/ Ready /g) ?? [];
      expect(ready).toHaveLength(nodes);
    }, PATIENCE_MS);
    this.#before = await this.#kubectl(`get ${LEFTOVERS} -o name`);
  }

  /** Does what a page says. */
  async follow(page: string): Promise<void> {
    await this.#terminal.play(stepsOf(readFileSync(join(root, page), 'utf8')));
  }

  /** Does what a page says of things that are there already; they are away again afterwards. */
  async followIn({ before, after }: Scene, page: string): Promise<void> {
    for (const command of before) await this.#type(command);
    await this.follow(page);
    for (const command of after) await this.#type(command);
  }

  /** The cluster is as it was at the start. */
  async findsNothingLeft(): Promise<void> {
    await eventually(async () => {
      expect(await this.#kubectl(`get ${LEFTOVERS} -o name`)).toBe(this.#before);
      expect(await this.#kubectl('get nodes --no-headers')).not.toMatch(/SchedulingDisabled|NotReady/);
    }, PATIENCE_MS);
  }

  /** Ends everything that was started, by force, and removes every file. */
  async leave(): Promise<void> {
    await this.#terminal.close();
    await eventually(() => {
      const left = processesIn(this.#home);
      for (const pid of left) process.kill(pid, 'SIGKILL');
      expect(left).toEqual([]);
    }, PATIENCE_MS);
    rmSync(this.#home, { recursive: true, force: true, maxRetries: 3 });
  }

  async #type(command: string): Promise<void> {
    const { code, output } = await this.#terminal.typeToEnd(command);
    expect(code, `${command}\n${output}`).toBe(0);
  }

  async #kubectl(command: string): Promise<string> {
    const { output } = await this.#terminal.typeToEnd(`kubectl ${command}`);
    return output;
  }
}
