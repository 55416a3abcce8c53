import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import type { Clock } from '../env/ports.ts';
import type { KubeconfigPorts, Program, ProgramResult } from './kubeconfig-ports.ts';

/** An ExecCredential is a few kilobytes; a program that writes more is none. */
const OUTPUT_BYTES_MAX = 1024 * 1024;

/** This machine's files and programs, and the environment that the process was given. */
export function systemKubeconfigPorts(clock: Clock, environment: KubeconfigPorts['environment']): KubeconfigPorts {
  return {
    clock,
    environment,
    homeDirectory: homeDirectory(environment),
    readFile: (path) => readFile(path, 'utf8'),
    run,
  };
}

/** Where a user's files are. Users whom the machine does not know, as in containers, have them where they are. */
export function homeDirectory(environment: KubeconfigPorts['environment'], known = homedir): string {
  try {
    return environment['HOME'] ?? known();
  } catch {
    return process.cwd();
  }
}

function run({ command, args, environment, signal }: Program): Promise<ProgramResult> {
  return new Promise((resolve, reject) => {
    const options = { env: { ...environment }, signal, maxBuffer: OUTPUT_BYTES_MAX };
    execFile(command, args, options, (error, output, errors) => {
      // A code that is text is the system's: it never ran, or was ended. A number is the program's own.
      if (typeof error?.code === 'string') reject(error);
      else resolve({ exitCode: error ? (error.code ?? null) : 0, output, errors });
    }).stdin?.end();
  });
}
