// A process that starts a machine, as an agent does, and is killed by the test at whatever moment.
import { realConnector } from '../../src/env/real-connector.ts';
import { realFiles } from '../../src/env/real-files.ts';
import { realProcesses } from '../../src/env/real-processes.ts';
import { realClock, realLogger } from '../../src/env/real.ts';
import { QemuHypervisor } from '../../src/hypervisor/qemu/qemu-hypervisor.ts';

const { options, spec, run } = JSON.parse(process.argv[2] ?? '');
const hypervisor = new QemuHypervisor({
  env: { clock: realClock, log: realLogger('silent') },
  connector: realConnector,
  processes: realProcesses,
  hostFiles: realFiles,
  ...options,
});
console.log('starting');
const machine = await hypervisor.start(spec, run);
await machine.continue();
console.log('running');
