import type { HostFiles, Processes } from '../../env/ports.ts';
import { realClock } from '../../env/real.ts';
import { silentLogger } from '../../env/test.ts';
import { FakeMonitor } from './fake-monitor.fixture.ts';
import { QemuMachine, type QemuMachineOptions } from './qemu-machine.ts';
import { runFiles } from './run-files.ts';

const unused = (): never => {
  throw new Error('nobody should need this');
};

/** What a command is answered with; an error is a refusal. */
type Answer = (args: Readonly<Record<string, unknown>>) => unknown;

/** A QEMU of which only the sockets and the process table are known, and what it answers. */
export class FakeQemu {
  readonly monitors: FakeMonitor[] = [];
  instance = 'one';
  status = 'running';
  isRunning = true;
  /** Whether it answers nobody who asks for its migration. */
  isHung = false;
  /** How many connections begin with what is left of a former one. */
  spoilt = 0;
  /** The answer to `query-migrate`. */
  migration: object = { status: 'completed' };
  /** What else it answers; whatever is not there is never answered. */
  readonly answers = new Map<string, Answer>();
  /** All that it was told besides, in order; an out-of-band command begins with `oob`. */
  readonly commands: [name: string, args: Readonly<Record<string, unknown>>][] = [];
  /** Commands that other programs were started with. */
  readonly programs: (readonly string[])[] = [];
  /** What such a program does. */
  onProgram: () => void = () => undefined;

  readonly processes: Processes = {
    isRoot: false,
    isRunning: () => Promise.resolve(this.isRunning),
    kill: () => Promise.resolve(this.die()),
    spawnDetached: unused,
    run: (command, args) => {
      this.programs.push([command, ...args]);
      this.onProgram();
      return Promise.resolve('');
    },
    findByArgument: unused,
  };
  readonly hostFiles: HostFiles = {
    readEnd: () => Promise.resolve('first\nlast\n'),
    makePrivateDirectory: unused,
    writePrivate: unused,
  };

  connect(): Promise<QemuMachine> {
    return QemuMachine.connect(this.#options());
  }

  adopt(): Promise<QemuMachine | undefined> {
    return QemuMachine.adopt(this.#options());
  }

  #options(): QemuMachineOptions {
    const { processes, hostFiles } = this;
    return {
      clock: realClock,
      log: silentLogger,
      connector: { connectUnix: (_, handlers) => this.#answering().connectUnix('/monitor', handlers) },
      processes,
      hostFiles,
      run: { directory: '/run/vm', instance: 'one' },
      files: runFiles('/run/vm'),
      process: { pid: 1, startedAt: '1' },
      exited: undefined,
    };
  }

  /** Tells an event. */
  tell(event: string, data: object = {}): void {
    const timestamp = { seconds: 1, microseconds: 0 };
    this.monitors[0]?.say(`${JSON.stringify({ event, data, timestamp })}\n`);
  }

  hangUp(): void {
    for (const monitor of this.monitors) monitor.hangUp();
  }

  die(): void {
    this.isRunning = false;
    this.hangUp();
  }

  #answering(): FakeMonitor {
    const monitor = new FakeMonitor();
    if (this.spoilt > 0) {
      this.spoilt--;
      monitor.greet = () => monitor.say('] , "id": 7}\r\n');
    }
    if (!this.isRunning) monitor.connectUnix = () => Promise.reject(new Error('ECONNREFUSED'));
    monitor.onCommand = ({ execute, 'exec-oob': urgent, arguments: args = {}, id }) => {
      const name = execute ?? `oob ${urgent}`;
      const answer = this.answers.get(name);
      if (answer) {
        this.commands.push([name, args]);
        const value = answer(args);
        if (value instanceof Error) monitor.refuse(id, value.message);
        else monitor.answer(id, value);
      } else if (execute === 'query-migrate' && !this.isHung) monitor.answer(id, this.migration);
      else if (execute === 'query-named-block-nodes') monitor.answer(id, []);
      if (execute === 'query-chardev') monitor.answer(id, [{ label: `instance-${this.instance}` }]);
      if (execute === 'query-status') monitor.answer(id, { status: this.status, running: this.status === 'running' });
      if (execute === 'quit') {
        monitor.answer(id);
        this.die();
      }
    };
    this.monitors.push(monitor);
    return monitor;
  }
}
