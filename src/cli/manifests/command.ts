import { Command, Option } from 'commander';
import type { ManifestsOptions } from './manifests-command.ts';
import { PARTS } from './parts.ts';

/** `godwit manifests`. What it needs is loaded when it runs. */

/** The command. */
export function manifestsCommand(print: (line: string) => void): Command {
  return new Command('manifests')
    .description('Print what an admin installs to run virtual machines on Kubernetes.')
    .option('--image <image>', 'the image of all components (default: localhost/godwit, of this version)')
    .option('--kubelets', 'guests run in containers, on the nodes of kubelets')
    .addOption(new Option('--only <parts...>', 'print these parts alone').choices(PARTS))
    .addOption(new Option('-o, --output <format>', 'how to print it').choices(['json', 'yaml']).default('yaml'))
    .addHelpText(
      'after',
      '\nExample:\n  godwit manifests --only crds | kubectl apply --server-side -f -\n  godwit manifests --image registry.example.com/godwit:v1 | kubectl apply --server-side -f -',
    )
    .action(async (options: ManifestsOptions) => {
      const { printManifests } = await import('./manifests-command.ts');
      printManifests(options, print);
    });
}
