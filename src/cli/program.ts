import { setFlagsFromString } from 'node:v8';
import { Command, InvalidArgumentError, Option } from 'commander';
import { parseQuantity, quantityToNumber } from '../api/quantity.ts';
import { realEnv } from '../env/real.ts';
import { dataDirectory } from './cluster-options.ts';
import { asTyped, commandName } from './invocation.ts';
import { completionCommand } from './completion/completion-command.ts';
import { down, type DownOptions } from './down.ts';
import { imageCommand } from './image.ts';
import { optionsCommand } from './kubectl-options.ts';
import { machineCommands } from './machine-commands.ts';
import { parseNodeName, parseTaints } from './node-arguments.ts';
import { nodeCommands } from './node-commands.ts';
import { manifestsCommand } from './manifests/command.ts';
import { policyCommand } from './policy.ts';
import type { SimulateOptions } from './simulate.ts';
import { tokenCommand } from './token.ts';
import { trustCommand } from './trust.ts';
import { understandingCommands } from './understanding-commands.ts';
import { VERSION } from './version.ts';
import type { AgentOptions } from './agent.ts';
import type { BackupOptions } from './backup.ts';
import type { ControllersOptions } from './controllers.ts';
import type { LauncherCommandOptions } from './launcher.ts';
import type { ExtensionCommandOptions } from './extension.ts';
import type { SyncOptions } from './sync.ts';
import type { TourCommandOptions } from './tour/tour-command.ts';
import type { ListenAddress, UpOptions } from './up.ts';

/** The tree of all commands. Whoever runs it is in `main.ts`; what each needs is loaded when it runs. */

/**
 * How much garbage the server lets pile up before it is collected, as a part of what is alive. Most of that is text,
 * which costs nothing to look through; V8's own choice would be up to three times the memory for no gain in speed.
 */
const HEAP_GROWTH_PERCENT = 40;

const print = (line: string): void => void process.stdout.write(`${line}\n`);

