/** Where the files of one running QEMU are, all in one private directory. */
export interface RunFiles {
  readonly directory: string;
  readonly monitor: string;
  /** A second monitor, kept free for what cannot wait behind a command that hangs. */
  readonly urgentMonitor: string;
  readonly serial: string;
  /** Everything that came out of the serial port, whoever listened. */
  readonly serialLog: string;
  /** What QEMU itself has to say. */
  readonly log: string;
  readonly pid: string;
}

/** Linux takes no longer names of sockets. */
const SOCKET_PATH_BYTES_MAX = 107;

/** The files in this directory. Throws where their names would be too long for sockets. */
export function runFiles(directory: string): RunFiles {
  const files: RunFiles = {
    directory,
    monitor: `${directory}/qmp.sock`,
    urgentMonitor: `${directory}/qmp-urgent.sock`,
    serial: `${directory}/serial.sock`,
    serialLog: `${directory}/serial.log`,
    log: `${directory}/qemu.log`,
    pid: `${directory}/qemu.pid`,
  };
  if (Buffer.byteLength(files.urgentMonitor) > SOCKET_PATH_BYTES_MAX)
    throw new RangeError(`${directory} is too long a name for a directory with sockets`);
  return files;
}
