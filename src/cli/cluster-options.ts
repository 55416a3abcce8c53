import type { Command } from 'commander';

/** Adds the options by which a command is told which cluster is meant. */
export function withCluster(command: Command): Command {
  return command
    .option('--data-dir <directory>', 'the data directory of the cluster')
    .option(
      '--kubeconfig <file>',
      'the cluster (default: that of --data-dir, KUBECONFIG, or the default data directory)',
    );
}