function parseListen(text: string): ListenAddress {
  const match = /^(?:\[([0-9a-fA-F:]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (!match || port > 65_535)
    throw new InvalidArgumentError(
      'give HOST:PORT, for example 127.0.0.1:6443 or [::1]:6443 (port 0 takes a free one).',
    );
  return { host: match[1] ?? match[2] ?? '', port };
}

function parsePort(text: string): number {
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port < 1 || port > 65_535) throw new InvalidArgumentError('give a port.');
  return port;
}

function parseNodes(text: string): number {
  if (!/^\d{1,2}$/.test(text)) throw new InvalidArgumentError('give a whole number from 0 to 99.');
  return Number(text);
}

function parseCount(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('give a whole number above 0.');
  return Number(text);
}

function parseMemory(text: string): number {
  const quantity = parseQuantity(text);
  if (!quantity || quantity.amount <= 0n) throw new InvalidArgumentError('give a quantity such as 8Gi.');
  return Math.floor(quantityToNumber(quantity));
}

function parseSeed(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('give a whole number of at most 15 digits.');
  return Number(text);
}

function logLevel(): Option {
  return new Option('--log-level <level>', 'what to log').choices(['debug', 'info', 'warn', 'error']).default('warn');
}

/** For what works for a cluster, and may be one of its pods. */
const KUBECONFIG_HELP = "how to reach the cluster (default: KUBECONFIG, ~/.kube/config, or the pod's own account)";

/** The root of the tree. */
export const program = new Command('godwit')
  .description('Keeps virtual machines running while the machines under them come and go.')
  .commandsGroup('Run a cluster:')
  .version(VERSION, '-V, --version', 'print the version')
  .addHelpText(
    'after',
    '\nExit codes: 0 it was done, 1 it was not, 2 the command line is wrong, 130 it was stopped, 141 nobody reads what it prints;\ndocs/commands.md says more of them.\n\nExample:\n  godwit up\n  godwit status\n  godwit drain node-1 --dry-run',
  );

program
  .command('up')
  .description('Start the control plane on this machine, and serve until stopped.')
  .option(
    '--nodes <count>',
    'how many nodes to start on this machine (default: 3, or as many as there are)',
    parseNodes,
  )
  .addOption(dataDirectory('where everything is kept'))
  .option(
    '--listen <host:port>',
    'where to serve (default: 127.0.0.1:6443, or a free port if that is taken)',
    parseListen,
  )
  .option('--audit-log <file>', 'append an audit event for each request to this file')
  .option('--restored', 'the data is of a backup, even if it does not look like it: hear all nodes first')
  .addOption(logLevel())
  .addHelpText(
    'after',
    '\nExample:\n  godwit up --nodes 3 --data-dir ./cluster --listen 127.0.0.1:6443\n  KUBECONFIG=./cluster/kubeconfig kubectl get namespaces',
  )
  .action(async (options: UpOptions) => {
    // Only this command needs the whole server; the others should not take the time to load it.
    setFlagsFromString(`--heap-growing-percent=${HEAP_GROWTH_PERCENT}`);
    const { up } = await import('./up.ts');
    // Whoever has started this with a channel to hear it wants to know when to go on.
    await up(options, realEnv(options.logLevel), print, () => process.send?.('serving'));
  });

program
  .command('down')
  .description(
    'Stop the control plane of a data directory and its agents; virtual machines go on unless told otherwise.',
  )
  .addOption(dataDirectory('where everything is kept'))
  .option('--stop-vms', 'shut the virtual machines of its nodes down first, each within its grace period')
  .addHelpText('after', '\nExample:\n  godwit down --data-dir ./cluster')
  .action(async (options: DownOptions) => down(options, realEnv('warn').clock, print));

program
  .command('backup')
  .description('Copy the data of the API and its keys, as they are at one moment, while it runs or not.')
  .argument('<directory>', 'where the copy is to be: a new directory, or an empty one')
  .addOption(dataDirectory('where everything is kept'))
  .addHelpText('after', '\nExample:\n  godwit backup /backups/monday\n  godwit backup ./copy --data-dir ./cluster')
  .action(async (directory: string, options: BackupOptions) => {
    const { backup } = await import('./backup.ts');
    await backup(directory, options, print);
  });

program
  .command('tour')
  .description(
    'Boot a small guest on a cluster of this machine, drain its node, and prove that the guest has not noticed.',
  )
  .addOption(dataDirectory('where everything of the cluster is kept'))
  .addHelpText('after', '\nExample:\n  godwit tour\n  godwit tour --data-dir ./cluster')
  .action(async (options: TourCommandOptions) => {
    const { tour } = await import('./tour/tour-command.ts');
    const interrupted = new AbortController();
    process.once('SIGINT', () => interrupted.abort());
    process.on('SIGTERM', () => interrupted.abort());
    await tour(options, realEnv('error'), print, { output: process.stdout, interrupted: interrupted.signal });
  });

program
  .command('agent')
  .description('Run the agent of a node on this machine, until stopped; its virtual machines go on.')
  .requiredOption('--name <name>', 'what the node is called', parseNodeName)
  .addOption(dataDirectory('where everything of the node is kept', 'agent'))
  .option('--kubeconfig <file>', "the node's own kubeconfig; it is written when the node joins")
  .option('--bootstrap-kubeconfig <file>', 'a kubeconfig with a bootstrap token, to join with')
  .option('--bootstrap-pod', 'join with the account of the pod that this runs in')
  .option('--server <url>', 'the API server to join, as godwit token create prints it')
  .option('--token <token>', 'a bootstrap token')
  .option('--ca-hash <hash>', "the fingerprint of the cluster's certificate authority")
  .option('--images <directory>', 'where images are, if several nodes share them')
  .option('--shared <directory>', 'where volumes are that all nodes of this machine share')
  .option('--address <ip>', 'by what others reach the node (default: as the API server sees it)')
  .option(
    '--migration-address <ip|network>',
    'where guests from other nodes arrive: an address, or a network in which this machine has one (default: --address)',
  )
  .option('--bridge <name...>', 'bridges of this machine that guests may be put on')
  .option('--memory <quantity>', "how much memory pods may have, if not all of the machine's", parseMemory)
  .option(
    '--register-with-taints <taints>',
    "taints of the node when it is registered first, as kubelet's: key=value:effect, separated by commas (not with --kubelet)",
    parseTaints,
  )
  .option('--kubelet', "serve the node of this machine's kubelet, which is called so, and its launcher pods")
  .addOption(logLevel())
  .addHelpText(
    'after',
    '\nExample:\n  godwit agent --name node-1 --server https://10.0.0.1:6443 --token … --ca-hash sha256:…',
  )
  .action(async (options: AgentOptions & { logLevel: string }) => {
    const { agent } = await import('./agent.ts');
    await agent(options, realEnv(options.logLevel), print);
  });

program
  .command('launcher')
  .description('Run in a launcher pod, where it starts QEMU when the agent of the node says so.')
  .requiredOption('--socket <path>', 'where to listen for the agent')
  .requiredOption('--directory <directory>', 'where QEMU is started, and its sockets and logs are')
  .addOption(logLevel())
  .addHelpText(
    'after',
    '\nExample:\n  godwit launcher --socket /var/lib/godwit/launchers/$POD_UID.sock --directory /var/lib/godwit/runs/$POD_UID',
  )
  .action(async (options: LauncherCommandOptions & { logLevel: string }) => {
    const { launcher } = await import('./launcher.ts');
    await launcher(options, realEnv(options.logLevel));
  });

program
  .command('controllers')
  .description("Run Godwit's controllers for a Kubernetes cluster, until stopped; of several, one works.")
  .option('--kubeconfig <file>', KUBECONFIG_HELP)
  .option('--data-dir <directory>', 'a directory to hold, so that there is one on this machine')
  .option('--launcher-image <image>', 'the image of the pods that guests run in')
  .option('--kubelets', 'guests run in containers, on the nodes of kubelets, whose agents have --kubelet')
  .option('--image-pull-secret <name...>', 'secrets, in the namespaces of guests, with which kubelets pull that image')
  .option('--metrics <host:port>', 'where to serve /healthz, /readyz and /metrics', parseListen)
  .addOption(logLevel())
  .addHelpText('after', '\nExample:\n  godwit controllers --kubeconfig ./controllers-kubeconfig')
  .action(async (options: ControllersOptions & { logLevel: string }) => {
    const { controllers } = await import('./controllers.ts');
    await controllers(options, realEnv(options.logLevel), print);
  });

program
  .command('extension')
  .description('Run the webhooks and subresources of a Kubernetes cluster, until stopped; register them there.')
  .option('--kubeconfig <file>', KUBECONFIG_HELP)
  .option('--data-dir <directory>', 'a directory to hold, so that there is one on this machine')
  .requiredOption('--listen <host:port>', 'where to serve; API servers must reach it', parseListen)
  .option(
    '--service-port <port>',
    'the port of the Service kubevirt/virt-api, if API servers reach us by that',
    parsePort,
  )
  .option('--metrics <host:port>', 'where to serve /healthz, /readyz and /metrics', parseListen)
  .addOption(logLevel())
  .addHelpText('after', '\nExample:\n  godwit extension --kubeconfig ./extension-kubeconfig --listen 10.0.0.1:8443')
  .action(async (options: ExtensionCommandOptions & { logLevel: string }) => {
    const { extension } = await import('./extension.ts');
    await extension(options, realEnv(options.logLevel), print);
  });

program
  .command('sync')
  .description('Run the synchronization controller of a cluster, which migrations to and from other clusters need.')
  .option('--kubeconfig <file>', KUBECONFIG_HELP)
  .option('--data-dir <directory>', 'a directory to hold, so that there is one on this machine')
  .option(
    '--listen <host:port>',
    'where other clusters dial in (default: all addresses, port 9185 or as configured)',
    parseListen,
  )
  .option('--advertise <host:port...>', 'where other clusters reach that (default: as the API server sees us)')
  .option('--metrics <host:port>', 'where to serve /healthz, /readyz and /metrics', parseListen)
  .addOption(logLevel())
  .addHelpText(
    'after',
    '\nExample:\n  godwit sync --kubeconfig ./sync-kubeconfig --listen 0.0.0.0:9185 --advertise sync.example.com:9185',
  )
  .action(async (options: SyncOptions & { logLevel: string }) => {
    const { sync } = await import('./sync.ts');
    await sync(options, realEnv(options.logLevel), print);
  });

program
  .command('simulate')
  .description('Run whole clusters in virtual time under faults, and look for what breaks.')
  .option('--seeds <count>', 'how many seeds to run (default: 100, or 1 with --seed)', parseCount)
  .option('--seed <number>', 'the seed to begin with (default: one that nobody chose)', parseSeed)
  .option('--scenario <name>', 'what the clusters are like (default: all in turn, or that of --plant)')
  .option('--only <parts>', "run a part of a seed's plan, as a failure prints it")
  .option('--trace', 'print every line of the trace of one seed')
  .option('--plant <bug>', 'plant a bug, to see that it is found')
  .addHelpText(
    'after',
    '\nExample:\n  godwit simulate --seeds 1000\n  godwit simulate --scenario pods --seed 7 --trace',
  )
  .action(async (options: SimulateOptions) => {
    const { simulate } = await import('./simulate.ts');
    const { clock, random } = realEnv('warn');
    const overwrite = (line: string): void => void process.stderr.write(`\r\u001b[K${line}`);
    await simulate(options, {
      clock,
      print,
      progress: process.stderr.isTTY ? overwrite : undefined,
      randomSeed: () => Math.floor(random.number() * 2 ** 31),
    });
  });

const GROUPS: readonly (readonly [title: string, commands: readonly Command[]])[] = [
  ['Understand what is there:', understandingCommands(print)],
  ['Use virtual machines:', machineCommands(print)],
  [
    'Look after a cluster:',
    [
      ...nodeCommands(print),
      policyCommand(print),
      imageCommand(print),
      tokenCommand(print),
      trustCommand(print),
      manifestsCommand(print),
    ],
  ],
  ['More:', [optionsCommand(print), completionCommand(program, print)]],
];
for (const [title, commands] of GROUPS) for (const command of commands) program.addCommand(command.helpGroup(title));

/** What goes for each command: wrong ones end here and not the process, and say how to find out what is right. */
function settle(command: Command, path: string): void {
  command
    .exitOverride()
    .showHelpAfterError(`(see '${path} --help')`)
    .configureOutput({
      writeOut: (text) => void process.stdout.write(asTyped(text)),
      writeErr: (text) => void process.stderr.write(asTyped(text)),
      outputError: (text, write) => write(text.replace(/^error: /, `${commandName()}: `)),
    });
  for (const child of command.commands) settle(child, `${path} ${child.name()}`);
}
settle(program, 'godwit');
