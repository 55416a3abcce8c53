#!/usr/bin/env node
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { Command, InvalidArgumentError, Option } from 'commander';
import { parseQuantity, quantityToNumber } from '../api/quantity.ts';
import { realEnv } from '../env/real.ts';
import { accessFailure } from './access-failure.ts';
import { defaultDataDirectory } from './data-directory.ts';
import { down, type DownOptions } from './down.ts';
import { UserError } from './failure.ts';
import { imageCommand } from './image.ts';
import { machineCommands } from './machine-commands.ts';
import { nodeCommands } from './node-commands.ts';
import { policyCommand } from './policy.ts';
import type { SimulateOptions } from './simulate.ts';
import { tokenCommand } from './token.ts';
import { trustCommand } from './trust.ts';
import type { AgentOptions } from './agent.ts';
import type { SyncOptions } from './sync.ts';
import type { ListenAddress, UpOptions } from './up.ts';

/** The `godwit` command. Exit codes: 0 done, 1 failed (one sentence says why), 2 the command line is wrong. */

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

const program = new Command('godwit')
  .description('Keeps virtual machines running while the machines under them come and go.')
  .exitOverride()
  .showHelpAfterError("(see 'godwit --help')");

program
  .command('up')
  .description('Start the control plane on this machine, and serve until stopped.')
  .option(
    '--nodes <count>',
    'how many nodes to start on this machine (default: 3, or as many as there are)',
    parseNodes,
  )
  .option('--data-dir <directory>', 'where everything is kept', defaultDataDirectory())
  .option(
    '--listen <host:port>',
    'where to serve (default: 127.0.0.1:6443, or a free port if that is taken)',
    parseListen,
  )
  .option('--audit-log <file>', 'append an audit event for each request to this file')
  .addOption(
    new Option('--log-level <level>', 'what to log').choices(['debug', 'info', 'warn', 'error']).default('warn'),
  )
  .addHelpText(
    'after',
    '\nExample:\n  godwit up --nodes 3 --data-dir ./cluster --listen 127.0.0.1:6443\n  KUBECONFIG=./cluster/kubeconfig kubectl get namespaces',
  )
  .action(async (options: UpOptions) => {
    // Only this command needs the whole server; the others should not take the time to load it.
    setFlagsFromString(`--heap-growing-percent=${HEAP_GROWTH_PERCENT}`);
    const { up } = await import('./up.ts');
    await up(options, realEnv(options.logLevel), print);
  });

program
  .command('down')
  .description(
    'Stop the control plane of a data directory and its agents; virtual machines go on unless told otherwise.',
  )
  .option('--data-dir <directory>', 'where everything is kept', defaultDataDirectory())
  .option('--stop-vms', 'shut the virtual machines of its nodes down first, each within its grace period')
  .addHelpText('after', '\nExample:\n  godwit down --data-dir ./cluster')
  .action(async (options: DownOptions) => down(options, realEnv('warn').clock, print));

program
  .command('agent')
  .description('Run the agent of a node on this machine, until stopped; its virtual machines go on.')
  .requiredOption('--name <name>', 'what the node is called')
  .option('--data-dir <directory>', 'where everything of the node is kept', join(defaultDataDirectory(), 'agent'))
  .option('--kubeconfig <file>', "the node's own kubeconfig; it is written when the node joins")
  .option('--bootstrap-kubeconfig <file>', 'a kubeconfig with a bootstrap token, to join with')
  .option('--server <url>', 'the API server to join, as godwit token create prints it')
  .option('--token <token>', 'a bootstrap token')
  .option('--ca-hash <hash>', "the fingerprint of the cluster's certificate authority")
  .option('--images <directory>', 'where images are, if several nodes share them')
  .option('--shared <directory>', 'where volumes are that all nodes of this machine share')
  .option('--address <ip>', 'by what others reach the node (default: as the API server sees it)')
  .option('--bridge <name...>', 'bridges of this machine that guests may be put on')
  .option('--memory <quantity>', "how much memory pods may have, if not all of the machine's", parseMemory)
  .addOption(
    new Option('--log-level <level>', 'what to log').choices(['debug', 'info', 'warn', 'error']).default('warn'),
  )
  .addHelpText(
    'after',
    '\nExample:\n  godwit agent --name node-1 --server https://10.0.0.1:6443 --token … --ca-hash sha256:…',
  )
  .action(async (options: AgentOptions & { logLevel: string }) => {
    const { agent } = await import('./agent.ts');
    await agent(options, realEnv(options.logLevel), print);
  });

program
  .command('sync')
  .description('Run the synchronization controller of a cluster, which migrations to and from other clusters need.')
  .requiredOption('--kubeconfig <file>', 'how to reach the cluster, as its synchronization controller')
  .option('--data-dir <directory>', 'a directory to hold, so that there is one on this machine')
  .option(
    '--listen <host:port>',
    'where other clusters dial in (default: all addresses, port 9185 or as configured)',
    parseListen,
  )
  .option('--advertise <host:port...>', 'where other clusters reach that (default: as the API server sees us)')
  .option('--metrics <host:port>', 'where to serve /healthz and /metrics', parseListen)
  .addOption(
    new Option('--log-level <level>', 'what to log').choices(['debug', 'info', 'warn', 'error']).default('warn'),
  )
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

for (const command of [
  ...machineCommands(print),
  ...nodeCommands(print),
  policyCommand(print),
  imageCommand(print),
  tokenCommand(print),
  trustCommand(print),
])
  program.addCommand(command.copyInheritedSettings(program));

try {
  await program.parseAsync();
  process.exit(0);
} catch (error) {
  const { exitCode, code, message, stack } = error as {
    exitCode?: number;
    code?: unknown;
    message: string;
    stack?: string;
  };
  // Commander has already printed its own complaints, and help is no failure.
  if (typeof code === 'string' && code.startsWith('commander.')) process.exit(exitCode === 0 ? 0 : 2);
  const told = accessFailure(error) ?? error;
  process.stderr.write(`godwit: ${told instanceof UserError ? told.message : (stack ?? message)}\n`);
  process.exit(told instanceof UserError ? told.exitCode : 1);
}
