// Which packages of the distribution the guest's kernel is in.
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** The kernel for virtual machines of Debian, which brings its modules, and that of Ubuntu, whose modules are beside it. */
const META_PACKAGES = ['linux-image-cloud-amd64', 'linux-image-virtual'];

export class NoKernel extends Error {}

/**
 * The packages of the current kernel, the image first, each with its name and the name of its file. `aptCache` runs
 * apt-cache with arguments and answers what it prints; it throws where that fails.
 */
export function currentKernelPackages(aptCache) {
  for (const meta of META_PACKAGES) {
    const image = dependsOf(aptCache, meta, /^linux-image-\S+$/)[0];
    if (!image) continue;
    const modules = dependsOf(aptCache, image, /^linux-modules-\S+$/).slice(0, 1);
    return [image, ...modules].map((name) => ({ name, file: `${name}_${versionOf(aptCache, name)}_amd64.deb` }));
  }
  throw new NoKernel(`the package lists know neither ${META_PACKAGES.join(' nor ')}: apt-get update`);
}

function dependsOf(aptCache, name, pattern) {
  let text;
  try {
    text = aptCache(['depends', name]);
  } catch {
    // There is no such package here.
    return [];
  }
  return [...text.matchAll(/Depends: (\S+)/g)].map(([, depended]) => depended).filter((each) => pattern.test(each));
}

function versionOf(aptCache, name) {
  const version = /^Version: (\S+)/m.exec(aptCache(['show', '--no-all-versions', name]))?.[1];
  if (!version) throw new NoKernel(`the package lists do not know ${name}: apt-get update`);
  return version.replaceAll(':', '%3a');
}

/** Of packages that were downloaded before, newest first, those of one kernel: an image, and its modules where they are apart. */
export function kernelOfCache(files) {
  const image = files.find((file) => /^linux-image-.*\.deb$/.test(file));
  if (!image) return undefined;
  const modules = image.replace(/^linux-image-/, 'linux-modules-');
  return files.includes(modules) ? [image, modules] : [image];
}

/** Where the modules are in what was unpacked. */
export function modulesBelow(directory) {
  const merged = join(directory, 'usr', 'lib', 'modules');
  return existsSync(merged) ? merged : join(directory, 'lib', 'modules');
}
