import { execFile, execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { BUILDAH, needsOwnCluster } from './wanted.ts';

interface DebianPackages {
  /** Makes the root of a system, of packages and all that they depend on. */
  readonly makeRoot: (place: string, packages: readonly string[]) => readonly string[];
}

const script = new URL('../../../scripts/debian-packages.mjs', import.meta.url).href;
const { makeRoot } = (await import(script)) as DebianPackages;
const run = promisify(execFile);
const repository = fileURLToPath(new URL('../../../', import.meta.url));

/** What the Containerfile needs of its base, besides Node and npm. */
const BASE_PACKAGES = ['apt', 'base-files', 'coreutils', 'dash', 'dpkg', 'gzip', 'libstdc++6', 'sed', 'tar'];
/** By which this machine gets packages, Debian's and npm's, and trusts who has them. */
const SETTINGS = ['/etc/apt', '/usr/share/keyrings', '/etc/ssl/certs/ca-certificates.crt'];

export interface Build {
  /** By which other builds know it; `oci-archive:FILE` is left in that file. */
  readonly tag: string;
  /** The values of arguments in the Containerfile. */
  readonly values: Readonly<Record<string, string>>;
  /** What is set for whatever it runs, of what clients of networks know. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** Builds images of Containerfiles with a store of its own, below a directory. Needs root. */
export class Buildah {
  readonly #directory: string;

  constructor(directory: string) {
    needsOwnCluster('buildah is got for clusters of our own alone');
    this.#directory = directory;
  }

  /** Builds the image of all components, all of it anew, as an admin does who wants the same each time. */
  async buildImage(build: Build): Promise<void> {
    await this.#build(repository, build);
  }

  /** Makes what stands for the base of the Containerfile, which no registry has to be asked for: Debian, with this machine's Node. */
  async makeBase(tag: string): Promise<void> {
    const context = mkdtempSync(join(this.#directory, 'base-'));
    const root = join(context, 'root');
    makeRoot(root, BASE_PACKAGES);
    cpSync(process.execPath, join(root, 'usr/bin/node'));
    const modules = join(root, 'usr/lib/node_modules');
    mkdirSync(modules, { recursive: true });
    const npm = realpathSync(answer('sh', '-c', 'command -v npm'));
    cpSync(dirname(dirname(npm)), join(modules, 'npm'), { recursive: true });
    symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', join(root, 'usr/bin/npm'));
    const settings = new Map(SETTINGS.map((path) => [path, path]));
    settings.set(answer('npm', 'config', 'get', 'userconfig'), '/root/.npmrc');
    settings.set(answer('npm', 'config', 'get', 'globalconfig'), '/usr/etc/npmrc');
    for (const [from, to] of settings) if (existsSync(from)) cpSync(from, join(root, to), { recursive: true });
    writeFileSync(join(context, 'Containerfile'), 'FROM scratch\nCOPY root /\nENV PATH=/usr/sbin:/usr/bin\n');
    await this.#build(context, { tag, values: {} });
  }

  /** Makes a base like another, but for one file. */
  async changeBase(tag: string, from: string, path: string, contents: string): Promise<void> {
    const context = mkdtempSync(join(this.#directory, 'base-'));
    writeFileSync(join(context, 'file'), contents);
    writeFileSync(join(context, 'Containerfile'), `FROM ${from}\nCOPY file ${path}\n`);
    await this.#build(context, { tag, values: {} });
  }

  async #build(context: string, { tag, values, environment = {} }: Build): Promise<void> {
    const below = BUILDAH ?? '';
    const store = { root: join(this.#directory, 'store'), runroot: join(this.#directory, 'run') };
    const options = {
      'signature-policy': join(below, 'etc/containers/policy.json'),
      'pull-never': true,
      isolation: 'oci',
      runtime: join(below, 'usr/sbin/runc'),
      network: 'host',
      timestamp: 0,
      'identity-label': false,
      tag,
    };
    const given = Object.entries(values).map(([name, value]) => `--build-arg=${name}=${value}`);
    const args = [...flags({ ...store, 'storage-driver': 'overlay' }), 'build', ...flags(options), ...given, context];
    const libraries = ['usr/lib', 'lib'].map((path) => join(below, path, 'x86_64-linux-gnu')).join(':');
    await run(join(below, 'usr/bin/buildah'), args, {
      env: { ...process.env, LD_LIBRARY_PATH: libraries, ...environment },
      maxBuffer: 2 ** 26,
    });
  }
}

function flags(options: Readonly<Record<string, string | number | boolean>>): readonly string[] {
  return Object.entries(options).map(([name, value]) => `--${name}=${value}`);
}

function answer(command: string, ...args: readonly string[]): string {
  return execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
}
