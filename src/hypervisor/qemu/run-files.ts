/** Where the files of one running QEMU are, all in one private directory. */
export interface RunFiles {
  readonly directory: string;
  readonly monitor: string;
  /** A second monitor, kept free for what cannot wait behind a command that hangs. */
  readonly urgentMonitor: string;
  readonly serial: string;
  /** The port of the agent inside the guest. */
  readonly agent: string;
  /** Everything that came out of the serial port, whoever listened. */
  readonly serialLog: string;
  /** What QEMU itself has to say. */
  readonly log: string;
  readonly pid: string;
}

/** By what QEMU calls its files, which starts in their directory: names of sockets must be short. */
export const FILE_NAMES: Omit<RunFiles, 'directory'> = {
  monitor: 'qmp.sock',
  urgentMonitor: 'qmp-urgent.sock',
  serial: 'serial.sock',
  agent: 'agent.sock',
  serialLog: 'serial.log',
  log: 'qemu.log',
  pid: 'qemu.pid',
};

/** The files in this directory. */
export function runFiles(directory: string): RunFiles {
  const named = Object.entries(FILE_NAMES).map(([file, name]) => [file, `${directory}/${name}`]);
  return { directory, ...(Object.fromEntries(named) as Omit<RunFiles, 'directory'>) };
}
