import { Command } from 'commander';
import { realEnv } from '../env/real.ts';
import { dataDirectory, withOutput } from './cluster-options.ts';
import type { ImageOptions } from './images.ts';

/** `godwit image`: what the images of this machine are. What it needs is loaded when it runs. */

type Print = (line: string) => void;

/** The command, with its own subcommands. */
export function imageCommand(print: Print): Command {
  const image = new Command('image').description('Images that virtual machines of this machine can be made from.');
  withStore(image.command('import'))
    .description('Take in a disk (raw or qcow2), an archive of a container image, or a kernel.')
    .argument('<name>', 'what it is called in manifests, such as quay.io/shop/web:1')
    .argument('[file]', 'the disk or the archive, perhaps compressed with gzip')
    .option('--kernel <file>', 'a kernel, for firmware.kernelBoot')
    .option('--initrd <file>', 'the initial RAM disk of the kernel')
    .addHelpText(
      'after',
      '\nExample:\n  godwit image import quay.io/shop/web:1 web.qcow2\n  podman save quay.io/shop/web:1 -o web.tar && godwit image import quay.io/shop/web:1 web.tar\n  godwit image import shop/linux --kernel vmlinuz --initrd initrd',
    )
    .action(async (name: string, file: string | undefined, options: ImageOptions & KernelOptions) => {
      const { importImage } = await import('./images.ts');
      await importImage(name, { file, ...options }, options, realEnv('warn'), print);
    });
  withOutput(withStore(image.command('list')))
    .alias('ls')
    .description('Show all images.')
    .addHelpText('after', '\nExample:\n  godwit image list\n  godwit image list -o json')
    .action(async (options: ImageOptions) => {
      const { listImages } = await import('./images.ts');
      await listImages(options, realEnv('warn'), print);
    });
  withStore(image.command('rm'))
    .description('Remove images. Virtual machines that run keep what they have.')
    .argument('<name...>', 'names of images')
    .addHelpText('after', '\nExample:\n  godwit image rm quay.io/shop/web:1')
    .action(async (names: string[], options: ImageOptions) => {
      const { removeImages } = await import('./images.ts');
      await removeImages(names, options, realEnv('warn'), print);
    });
  return image.addHelpText('after', '\nExample:\n  godwit image import shop/web:1 web.qcow2\n  godwit image list');
}

interface KernelOptions {
  readonly kernel?: string;
  readonly initrd?: string;
}

function withStore(command: Command): Command {
  return command
    .addOption(dataDirectory('the data directory of the cluster'))
    .option('--images <directory>', 'where images are (default: images in the data directory)');
}
